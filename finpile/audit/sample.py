"""The sample that a person judges: removals of each stage and source, and pairs just below the limit of `near`.

A sample depends on the build and on its two sizes alone: those rows of the ledger are taken whose digests are smallest,
so a larger sample has the items of a smaller one. It is kept in OUT/audit/sample.json, without texts, and is drawn
again for another build.

An item has a digest of what a person is shown: the texts of the document and of the copy that was kept, and their rows
of the ledger. It is equal in two builds only if all of that is.
"""

from __future__ import annotations

import hashlib
import json
from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import asdict, dataclass, fields
from typing import Any, Literal, NamedTuple

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.compute as pc

from finpile import storage
from finpile.errors import InputError
from finpile.explorer.corpus import Corpus, records
from finpile.explorer.ids import packed
from finpile.explorer.pairs import Compared, compare_sample
from finpile.output.layout import values_in_path
from finpile.output.published_files import Advance
from finpile.output.takedowns import TAKEDOWN
from finpile.plugins import stages
from finpile.splitmix import GOLDEN, mix
from finpile.version import __version__

#: Removals of each stage and source, and documents of each dataset whose pairs are looked for, by default.
REMOVALS = 20
DOCUMENTS = 1000
NEAR = "near"
#: The columns of a removal that its judgement is bound to, beside the digest of what was shown.
_COLUMNS = ["id", "dataset", "source", "reason", "start", "end", "duplicate_of"]
_SHOWN_OF_ROW = ("stage", "reason", "start", "end", "duplicate_of", "duplicate_offset", "detail", "removed_text")

Kind = Literal["removal", "pair"]


class Stratum(NamedTuple):
    """What items are drawn from, and estimates are made for."""

    kind: Kind
    stage: str
    source: str
    """DATASET/NAME."""


@dataclass(frozen=True, kw_only=True, slots=True)
class Item:
    """What a person judges: whether a removal is right, or whether one of two documents should have been removed."""

    kind: Kind
    stage: str
    source: str
    id: str
    """Of a pair, the document that would be removed."""
    other: str | None
    """The copy that was kept, or the other document of the pair."""
    start: int | None
    """Null: the whole document."""
    end: int | None
    reason: str
    """Of a pair, empty."""
    similarity: float | None
    """Of the words of a pair."""
    shown: str
    """Digest of what the person is shown; it names the item."""

    @property
    def stratum(self) -> Stratum:
        return Stratum(self.kind, self.stage, self.source)


@dataclass(frozen=True, kw_only=True, slots=True)
class Sample:
    """The items in the order in which they are judged, and what they stand for."""

    items: tuple[Item, ...]
    removals: Mapping[Stratum, int]
    """The removals of each stratum of the build."""
    kept: Mapping[Stratum, int]
    """The kept documents of each stratum of pairs; empty if no pairs were looked for."""
    compared: Mapping[Stratum, int]
    """Those of them that were compared with all others."""
    note: str
    """Why there are no pairs, or empty."""


def open_sample(corpus: Corpus, removals: int | None, documents: int | None, advance: Advance) -> Sample:
    """The sample of the build, from its file, or drawn and written there.

    `removals` of each stage and source, and the pairs of `documents` of each dataset. None: as in the file, or the
    default.

    Raises: InputError if the file is damaged; IntegrityError if a file of the build is.
    """
    url = storage.join(corpus.layout.audit, "sample.json")
    try:
        before = storage.read_json(url) if storage.is_file(url) else None
        sizes = before["made"]["sizes"] if before is not None else [REMOVALS, DOCUMENTS]
        wanted = [
            given if given is not None else int(size) for given, size in zip((removals, documents), sizes, strict=True)
        ]
        made = {"checksum": corpus.checksum, "finpile": __version__, "sizes": wanted}
        if before is not None and before["made"] == made:
            return _from_json(before)
    except (ValueError, TypeError, LookupError) as error:
        raise InputError(f"{url} is damaged ({error!r}): delete it, and run the command again") from None
    sample = draw(corpus, wanted[0], wanted[1], advance)
    storage.write_json(url, {"made": made, **_to_json(sample)})
    return sample


def draw(corpus: Corpus, removals: int, documents: int, advance: Advance = lambda amount: None) -> Sample:
    """`removals` of each stage and source, and the pairs of `documents` of each dataset.

    Raises: IntegrityError if a file of the build is missing or damaged.
    """
    drawn, num_removals = _removals(corpus, removals)
    compared = compare_sample(corpus, documents, advance) if documents else None
    pairs = _pairs(compared) if compared is not None and compared.complete else []
    known = records(corpus, {name for row in (*drawn, *pairs) for name in (row["id"], row["other"]) if name})
    by_shown = {(item := Item(**row, shown=_shown(row, known))).shown: item for row in (*drawn, *pairs)}
    kept, examined = Counter[Stratum](), Counter[Stratum]()
    if compared is not None and compared.complete:
        kept.update({Stratum("pair", NEAR, source): size for source, size in compared.num_documents.items()})
        examined.update(Stratum("pair", NEAR, source) for source in compared.sampled.values())
    return Sample(
        items=_in_turns(by_shown.values()),
        removals=num_removals,
        kept=kept,
        compared=examined,
        note=_note(documents, compared),
    )


def _note(documents: int, compared: Compared | None) -> str:
    if not documents:
        return "No pairs were looked for."
    if compared is None:
        return "The build has no stage near."
    if not compared.complete:
        return (
            f"The sampled documents have more than {compared.num_compared:,} candidates for pairs, which were not all "
            "compared: what is missed is not estimated. Give fewer documents with --pairs."
        )
    return ""


