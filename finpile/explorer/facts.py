"""What filters measured: scores of kept documents, which are in `meta`, and values of removed ones in the ledger."""

from __future__ import annotations

import json
from collections.abc import Iterable, Mapping
from typing import Any

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.compute as pc

from finpile.config import from_dict
from finpile.errors import ConfigError
from finpile.plugins.filter import FILTERS, Bounds

#: Bins of scores from 0 to 1.
SCORE_BINS = 50
#: Bins of values below a bound, of equal width; and those of values above it, per doubling.
BELOW_BINS, ABOVE_BINS = 20, 4

_NUMBER = r"[0-9]+(?:\.[0-9]+)?(?:e[-+]?[0-9]+)?"
#: `49 words < 50`, `en 0.512 < 0.65`: what `Rejection.outside` and filters with labels write.
_MEASURED = rf"^(?:\S+ )?(?P<value>{_NUMBER})(?: [^<>]*)? (?P<side>[<>]) (?P<bound>{_NUMBER})$"

FactBounds = Mapping[str, list[Bounds] | None]


def fact_bounds(config: Mapping[str, Any]) -> FactBounds:
    """By key of `meta` that a filter of the corpus sets: the different bounds of a score, None for a name.

    Without keys if the corpus has none, or if a filter of another package is not installed.
    """
    try:
        sources = from_dict(config).sources if config.get("sources") else ()
    except ConfigError:
        return {}
    found: dict[str, list[Bounds] | None] = {}
    for entry in (entry for source in sources for entry in source.clean.filters):
        rules = FILTERS.get(entry.name)
        for key, bounds in (rules.bounds(entry.parameters) if rules.bounds else {}).items():
            if bounds is None:
                found[key] = None
            else:
                known = found.setdefault(key, [])
                if known is not None and bounds not in known:
                    known.append(bounds)
    return found


def facts_of(metas: Iterable[str], keys: Iterable[str]) -> pa.Array:
    """Of each `meta` the values of the keys, as JSON; null if it has none of them.

    A record may have other values under these keys where no filter set them: those that are neither text nor from 0 to
    1 are left out.

    >>> facts_of(['{"language":"en","cik":1}', '{"language":["en"]}'], ["language"]).to_pylist()
    ['{"language":"en"}', None]
    """
    wanted = tuple(keys)
    return pa.array([_facts(meta, wanted) for meta in metas], pa.string())


def _facts(meta: str, keys: tuple[str, ...]) -> str | None:
    values = json.loads(meta)
    found = {key: values[key] for key in keys if _is_fact(values.get(key))}
    return json.dumps(found, ensure_ascii=False, separators=(",", ":")) if found else None


def _is_fact(value: Any) -> bool:
    return isinstance(value, str) or (isinstance(value, int | float) and 0 <= value <= 1)


def names_and_scores(rows: pa.Table) -> tuple[pa.Table, pa.Table]:
    """The facts of documents: source, split, day and key of each, with its `name`, or with the `bin` of a score."""
    at: dict[str, list[int]] = {"name": [], "bin": []}
    keys: dict[str, list[str]] = {"name": [], "bin": []}
    values: dict[str, list[Any]] = {"name": [], "bin": []}
    for number, facts in enumerate(rows["facts"].to_pylist()):
        for key, value in (json.loads(facts) if facts else {}).items():
            kind = "name" if isinstance(value, str) else "bin"
            at[kind].append(number)
            keys[kind].append(key)
            values[kind].append(value if kind == "name" else score_bin(value))
    names, scores = (
        rows.select(["source", "split", "day"])
        .take(pa.array(at[kind], pa.int64()))
        .append_column("key", pa.array(keys[kind], pa.string()))
        .append_column(kind, pa.array(values[kind], pa.string() if kind == "name" else pa.int32()))
        for kind in ("name", "bin")
    )
    return names, scores


def score_bin(score: float) -> int:
    """The bin of a score from 0 to 1.

    >>> score_bin(0), score_bin(0.65), score_bin(1)
    (0, 32, 49)
    """
    return min(SCORE_BINS - 1, int(SCORE_BINS * score))


def measured(rows: pa.Table) -> pa.Table:
    """Rows of the ledger whose `detail` is a value beside its bound: reason, source, day, `side`, `bound` and `bin`.

    A value below its bound is in one of `BELOW_BINS` bins from 0 to the bound; above it, bin n begins at the bound
    times 2 ** (n / `ABOVE_BINS`). Values above a bound of 0 have no bin, and are left out.
    """
    found = pc.extract_regex(rows["detail"], pattern=_MEASURED)
    kept = pc.is_valid(found)
    value, bound = (_numbers(pc.struct_field(found, name).filter(kept)) for name in ("value", "bound"))
    side = pc.struct_field(found, "side").filter(kept)
    is_below = pc.equal(side, "<").to_numpy()
    ratio = np.divide(value, bound, out=np.zeros(len(value)), where=bound > 0)
    above = np.floor(ABOVE_BINS * np.log2(np.maximum(ratio, 1)))
    bins = np.where(is_below, np.minimum(np.floor(BELOW_BINS * ratio), BELOW_BINS - 1), above).astype(np.int32)
    table = rows.select(["reason", "source", "day"]).filter(kept)
    for name, column in (("side", side), ("bound", pa.array(bound)), ("bin", pa.array(bins))):
        table = table.append_column(name, column)
    return table.filter(pa.array(bound > 0))


def _numbers(texts: pa.ChunkedArray) -> npt.NDArray[np.float64]:
    return np.asarray(texts.cast(pa.float64()), np.float64)
