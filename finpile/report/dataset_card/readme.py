"""`README.md`: the dataset card that the Hugging Face Hub shows, and from which `datasets` takes configurations.

Source: https://huggingface.co/docs/hub/datasets-cards, https://huggingface.co/docs/hub/datasets-manual-configuration
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any

import yaml

from finpile.documents.document import DOCUMENT_FOLDERS, label_of
from finpile.documents.ledger import LEDGER_FOLDERS
from finpile.documents.split import HELDOUT, TRAIN
from finpile.plugins import stages
from finpile.report.dataset_card.contents import CardFacts
from finpile.report.figures import count, name
from finpile.report.licenses import licenses_table
from finpile.report.render import escape_markdown, to_markdown
from finpile.report.statistics import published_by_source
from finpile.report.table import Column, Line, Row, RowKind, Table

#: The upper bounds of the Hub's `size_categories`, and their names.
_SIZES = (
    (10**3, "n<1K"), (10**4, "1K<n<10K"), (10**5, "10K<n<100K"), (10**6, "100K<n<1M"), (10**7, "1M<n<10M"),
    (10**8, "10M<n<100M"), (10**9, "100M<n<1B"), (10**10, "1B<n<10B"), (10**11, "10B<n<100B"), (10**12, "100B<n<1T"),
)  # fmt: skip
_LARGEST = "n>1T"
#: The Hub's identifiers of licences, which are SPDX's in lower case; others are `other`.
#: Source: https://huggingface.co/docs/hub/repositories-licenses
_LICENSES = frozenset({
    "agpl-3.0", "apache-2.0", "artistic-2.0", "bsd-2-clause", "bsd-3-clause", "bsl-1.0", "cc-by-2.0", "cc-by-2.5",
    "cc-by-3.0", "cc-by-4.0", "cc-by-nc-2.0", "cc-by-nc-3.0", "cc-by-nc-4.0", "cc-by-nc-nd-3.0", "cc-by-nc-nd-4.0",
    "cc-by-nc-sa-2.0", "cc-by-nc-sa-3.0", "cc-by-nc-sa-4.0", "cc-by-nd-4.0", "cc-by-sa-3.0", "cc-by-sa-4.0",
    "cc0-1.0", "cdla-permissive-1.0", "cdla-permissive-2.0", "cdla-sharing-1.0", "epl-2.0", "eupl-1.2", "gpl-2.0",
    "gpl-3.0", "isc", "lgpl-2.1", "lgpl-3.0", "mit", "mpl-2.0", "odbl", "odc-by", "pddl", "postgresql", "unlicense",
    "zlib",
})  # fmt: skip
_OTHER, _UNKNOWN = "other", "unknown"


def readme(facts: CardFacts) -> str:
    """The card of a corpus."""
    head = yaml.safe_dump(_head(facts), sort_keys=False, allow_unicode=True, width=120)
    return f"---\n{head}---\n\n" + "\n".join(_body(facts))


def _head(facts: CardFacts) -> dict[str, Any]:
    number = sum(facts.splits.values())
    return {
        "pretty_name": facts.name,
        "license": hub_licenses(facts),
        **({"language": facts.languages} if facts.languages else {}),
        "size_categories": [next((name for bound, name in _SIZES if number < bound), _LARGEST)],
        "task_categories": ["text-generation"],
        "tags": ["croissant", "finpile"],
        "configs": _configs(facts),
        "dataset_info": _info(facts),
    }


def hub_licenses(facts: CardFacts) -> list[str]:
    """The Hub's identifiers of the licences of documents."""
    named = {row.license for row in facts.licenses} or {None}
    known = {_UNKNOWN if value is None else value.lower() for value in named}
    return sorted({value if value in (*_LICENSES, _UNKNOWN) else _OTHER for value in known})


def _configs(facts: CardFacts) -> list[dict[str, Any]]:
    files = [{"split": split, "path": f"documents/**/{split}-*.parquet"} for split in facts.splits]
    found: list[dict[str, Any]] = [{"config_name": "documents", "default": True, "data_files": files}]
    if facts.below("removed"):
        ledger = [{"split": "removed", "path": "removed/**/*.parquet"}]
        found.append({"config_name": "removed", "data_files": ledger})
    return found


