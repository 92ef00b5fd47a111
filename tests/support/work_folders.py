"""Where the finished stages of a build left their files."""

from __future__ import annotations

from pathlib import Path

from finpile.output.layout import Layout
from finpile.output.stage_record import files_of
from finpile.output.work_folder import WorkFolder


def work_folder(out: Path, stage: str) -> WorkFolder:
    """The folder of a stage's files in `.work`."""
    return files_of(Layout(str(out)).work(stage))


def files_of_stage(out: Path, stage: str) -> Path:
    """Its path."""
    return Path(work_folder(out, stage).url)
