"""Where the finished stages of a build left their files."""

from __future__ import annotations

from pathlib import Path

from finpile.output.stage_record import files_of


def files_of_stage(out: Path, stage: str) -> Path:
    """The folder of a stage's files in `.work`."""
    return Path(files_of(str(out / ".work" / stage)))
