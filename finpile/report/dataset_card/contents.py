"""What a dataset card says of a corpus, from its manifest."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from finpile.documents.split import HELDOUT, TRAIN
from finpile.output.manifest import CARD, CERTIFICATE, SNAPSHOT, counts_by_stage, file_of_list, recorded_files
from finpile.output.stage_record import FileRecord
from finpile.report.licenses import license_statistics
from finpile.report.statistics import LicenseStatistics
from finpile.report.summary import source_rows

#: The filter whose parameter `allow` has the languages of a source.
_LANGUAGE = "language"


@dataclass(frozen=True, kw_only=True, slots=True)
class CardFacts:
    """A corpus, without anything that differs between two builds of the same input."""

    name: str
    finpile: str
    """The version of FinPile."""
    config: Mapping[str, Any]
    """The corpus file."""
    stages: tuple[str, ...]
    """That ran, in order."""
    files: tuple[FileRecord, ...]
    """All published files but those of the card, by path."""
    documents: tuple[Mapping[str, Any], ...]
    """The counts of the files of documents."""
    rows: tuple[Mapping[str, Any], ...]
    """One for each source (`finpile.report.summary`)."""
    snapshot: int
    """Its number; 0 for a build."""
    day: str | None
    """Of a corpus as of a day."""
    num_taken_down: int

    @classmethod
    def of(cls, manifest: Mapping[str, Any]) -> CardFacts:
        """Those of a build, a snapshot or a corpus as of a day."""
        stages = counts_by_stage(manifest)
        files = recorded_files({key: value for key, value in manifest.items() if key != CARD})
        takedowns = file_of_list(manifest)
        return cls(
            name=manifest["name"],
            finpile=manifest["finpile"],
            config=manifest["config"],
            stages=tuple(stages),
            files=tuple(files[path] for path in sorted(files)),
            documents=tuple(stages["split"]["documents"]),
            rows=tuple(source_rows(manifest)),
            snapshot=manifest.get(SNAPSHOT, {}).get("number", 0),
            day=manifest.get(CERTIFICATE, {}).get("date"),
            num_taken_down=takedowns["num_rows"] if takedowns else 0,
        )

    def below(self, folder: str) -> list[FileRecord]:
        """The files below a folder of OUT."""
        return [file for file in self.files if file.path.startswith(f"{folder}/")]

    @property
    def splits(self) -> dict[str, int]:
        """The number of documents of each split that has some."""
        counts = {TRAIN: self.total("train"), HELDOUT: self.total("held_out")}
        return {split: number for split, number in counts.items() if number}

    def total(self, column: str) -> int:
        """The sum of a column of `rows`."""
        return sum(row[column] for row in self.rows)

    @property
    def text_bytes(self) -> int:
        """Of all published texts."""
        return sum(file["text_bytes"] for file in self.documents)

    @property
    def licenses(self) -> tuple[LicenseStatistics, ...]:
        """By source; none if no document has a licence."""
        return license_statistics(self.documents)

    @property
    def languages(self) -> list[str]:
        """The languages that the filters of the sources keep; none unless each source has such a filter."""
        found: set[str] = set()
        for source in self.config["sources"]:
            kept = [
                code
                for entry in source["clean"]["filters"]
                if isinstance(entry, Mapping)
                for code in (entry.get(_LANGUAGE) or {}).get("allow", ())
            ]
            if not kept:
                return []
            found.update(kept)
        return sorted(found)

    @property
    def version(self) -> str:
        """`1.N.0` for snapshot N."""
        return f"1.{self.snapshot}.0"

    @property
    def description(self) -> str:
        """One sentence."""
        day = f" as of {self.day}" if self.day else ""
        return (
            f"A deduplicated, dated text corpus{day}: {sum(self.splits.values()):,} documents of "
            f"{len(self.rows):,} sources, with a ledger of all that was removed; built by FinPile {self.finpile}."
        )
