"""`finpile dedup`: deduplication alone."""

from __future__ import annotations

import time
import typing
from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import TYPE_CHECKING, Any

import click

from finpile.config import CorpusConfig, DedupConfig, HeldoutConfig, NearConfig, SubstringConfig
from finpile.errors import ConfigError, command_line, count_of
from finpile.output.build_state import DEDUP_NAME
from finpile_cli.build import fitted, stage_lines
from finpile_cli.console import Console, json_option, quantity
from finpile_cli.display import Display
from finpile_cli.engine import Again, BeamOptionsLast, Placement, again_options, heavy_imports, placement_options
from finpile_cli.option_groups import memory_option, named_by_options, number_or, shard_size_option
from finpile_cli.paths import PathOrUrl, output_option, takedowns_option, text_field_option

if TYPE_CHECKING:
    from finpile_cli.dedup_inputs import Inputs

_NEAR = NearConfig()
_SUBSTRING = SubstringConfig()
#: Text that keeps a process busy long enough to be worth its start.
_WORKER_BYTES = 64 << 20
#: Columns of the closing table. `substring` counts documents, and is left out if it is 0; `cut` counts bytes.
_COLUMNS = ("input", "read", "unreadable", "exact", "near", "substring", "cut", "kept", "bytes in", "bytes out")


def _values(config: type, name: str) -> click.Choice[str]:
    """The values that a setting may have."""
    return click.Choice([str(value) for value in typing.get_args(typing.get_type_hints(config)[name])])


@click.command(cls=BeamOptionsLast)
@click.argument("inputs", nargs=-1, required=True, type=PathOrUrl(), metavar="DOCS...")
@output_option("OUT")
@text_field_option
@click.option("--timestamp-field", metavar="FIELD", help="Of two copies the older is kept.  [default: timestamp]")
@click.option(
    "--date-format",
    metavar="ORDER",
    help="day-first, month-first, year-first or a strptime pattern, if the timestamps do not prove it.",
)
@click.option(
    "--order",
    type=_values(DedupConfig, "order"),
    default="priority",
    show_default=True,
    help="Of two copies, keep that of the earlier of DOCS (priority) or the older one (time).",
)
@click.option(
    "--near",
    type=click.Choice([*NearConfig.choices(), "none"]),
    default="fast",
    show_default=True,
    help="480 hashes of words (fast), or the 9,000 of shingles of Lee et al. (paper); each candidate is then compared. "
    "Of the pairs of near duplicates among 20,096 documents, mostly news, fast finds .997 and paper .71.",
)
@click.option(
    "--near-numbers",
    type=_values(NearConfig, "numbers"),
    help="keep: texts with different numbers are not duplicates.  [default: keep]",
)
@click.option(
    "--near-edit-similarity",
    type=float,
    metavar="S",
    help=f"Near duplicates have a larger edit similarity.  [default: {_NEAR.edit_similarity}]",
)
@click.option(
    "--exact-fold",
    type=_values(DedupConfig, "exact_fold"),
    default="none",
    show_default=True,
    help="Differences that are ignored between equal texts.",
)
@click.option(
    "--substring-min-length",
    type=click.IntRange(min=1),
    metavar="K",
    help="Remove text of K symbols or more that occurs elsewhere.  [default: none is removed]",
)
@click.option(
    "--substring-keep", type=_values(SubstringConfig, "keep"), help="Copies of it that stay.  [default: first]"
)
@click.option("--substring-rounds", metavar="N|fixpoint", callback=number_or("fixpoint"), help="Passes.  [default: 1]")
@click.option(
    "--substring-snap",
    type=_values(SubstringConfig, "snap"),
    help="Cuts shrink to whole words or lines.  [default: word]",
)
@click.option(
    "--substring-min-chars",
    type=click.IntRange(min=0),
    help=f"Documents of which cuts leave fewer characters are removed.  [default: {_SUBSTRING.min_chars}]",
)
@click.option("--substring-unit", type=_values(SubstringConfig, "unit"), help="What a symbol is.  [default: bytes]")
@click.option(
    "--substring-tokenizer",
    type=PathOrUrl(),
    metavar="TOKENIZER",
    help="Folder of a FinPile tokenizer, for --substring-unit tokens.",
)
@click.option(
    "--annotate", is_flag=True, help="Also write what is removed as attributes of DOCS, for Dolma and as Parquet."
)
@placement_options
@memory_option
@shard_size_option
@again_options
@takedowns_option
@json_option
def dedup_command(
    inputs: tuple[str, ...],
    output: str,
    text_field: str,
    timestamp_field: str | None,
    date_format: str | None,
    order: Any,
    near: str,
    exact_fold: Any,
    annotate: bool,
    placement: Placement,
    memory: int | None,
    shard_size: int | None,
    again: Again,
    takedowns_to: str | None,
    as_json: bool,
    **settings: Any,
) -> None:
    """Remove duplicates from Parquet or JSON Lines; write Parquet and a ledger of all removed text.

    DOCS are files (.parquet, .jsonl, .ndjson, .json; .gz, .zst), folders, patterns, fsspec URLs, or OUT folders of
    `finpile build`. Texts stay as they are, byte for byte.

    OUT/documents/ has the kept documents. The column meta holds your other fields as JSON, an id of yours too
    (key id); lists, structs and binary columns of Parquet are not copied. The column locator has the place of a record,
    FILE#BYTE of a JSON line and FILE#ROW of Parquet, to join the output with your files. OUT/removed/ has a
    row for each removed document, with its text, its locator, the reason, and the id of the kept copy.

    Of two copies, the one of the earlier of DOCS is kept (consecutive files of one format count as one), then the
    older one by its timestamp. With --order time the older one is kept, and no document is removed or cut because of a
    later one.
    With --annotate, OUT/attributes/ has files beside those of DOCS, with stage, reason, group, size of the group
    and kept copy of each document and span, for pipelines that decide themselves: DOCS stay as they are.
    Run the same command again to continue after an interruption. Options after `--` are passed to Beam.
    """
    began = time.monotonic()
    console = Console(as_json)
    with named_by_options():
        dedup = _dedup_config(order, near, exact_fold, settings)
    with heavy_imports(is_lean=placement.is_local):
        from finpile_cli.dedup_inputs import find_inputs

    with named_by_options():
        found = find_inputs(inputs, output, text_field, timestamp_field, date_format)
    config = _corpus(found, dedup)
    with heavy_imports():
        from finpile_pipelines.build import DEDUPLICATED, Sizes, build

    display = Display(console)
    engine, sizes = placement.engine(display), Sizes(shard_bytes=shard_size, worker_bytes=_WORKER_BYTES)
    if memory is not None:
        engine, sizes = fitted(config, placement, engine, sizes, memory, DEDUPLICATED, display)
    with display:
        manifest = build(
            config,
            output,
            engine,
            **again,
            sizes=sizes,
            listen=stage_lines(display, f"deduplicating {_described(found)} in {output}"),
            until=DEDUPLICATED,
            takedowns_to=takedowns_to,
            tables=False,
        )
    attributes = _annotate(output, manifest, annotate, display.num_run)
    _close(console, manifest, output, display.num_run, time.monotonic() - began, attributes)