def _removals(corpus: Corpus, number: int) -> tuple[list[dict[str, Any]], dict[Stratum, int]]:
    """The sampled removals of each stage and source, the one of the smallest digest first, and how many there are.

    Rows that took no text are no removals, and tombstones have nothing to show.
    """
    found: dict[Stratum, pa.Table] = {}
    sizes: Counter[Stratum] = Counter()
    for file in corpus.files.below("removed"):
        stage = values_in_path(file.path)["stage"]
        if stage == TAKEDOWN:
            continue
        rows = file.pages(_COLUMNS)
        rows = rows.filter(pc.or_kleene(pc.is_null(rows["start"]), pc.greater(rows["end"], rows["start"])))
        rows = rows.append_column("rank", pa.array(_ranks(rows)))
        names = (rows[name].cast(pa.string()) for name in ("dataset", "source"))
        source = pc.binary_join_element_wise(*names, "/")
        for name in pc.unique(source).to_pylist():
            stratum = Stratum("removal", stage, name)
            some = rows.filter(pc.equal(source, name))
            sizes[stratum] += some.num_rows
            both = pa.concat_tables([found[stratum], some]) if stratum in found else some
            order = [(key, "ascending") for key in ("rank", "id", "start", "reason")]
            found[stratum] = both.take(pc.sort_indices(both, order)[:number])
    drawn = []
    for stratum, table in sorted(found.items()):
        for row in table.to_pylist():
            keys = {key: row[key] for key in ("id", "reason", "start", "end")}
            drawn.append({**stratum._asdict(), **keys, "other": row["duplicate_of"], "similarity": None})
    return drawn, dict(sizes)


def _ranks(rows: pa.Table) -> npt.NDArray[np.uint64]:
    """A digest of the id and the span of each row."""
    if not rows.num_rows:
        return np.zeros(0, np.uint64)
    ids = np.frombuffer(packed(rows["id"]).buffers()[1], "<u8").reshape(-1, 2)
    start, end = (pc.fill_null(rows[name], -1).to_numpy().astype(np.int64).view(np.uint64) for name in ("start", "end"))
    return mix(mix(mix(ids[:, 0] ^ (start * GOLDEN)) ^ ids[:, 1]) ^ (end * GOLDEN))


def _pairs(compared: Compared) -> list[dict[str, Any]]:
    """For each sampled document that has one, the most similar document that comes before it.

    Of a group of N duplicates, N - 1 have one before them: as many as `near` would remove. The order is that of the
    second halves of the ids, because the documents with the smallest first halves are the sample.
    """
    found: dict[str, dict[str, Any]] = {}
    for pair in compared.pairs:  # the most similar first
        before, after = sorted((pair["a"], pair["b"]), key=lambda name: (name[16:], name))
        if after in compared.sampled and after not in found:
            keys: dict[str, Any] = {"kind": "pair", "stage": NEAR, "source": compared.sampled[after], "reason": ""}
            found[after] = {**keys, "id": after, "other": before, "start": None, "end": None}
            found[after]["similarity"] = pair["similarity"]
    return [found[name] for name in sorted(found)]


def _shown(row: Mapping[str, Any], known: Mapping[str, Any]) -> str:
    """Digest of what a person is shown of an item."""
    bound = [row[key] for key in ("kind", "stage", "reason", "id", "start", "end", "other")]
    texts = [_texts(known.get(name), row["kind"]) for name in (row["id"], row["other"]) if name]
    data = json.dumps([bound, texts], ensure_ascii=True, separators=(",", ":")).encode()
    return hashlib.blake2b(data, digest_size=16).hexdigest()


def _texts(record: Mapping[str, Any] | None, kind: Kind) -> Any:
    if record is None:
        return None
    text = record["document"] and record["document"]["text"]
    if kind == "pair":
        return text
    rows = [[row[key] for key in _SHOWN_OF_ROW] for row in record["removals"]]
    return [text, sorted(rows, key=json.dumps)]


def _in_turns(items: Iterable[Item]) -> tuple[Item, ...]:
    """The first item of each stratum, then the second of each: whoever ends early has judged all strata alike.

    Removals of a stratum come in their order; pairs in that of their digests, for their ids are not by chance.
    """
    order = {name: number for number, name in enumerate(stages.names())}
    groups: dict[Stratum, list[Item]] = {}
    for item in items:
        groups.setdefault(item.stratum, []).append(item)
    ranked = []
    for stratum, group in groups.items():
        if stratum.kind == "pair":
            group.sort(key=lambda item: item.shown)
        place = (stratum.kind == "pair", order[stratum.stage], stratum.source)
        ranked += [(number, *place, item) for number, item in enumerate(group)]
    return tuple(entry[-1] for entry in sorted(ranked, key=lambda entry: entry[:-1]))


def _to_json(sample: Sample) -> dict[str, Any]:
    counts = {name: getattr(sample, name) for name in ("removals", "kept", "compared")}
    listed: dict[str, Sequence[Any]] = {
        name: [[*stratum, size] for stratum, size in sorted(value.items())] for name, value in counts.items()
    }
    return {"items": [asdict(item) for item in sample.items], "note": sample.note, **listed}


def _from_json(value: Mapping[str, Any]) -> Sample:
    counts = {
        name: {Stratum(kind, stage, source): int(size) for kind, stage, source, size in value[name]}
        for name in ("removals", "kept", "compared")
    }
    names = {field.name for field in fields(Item)}
    items = tuple(Item(**{name: entry[name] for name in names}) for entry in value["items"])
    return Sample(items=items, note=str(value["note"]), **counts)
