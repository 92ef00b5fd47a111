"""Bits per byte of several models beside each other: tables, figure 3 of BloombergGPT, and loss by document date.

The figures are those of `evaluation.json`:

    {"on": OUT, "limit": N, "types": RULE, "period": "quarter", "heldout_after": DATE,
     "models": [{"name": ..., "step": ..., "window": ..., "splits": {"heldout": BREAKDOWN, "train": BREAKDOWN}}]}

    BREAKDOWN   {"total": SUMS, "sources": [...], "types": [...], "years": [...], "months": [...]}, each entry of a list
                with the names of its group and SUMS; a name of null is that of documents without date or type
    SUMS        {"num_documents", "num_bytes", "num_tokens", "num_unknown", "bits", "bits_per_byte", "bits_per_token"}
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from finpile.documents.split import HELDOUT, TRAIN
from finpile.report.drawing.grouped_bars import BarChart
from finpile.report.figures import Cell, count, decimal, name
from finpile.report.table import Column, Field, Row, RowKind, Table, columns, table_of

Report = Mapping[str, Any]
Entry = Mapping[str, Any]

UNDATED, UNTYPED = "undated", "no type"
OVERALL = "Overall"
#: Groups of a table and of a chart; the smallest are summed in one row.
_MOST_ROWS, _MOST_BARS = 100, 24


@dataclass(frozen=True, slots=True)
class Group:
    """Some documents, and their sums under each model."""

    label: str
    entries: Sequence[Entry]
    """One for each model; documents and bytes are equal."""
    dataset: str = ""
    kind: RowKind = RowKind.PLAIN

    @property
    def num_bytes(self) -> int:
        return int(self.entries[0]["num_bytes"])


def model_names(report: Report) -> list[str]:
    return [model["name"] for model in report["models"]]


def groups(report: Report, split: str, by: str, label: Callable[[Entry], str]) -> list[Group]:
    """The groups of a breakdown (`sources`, `types`, `years`, `months`) of one split."""
    parts = [model["splits"][split][by] for model in report["models"]]
    return [Group(label(entries[0]), entries, entries[0].get("dataset", "")) for entries in zip(*parts, strict=True)]


def overall(report: Report, split: str = HELDOUT) -> Group:
    """All documents of a split."""
    totals = [model["splits"][split]["total"] for model in report["models"]]
    return Group(OVERALL, totals, kind=RowKind.TOTAL)


def source_groups(report: Report, split: str = HELDOUT) -> list[Group]:
    """The sources, with the name of the dataset where two have the same."""
    return groups(report, split, "sources", lambda entry: f"{entry['dataset']}: {entry['source']}")


def type_groups(report: Report) -> list[Group]:
    """The held-out types of each source."""
    return groups(report, HELDOUT, "types", lambda entry: f"{entry['source']}: {entry['type'] or UNTYPED}")


def largest(found: Sequence[Group], most: int) -> list[Group]:
    """At most this many groups in their order: those with the most bytes, and one of all others."""
    if len(found) <= most:
        return list(found)
    kept = set(sorted(range(len(found)), key=lambda index: (-found[index].num_bytes, index))[: most - 1])
    rest = [group for index, group in enumerate(found) if index not in kept]
    entries = [summed(entries) for entries in zip(*(group.entries for group in rest), strict=True)]
    return [*(found[index] for index in sorted(kept)), Group(f"{len(rest):,} others", entries)]


def summed(entries: Iterable[Entry]) -> Entry:
    """The sums of several groups under one model."""
    entries = list(entries)
    names = ("num_documents", "num_bytes", "num_tokens", "num_unknown", "bits")
    sums: dict[str, Any] = {key: sum(entry[key] for entry in entries) for key in names}
    sums["bits_per_byte"] = sums["bits"] / sums["num_bytes"] if sums["num_bytes"] else None
    sums["bits_per_token"] = sums["bits"] / sums["num_tokens"] if sums["num_tokens"] else None
    return sums


_MODEL: Sequence[Field[Mapping[str, Any]]] = (
    Field("model", "Model", lambda model: name(model["name"])),
    Field("step", "Step", lambda model: count(model["step"])),
    Field("window", "Window", lambda model: count(model["window"])),
    Field("tokens", "Tokens", lambda model: count(_total(model)["num_tokens"])),
    Field("bits_per_token", "Bits/token", lambda model: decimal(_total(model)["bits_per_token"], ".3f")),
    Field("bits_per_byte", "Bits/byte", lambda model: decimal(_total(model)["bits_per_byte"], ".4f")),
)


def models_table(report: Report) -> Table:
    """A row for each model: what it reads, and its sums over all held-out documents."""
    total = _total(report["models"][0])
    return table_of(
        report["models"],
        _MODEL,
        name="bits_models",
        title="Models",
        caption=f"{total['num_documents']:,} held-out documents, {total['num_bytes']:,} bytes of text"
        f"{_sample(report)}. A model reads windows of this many tokens, of which the first half is context in all but "
        "the first.",
        footnotes=tuple(_unknown(report)),
    )


def _total(model: Mapping[str, Any]) -> Entry:
    """The sums of all held-out documents under a model."""
    total: Entry = model["splits"][HELDOUT]["total"]
    return total


def _sample(report: Report) -> str:
    return f" (at most {report['limit']:,} of each source)" if report["limit"] else ""


def _unknown(report: Report) -> Iterable[str]:
    for model in report["models"]:
        total = _total(model)
        if total["num_unknown"]:
            yield (
                f"{model['name']}: {total['num_unknown']:,} of {total['num_tokens']:,} tokens replace text that its "
                "tokenizer cannot encode, so its bits per byte are too low."
            )


def breakdown_tables(report: Report) -> list[Table]:
    """Held-out bits per byte by source, by type if types are known, and by year; training documents by source."""
    tables = [
        group_table("bits_by_source", "Held-out bits per byte by source", "Source", report, source_groups(report)),
        group_table("bits_by_type", "Held-out bits per byte by document type", "Type", report, type_groups(report)),
        group_table("bits_by_year", "Held-out bits per byte by year", "Year", report, _years(report)),
    ]
    if TRAIN in report["models"][0]["splits"]:
        title = "Bits per byte of training documents by source"
        tables.append(
            group_table("bits_of_training", title, "Source", report, source_groups(report, TRAIN), split=TRAIN)
        )
    return [table for table in tables if len(table.rows) > 1]


def _years(report: Report) -> list[Group]:
    return groups(report, HELDOUT, "years", lambda entry: entry["year"] or UNDATED)


def group_table(
    table_name: str, title: str, what: str, report: Report, found: Sequence[Group], split: str = HELDOUT
) -> Table:
    """Documents, bytes, and the bits per byte of each model, by group; all of them in the first row."""
    shown = [overall(report, split), *largest(found, _MOST_ROWS)] if found else []
    return Table(
        name=table_name,
        title=title,
        caption="Bits to predict the tokens of a text, over the UTF-8 bytes of the text; lower is better.",
        columns=group_columns("group", what, report),
        rows=tuple(Row(cells=group_cells(group), kind=group.kind, group=group.dataset) for group in shown),
    )


def group_columns(key: str, title: str, report: Report) -> tuple[Column, ...]:
    """The columns of `group_cells`; `key` and `title` are those of the label."""
    models = {model: model for model in model_names(report)}
    return columns({key: title, "num_documents": "Documents", "num_bytes": "Bytes", **models})


def group_cells(group: Group) -> tuple[Cell, ...]:
    """Label, documents, bytes, and bits per byte of each model."""
    first = group.entries[0]
    sizes = (count(first["num_documents"]), count(first["num_bytes"]))
    return (name(group.label), *sizes, *(decimal(entry["bits_per_byte"], ".4f") for entry in group.entries))


def figure3(report: Report) -> BarChart:
    """Figure 3: bits per byte of all held-out documents and of each source, a bar for each model.

    The paper's document types are its sources: Bloomberg, Filings, News, Press, Web.
    """
    found = source_groups(report)
    sources = [entry["source"] for entry in report["models"][0]["splits"][HELDOUT]["sources"]]
    if len(set(sources)) == len(sources):
        found = [Group(source, group.entries) for source, group in zip(sources, found, strict=True)]
    return _bars("Held-out bits per byte by source", report, found)


def type_chart(report: Report) -> BarChart | None:
    """The same by document type; None if types are not known."""
    found = type_groups(report)
    return _bars("Held-out bits per byte by document type", report, found) if found else None


def _bars(title: str, report: Report, found: Sequence[Group]) -> BarChart:
    shown = [overall(report), *largest(found, _MOST_BARS)]
    return BarChart(
        title=title,
        x_title="bits per byte, lower is better",
        groups=[group.label for group in shown],
        series=model_names(report),
        values=[[entry["bits_per_byte"] for entry in group.entries] for group in shown],
    )


def long_table(report: Report) -> Table:
    """Every sum of every group, one row each, for CSV."""
    names = ("num_documents", "num_bytes", "num_tokens", "num_unknown", "bits", "bits_per_byte")
    keys = ("model", "split", "by", "dataset", "source", "group", *names)
    rows = []
    for model in report["models"]:
        for split, breakdown in model["splits"].items():
            total = [("all", {**breakdown["total"]})]
            entries = [(by, entry) for by in ("sources", "types", "years", "months") for entry in breakdown[by]]
            for by, entry in [*total, *entries]:
                group = next((entry[key] for key in ("type", "year", "month") if key in entry), None)
                texts = (model["name"], split, by, entry.get("dataset", ""), entry.get("source", ""), group or "")
                sums = (Cell(str(entry[key]), entry[key]) for key in names)
                rows.append(Row(cells=(*map(name, texts), *sums)))
    titles = {key: key for key in keys}
    return Table(name="evaluation", title="Bits per byte", caption="", columns=columns(titles), rows=tuple(rows))