def _dedup_config(order: Any, near: str, exact_fold: Any, settings: Mapping[str, Any]) -> DedupConfig:
    """Raises: ConfigError for a setting of a step that is off."""
    similarity = _given(settings, "near", near == "none", "--near paper or fast")
    cut = _given(settings, "substring", settings["substring_min_length"] is None, "--substring-min-length K")
    if cut.get("unit") == "tokens" and "tokenizer" not in cut:
        raise ConfigError("--substring-unit tokens needs --substring-tokenizer: name the folder of a FinPile tokenizer")
    if "tokenizer" in cut:
        cut["tokenizer"] = _tokenizer(cut["tokenizer"], cut.get("unit"))
    return DedupConfig(
        order=order,
        exact_fold=exact_fold,
        near=None if near == "none" else replace(NearConfig.named(near), **similarity),
        substring=SubstringConfig(**cut) if cut else None,
    )


def _given(settings: Mapping[str, Any], algorithm: str, is_off: bool, needed: str) -> dict[str, Any]:
    """The options of one algorithm, by the name of its setting: those that begin with the algorithm's name."""
    prefix = f"{algorithm}_"
    given = {
        name.removeprefix(prefix): value
        for name, value in settings.items()
        if name.startswith(prefix) and value is not None
    }
    if given and is_off:
        option = f"{prefix}{next(iter(given))}".replace("_", "-")
        raise ConfigError(f"--{option} has no effect without {needed}")
    return given


def _tokenizer(path: str, unit: str | None) -> str:
    from finpile import storage

    if unit != "tokens":
        raise ConfigError("--substring-tokenizer needs --substring-unit tokens: add it")
    if not storage.exists(path):
        raise ConfigError(f"--substring-tokenizer {path}: no such folder; `finpile tokenizer train` makes one")
    return storage.absolute(path)


def _corpus(found: Inputs, dedup: DedupConfig) -> CorpusConfig:
    """Nothing is held out: all that is kept is on one side."""
    return CorpusConfig(name=DEDUP_NAME, sources=found.sources, root=found.root, dedup=dedup, heldout=HeldoutConfig())


def _described(found: Inputs) -> str:
    counts: dict[str, int] = {}
    for source in found.sources:
        counts[source.label] = counts.get(source.label, 0) + len(source.paths)
    return ", ".join(count_of(count, f"{kind} file") for kind, count in sorted(counts.items()))


# --- the closing table -----------------------------------------------------------------------------------------------


