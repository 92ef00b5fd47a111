"""Commands that are killed at one of their file operations, each in a fork of one process that has all imported."""

from __future__ import annotations

import subprocess
from collections.abc import Callable
from pathlib import Path

_SCRIPT = """
import os, signal, sys
import finpile.dedup, finpile_tokenizer
from finpile.config import load_config
from finpile_pipelines.runner.engine import Engine
{imports}

def child(out, last, words):
    left = [last]
    def hook(event, arguments):
        if event.split(".")[0] in ("open", "os", "shutil") and any(out in str(one) for one in arguments[:2]):
            left[0] -= 1
            if left[0] == 0:
                os.kill(os.getpid(), signal.SIGKILL)
    sys.addaudithook(hook)
    {call}
    print(last - left[0], flush=True)
    os._exit(0)

finpile.dedup.compile_kernels()
finpile_tokenizer.compile_kernels()
for line in sys.stdin:
    out, last, *words = line.split()
    pid = os.fork()
    if pid == 0:
        try:
            child(out, int(last), words)
        finally:
            os._exit(1)
    _, status = os.waitpid(pid, 0)
    if status:
        print(-abs(os.waitstatus_to_exitcode(status)), flush=True)
"""


class Forks:
    """Runs `call`, Python code in which `out` is a folder and `words` are further words, after `imports`."""

    def __init__(self, start_python: Callable[..., subprocess.Popen[str]], imports: str, call: str) -> None:
        process = start_python("-c", _SCRIPT.format(imports=imports, call=call))
        assert process.stdin and process.stdout
        self._process, self._stdin, self._stdout = process, process.stdin, process.stdout

    def run(self, out: Path, last: int, *words: object) -> int:
        """Kills the run before its `last` file operation in `out` (0: never).

        Returns the number of operations of a run that ended, minus the signal of one that was killed, -1 for an error.
        """
        self._stdin.write(f"{' '.join(map(str, (out, last, *words)))}\n")
        self._stdin.flush()
        return int(self._stdout.readline())

    def close(self) -> None:
        self._process.communicate()
