"""The day of a corpus as of a day, and the builds that have one."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from datetime import date
from typing import Any

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from finpile.dedup.order import UNDATED, ends
from finpile.documents.split import end_of_day
from finpile.errors import ConfigError
from finpile.output.build_state import BuildState
from finpile.output.manifest import CERTIFICATE
from finpile.plugins import stages


@dataclass(frozen=True, slots=True)
class Cut:
    """The documents that were there on a day."""

    day: date
    undated: bool = False
    """Whether documents without a timestamp are among them."""

    @property
    def end(self) -> int:
        """The last second of the day, since 1970 UTC."""
        return int(end_of_day(self.day).timestamp())

    @property
    def arguments(self) -> tuple[str, ...]:
        """Those of `finpile as-of` that say which documents."""
        return (self.day.isoformat(), *(("--undated",) if self.undated else ()))

    def has(self, timestamps: pa.ChunkedArray) -> npt.NDArray[np.bool_]:
        """Whether each document is among them, by its timestamp."""
        found = ends_of(timestamps)
        is_there: npt.NDArray[np.bool_] = (found <= self.end) | (self.undated & (found == UNDATED))
        return is_there

    def certificate(self, manifest: Mapping[str, Any]) -> dict[str, Any]:
        """What the manifest of the corpus as of the day says, from that of the whole build; the list of documents that
        were taken down is added to it."""
        return {"date": self.day.isoformat(), "undated": self.undated, "of": manifest["checksum"]}

    @classmethod
    def of(cls, certificate: Mapping[str, Any]) -> Cut:
        """The inverse of `certificate`."""
        return cls(date.fromisoformat(certificate["date"]), certificate["undated"])


def ends_of(timestamps: pa.ChunkedArray) -> npt.NDArray[np.int64]:
    """The last second that each published timestamp can mean, since 1970 UTC; `UNDATED` for nulls."""
    return ends(timestamps.cast(pa.timestamp("s", "UTC")))


def check_causal(out: str, manifest: Mapping[str, Any], cut: Cut) -> None:
    """Raises: ConfigError for a build whose decisions may depend on later documents, or that ends before the day."""
    again = BuildState.of_config(manifest["config"], is_whole=True).command(out)
    remedy = f"and run `{again}` again"
    if manifest["config"]["dedup"].get("order") != "time":
        raise ConfigError(
            f"{out}: its decisions about documents depend on later ones: set `dedup: {{order: time}}` in the corpus "
            f"file (of `finpile dedup`: --order time), {remedy}"
        )
    if manifest["config"]["contamination"] is not None:
        raise ConfigError(
            f"{out}: the stage contamination counts phrases in all documents, later ones too: remove `contamination` "
            f"from the corpus file, {remedy}"
        )
    ran = [stages.find(stage["stage"]) for stage in manifest["stages"]]
    if added := [info.name for info in ran if info in stages.added()]:
        raise ConfigError(
            f"{out}: nothing is known about the order in which the stage {added[0]} of another package decides: "
            f"remove `dedup.{added[0]}` from the corpus file, {remedy}"
        )
    before = manifest.get(CERTIFICATE)
    if before is not None and (cut.day.isoformat() > before["date"] or cut.undated > before["undated"]):
        what = "later" if cut.day.isoformat() > before["date"] else "undated"
        raise ConfigError(
            f"{out} is itself a corpus as of {before['date']}, which has no {what} documents: name the whole build"
        )
