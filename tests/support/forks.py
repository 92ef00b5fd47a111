"""Commands that are killed at one of their file operations, each in a fork of one process that has all imported."""

from __future__ import annotations

import json
import subprocess
from collections.abc import Callable
from functools import partial
from pathlib import Path

_SCRIPT = """
import json, os, signal, sys
from datetime import date

import finpile.dedup, finpile_tokenizer
from finpile.as_of import Cut
from finpile.config import TokenizerConfig, load_config
from finpile.output.takedowns import Wanted
from finpile_pipelines.as_of import as_of
from finpile_pipelines.build import build
from finpile_pipelines.runner.engine import Engine
from finpile_pipelines.snapshots.append import append
from finpile_pipelines.snapshots.remove import remove
from finpile_pipelines.snapshots.vacuum import vacuum
from finpile_pipelines.unigram.train_folder import train_folder

def child(call, renamed, out, last, words):
    left = [last]
    def counts(event, arguments):
        if renamed:
            return event == "os.rename" and renamed in str(arguments[1])
        return event.split(".")[0] in ("open", "os", "shutil") and any(out in str(one) for one in arguments[:2])
    def hook(event, arguments):
        if counts(event, arguments):
            left[0] -= 1
            if left[0] == 0:
                os.kill(os.getpid(), signal.SIGKILL)
    sys.addaudithook(hook)
    exec(call, {**globals(), "out": out, "words": words})
    print(last - left[0], flush=True)
    os._exit(0)

finpile.dedup.compile_kernels()
finpile_tokenizer.compile_kernels()
for line in sys.stdin:
    pid = os.fork()
    if pid == 0:
        try:
            child(*json.loads(line))
        finally:
            os._exit(1)
    _, status = os.waitpid(pid, 0)
    if status:
        print(-abs(os.waitstatus_to_exitcode(status)), flush=True)
"""


class Forks:
    """Runs Python code that calls the functions of builds; they are imported."""

    def __init__(self, start_python: Callable[..., subprocess.Popen[str]]) -> None:
        process = start_python("-c", _SCRIPT)
        assert process.stdin and process.stdout
        self._process, self._stdin, self._stdout = process, process.stdin, process.stdout

    def runs(self, call: str, renamed: str = "") -> Callable[..., int]:
        """`run(out, last, *words)`: runs `call`, in which `out` is a folder and `words` are further words.

        The run is killed before its `last` file operation in `out` (0: never); where `renamed` is given, before it
        renames its `last` file into a path that holds this. `run` returns the number of operations of a run that ended,
        minus the signal of one that was killed, -1 for an error.
        """
        return partial(self._run, call, renamed)

    def _run(self, call: str, renamed: str, out: Path, last: int, *words: object) -> int:
        self._stdin.write(json.dumps([call, renamed, str(out), last, [str(word) for word in words]]) + "\n")
        self._stdin.flush()
        return int(self._stdout.readline())

    def close(self) -> None:
        self._process.communicate()
