"""deduplicate-text-datasets: all copies of repeated spans of 200 bytes, of JSON Lines.

python deduplicate_text_datasets.py BINARY IN_FOLDER OUT_FOLDER NUM_THREADS

The texts become one file, with a separator of its own between each, then its steps are run as its README says: suffix
arrays of parts, their merge, repeated spans, spans to remove. OUT_FOLDER/cut_bytes has the bytes of these spans.
"""

from __future__ import annotations

import io
import json
import shutil
import subprocess
import sys
from pathlib import Path

import zstandard

_LENGTH, _PART_BYTES, _OVERLAP = 200, 512_000_000, 100_000


def main() -> None:
    """Runs the steps, one after another."""
    binary, inputs, out, threads = sys.argv[1], Path(sys.argv[2]), Path(sys.argv[3]).resolve(), sys.argv[4]
    data, cache = out / "data", out / "cache"
    shutil.rmtree(cache, ignore_errors=True)
    for folder in (cache, out / "tmp"):
        folder.mkdir(parents=True)
    _write(inputs, data)
    size = data.stat().st_size
    count = max(2, -(-size // _PART_BYTES))
    step = size // count
    ranges = [(at * step, size if at == count - 1 else min(size, (at + 1) * step + _OVERLAP)) for at in range(count)]
    for at in range(0, count, int(threads)):
        made = [
            subprocess.Popen([binary, "make-part", "--data-file", data, "--start-byte", str(a), "--end-byte", str(b)])
            for a, b in ranges[at : at + int(threads)]
        ]
        if any(process.wait() for process in made):
            raise SystemExit("make-part failed")
    parts = [f"{data}.part.{a}-{b}" for a, b in ranges]
    asked = [word for part in parts for word in ("--suffix-path", part)]
    table = out / "tmp/out.table.bin"
    subprocess.run([binary, "merge", "--output-file", table, *asked, "--num-threads", threads], cwd=out, check=True)
    with Path(f"{data}.table.bin").open("wb") as whole:
        for part in sorted(table.parent.glob("out.table.bin.*")):
            whole.write(part.read_bytes())
    options = ["--data-file", data, "--length-threshold", str(_LENGTH), "--cache-dir", cache]
    subprocess.run([binary, "self-similar", *options, "--num-threads", threads], check=True)
    done = subprocess.run(
        [binary, "collect", "--data-file", data, "--cache-dir", cache, "--length-threshold", str(_LENGTH)],
        check=True,
        capture_output=True,
        text=True,
    )
    rows = (line.split() for line in done.stdout.splitlines())
    spans = [(int(row[0]), int(row[1])) for row in rows if len(row) == 2 and all(word.isdigit() for word in row)]
    (out / "cut_bytes").write_text(str(sum(end - start for start, end in spans)))


def _write(inputs: Path, data: Path) -> None:
    with data.open("wb") as file:
        for path in sorted(inputs.iterdir()):
            with zstandard.ZstdDecompressor().stream_reader(path.open("rb"), read_across_frames=True) as stream:
                for number, line in enumerate(io.TextIOWrapper(stream, encoding="utf-8")):
                    file.write(b"\xff\xff" + number.to_bytes(4, "little"))
                    file.write(json.loads(line)["text"].encode())


if __name__ == "__main__":
    main()