def input_rows(manifest: Mapping[str, Any]) -> list[dict[str, Any]]:
    """One row for each format that was read, then their sum if there are several.

    `read = unreadable + exact + near + substring_documents + kept`. Bytes are those of texts.
    """
    from finpile.output.manifest import counts_by_stage
    from finpile.report.summary import source_rows

    stages = counts_by_stage(manifest)
    cut = [entry for part in stages["split"]["ledger"] if part["stage"] == "substring" for entry in part["removed"]]
    rows = []
    for row in source_rows(manifest):
        mine = [entry for entry in cut if entry["source"] == row["source"]]
        rows.append(
            {
                "input": row["source"],
                "read": row["read"],
                "unreadable": row["unreadable"] + row["cleaned_out"],
                "exact": row["exact"],
                "near": row["near"],
                "substring_documents": sum(entry["num_docs"] for entry in mine),
                "substring_bytes": sum(entry["num_bytes"] for entry in mine),
                "kept": row["train"],
                "bytes_in": _text_bytes(stages["clean"]["sources"], row["source"]),
                "bytes_out": _text_bytes(stages["split"]["documents"], row["source"]),
            }
        )
    return rows if len(rows) == 1 else [*rows, _total(rows)]


def _text_bytes(counts: Sequence[Mapping[str, Any]], source: str) -> int:
    return sum(entry["text_bytes"] for entry in counts if entry["source"] == source)


def _total(rows: Sequence[Mapping[str, Any]]) -> dict[str, Any]:
    sums = {name: sum(row[name] for row in rows) for name in rows[0] if name != "input"}
    return {"input": "all", **sums}


def _annotate(out: str, manifest: Mapping[str, Any], is_wanted: bool, num_run: int) -> str | None:
    """Writes the attributes, or deletes those of an earlier run; returns their folder."""
    from finpile_pipelines.shard_refs import read_clean
    from finpile_pipelines.snapshots.base import clean_shards

    from finpile import storage
    from finpile.history.attributes import name_of, write_attributes
    from finpile.output.layout import Layout

    layout = Layout(out)
    if is_wanted:
        batches = (batch for ref in clean_shards(layout, manifest) for batch in read_clean(ref, ["id", "meta"]))
        pairs = (zip(batch["id"].to_pylist(), batch["meta"].to_pylist(), strict=True) for batch in batches)
        write_attributes(layout, manifest, {name: name_of(meta, name) for some in pairs for name, meta in some})
        return f"{out.rstrip('/')}/attributes"
    if num_run:
        storage.remove_tree(layout.attributes)
    return None


def _close(
    console: Console, manifest: Mapping[str, Any], out: str, num_run: int, seconds: float, attributes: str | None
) -> None:
    """Prints the closing table, the speed, and the output folders."""
    rows = input_rows(manifest)
    total, folder = rows[-1], out.rstrip("/")
    shown = [name for name in _COLUMNS if name != "substring" or total["substring_documents"]]
    cells = [_cells(row) for row in rows]
    console.table("Documents", shown, [[row[name] for name in shown] for row in cells])
    warnings = _date_warnings(manifest)
    for warning in warnings:
        console.warn(warning)
    if num_run == 0:
        console.line("all stages were done before; nothing to do (--fresh starts over)")
    else:
        console.line(f"{seconds:.1f} s, {quantity(total['bytes_in'] / seconds, 'B')}/s of text")
    console.line(f"kept:   {folder}/documents/")
    show, verify = command_line("show", folder, "ID"), command_line("verify", folder)
    console.line(f"ledger: {folder}/removed/ ({show}: one document; {verify})")
    if attributes is not None:
        console.line(f"attributes: {attributes}/")
    console.result(
        {
            "out": out,
            **({} if attributes is None else {"attributes": attributes}),
            "documents": f"{folder}/documents",
            "removed": f"{folder}/removed",
            "stages_run": num_run,
            "seconds": round(seconds, 3),
            "warnings": warnings,
            "inputs": rows if len(rows) == 1 else rows[:-1],
            "total": {**total, "input": "all"},
        }
    )


def _date_warnings(manifest: Mapping[str, Any]) -> list[str]:
    """Warnings about documents without a date, which are last in the order of time."""
    from finpile.output.manifest import counts_by_stage
    from finpile.report.dates import date_statistics, date_warnings

    if manifest["config"]["dedup"]["order"] != "time":
        return []
    cleaned = counts_by_stage(manifest)["clean"]["sources"]
    return date_warnings(date_statistics(cleaned), "--timestamp-field and --date-format")


def _cells(row: Mapping[str, Any]) -> dict[str, Any]:
    """What the table shows, by column."""
    return {
        **row,
        "substring": row["substring_documents"],
        "cut": quantity(row["substring_bytes"], "B") if row["substring_bytes"] else 0,
        "bytes in": quantity(row["bytes_in"], "B"),
        "bytes out": quantity(row["bytes_out"], "B"),
    }