def _info(facts: CardFacts) -> list[dict[str, Any]]:
    """The rows of each split, which `datasets` compares, and the bytes of their texts."""
    sizes = dict.fromkeys(facts.splits, 0)
    for file in facts.documents:
        sizes[HELDOUT if file["heldout"] else TRAIN] += file["text_bytes"]
    splits = {"documents": [(split, number, sizes[split]) for split, number in facts.splits.items()]}
    if ledger := facts.below("removed"):
        rows = sum(file.num_rows or 0 for file in ledger)
        splits["removed"] = [("removed", rows, facts.total("removed_bytes"))]
    return [
        {
            "config_name": config,
            "splits": [{"name": name, "num_bytes": size, "num_examples": rows} for name, rows, size in found],
            "download_size": sum(file.size_bytes for file in facts.below(config)),
            "dataset_size": sum(size for *_, size in found),
        }
        for config, found in splits.items()
    ]


def _body(facts: CardFacts) -> Iterator[str]:
    yield f"# {escape_markdown(facts.name)}\n"
    yield f"{facts.description}\n"
    yield "```python\nfrom datasets import load_dataset\n"
    yield "documents = load_dataset(PATH)                 # " + " and ".join(facts.splits)
    if facts.below("removed"):
        yield 'ledger = load_dataset(PATH, "removed")         # removed documents and spans, with reasons'
    yield "```\n"
    yield (
        f"`PATH` is the folder of this file, or the name of its repository. The columns "
        f"{' and '.join(f'`{column}`' for column in DOCUMENT_FOLDERS)} of documents, and `{LEDGER_FOLDERS[0]}` of the "
        "ledger, are names of folders: `datasets` does not read them, Arrow, Polars, DuckDB and pandas do. "
        "`croissant.json` describes the files, their columns and checksums, and where they come from.\n"
    )
    yield to_markdown(_sources(facts))
    if facts.licenses:
        yield to_markdown(licenses_table(facts.licenses))
    yield to_markdown(_removed(facts))
    if facts.num_taken_down:
        yield f"{facts.num_taken_down:,} documents were taken down on request; their texts are in no table.\n"
    if facts.snapshot:
        yield f"This is snapshot {facts.snapshot} of the corpus; the build is number 0.\n"


def _sources(facts: CardFacts) -> Table:
    text_bytes = {label_of(row): row["num_bytes"] for row in published_by_source(facts.documents)}
    lines = [_line(f"{row['dataset']}: {row['source']}", row, text_bytes.get(label_of(row), 0)) for row in facts.rows]
    totals = {"train": facts.total("train"), "held_out": facts.total("held_out")}
    total = _line("Total", totals, facts.text_bytes)
    after = facts.config["heldout"]["after"]
    return Table(
        name="sources",
        title="Sources",
        caption="Documents of each split, and bytes of their texts."
        + (f" Documents after {after} are held out." if after else ""),
        columns=tuple(total),
        rows=(*map(Row.of, lines), Row.of(total, kind=RowKind.TOTAL)),
    )


def _line(label: str, documents: Mapping[str, int], text_bytes: int) -> Line:
    return {
        Column("source", "Source"): name(label),
        Column("train", "Train"): count(documents["train"]),
        Column("heldout", "Held out"): count(documents["held_out"]),
        Column("text_bytes", "Bytes"): count(text_bytes),
    }


def _removed(facts: CardFacts) -> Table:
    columns = {name: name for name in stages.dedup_stages()} | {"ingest": "unreadable", "clean": "cleaned_out"}
    counted = [(stage, facts.total(columns[stage])) for stage in facts.stages if columns.get(stage) in facts.rows[0]]
    return Table(
        name="removed",
        title="Removed documents",
        caption=f"Of {facts.total('read'):,} documents and records that were read, by stage. Removed bytes, those of "
        f"spans too: {facts.total('removed_bytes'):,}.",
        columns=(Column("stage", "Stage"), Column("num_docs", "Documents")),
        rows=tuple(Row(cells=(name(stage), count(number))) for stage, number in counted),
    )
