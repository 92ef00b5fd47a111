"""Renders the contracts: one JSON file for each kind of file that FinPile writes or reads, and the references in docs/.

    python schemas/render.py        writes schemas/*.json, and what is between the marks in docs/guide-*.md

Types and defaults come from the code, meanings of columns from `meanings.py`; a column without a meaning is an error.
`tests/test_schemas.py` fails if the committed files differ from the rendered ones.
"""

from __future__ import annotations

import ast
import dataclasses
import inspect
import json
import sys
import textwrap
import types
import typing
from collections.abc import Iterator, Mapping, Sequence
from datetime import date
from io import BytesIO
from itertools import pairwise
from pathlib import Path
from typing import Any, Literal

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
from finpile_pipelines.plan.inputs import SourceInput
from finpile_pipelines.plan.limits import Limit
from finpile_pipelines.plan.model import StagePlan
from finpile_tokenizer.export import vocabulary_table
from finpile_tokenizer.model import UnigramModel, Vocabulary
from finpile_trainer.train import TrainConfig
from meanings import (
    ATTRIBUTE_MEANINGS,
    DOCUMENT_MEANINGS,
    FACT_MEANINGS,
    INPUT_MEANINGS,
    LEDGER_MEANINGS,
    LICENSE_MEANINGS,
    MERGED_MEANINGS,
    TOKEN_INDEX_MEANINGS,
    UNSAID,
    VOCABULARY_MEANINGS,
)

from finpile.clean import REASONS as clean_reasons  # noqa: N811
from finpile.config import CorpusConfig, FilterConfig, to_dict
from finpile.config.strict_yaml import settings
from finpile.documents.document import CLEAN_SCHEMA, DOCUMENT_FOLDERS, PUBLISHED_SCHEMA, RAW_SCHEMA, SUB_SOURCE
from finpile.documents.ledger import LEDGER_FOLDERS, PUBLISHED_LEDGER_SCHEMA
from finpile.filings.facts import FACT_SCHEMA
from finpile.history.attributes import ATTRIBUTE_SCHEMA
from finpile.output.manifest import CARD, CERTIFICATE, CHECKSUM, MANIFEST_VERSION
from finpile.output.snapshots import SNAPSHOT
from finpile.output.stage_record import StageRecord
from finpile.plugins.filter import FILTERS
from finpile.plugins.format import COMMON_META, FORMATS
from finpile.plugins.stages import DEDUPLICATED, ledger_stages, names, table
from finpile.report.compliance import Statement
from finpile.report.compliance.survey import LICENSE_SCHEMA
from finpile.report.render import FORMATS as TABLE_FORMATS
from finpile.report.render import to_json_value
from finpile.report.statistics import (
    CorpusStatistics,
    DateStatistics,
    FactStatistics,
    HeldoutStatistics,
    LicenseStatistics,
    SourceStatistics,
    SubSourceStatistics,
    YearStatistics,
)
from finpile.report.table import RowKind, Table
from finpile.sources import ACCOUNT_SCHEMA, STRUCTURE
from finpile.sources import REASONS as ingest_reasons  # noqa: N811
from finpile.tokens.provenance import INDEX_SCHEMA
from finpile.tokens.store import MAX_UINT16_VOCAB, TokenMeta
from finpile.tokens.tokenizers.used import UsedTokenizer

ROOT = Path(__file__).resolve().parents[1]
_DIALECT = "https://json-schema.org/draft/2020-12/schema"
_HEX = {"type": "string", "pattern": "^[0-9a-f]{32}$"}
_SHA256 = {"type": "string", "pattern": "^[0-9a-f]{64}$"}

#: Increased if a column is renamed, retyped or dropped; not for a new nullable column.
_ARROW_VERSION = 1

#: Constraints of `__post_init__` beyond the annotated type.
_TIGHTER: Mapping[tuple[str, str], dict[str, Any]] = {
    ("SourceConfig", "format"): {"examples": list(FORMATS.built_in)},
    ("CorpusConfig", "tokenizer"): {"anyOf": [{"$ref": "#/$defs/TokenizerConfig"}, {"enum": [None, "none"]}]},
    ("FileRecord", "checksum"): _SHA256,
    ("StageRecord", "fingerprint"): _HEX,
    ("StageRecord", "stage"): {"enum": list(names())},
}
_SCALARS: Mapping[Any, tuple[dict[str, Any], str]] = {
    str: ({"type": "string"}, "text"),
    int: ({"type": "integer"}, "whole number"),
    float: ({"type": "number"}, "number"),
    bool: ({"type": "boolean"}, "true or false"),
    date: ({"type": "string", "format": "date"}, "day"),
    types.NoneType: ({"type": "null"}, "null"),
    Any: ({}, "anything"),
}


def render() -> dict[str, bytes]:
    """Every rendered file: path below the repository's root -> content."""
    contracts = {
        "documents": _documents(),
        "ledger": {
            **_table_contract(
                "Removal ledger: removed/stage=S/part-*.parquet", PUBLISHED_LEDGER_SCHEMA, LEDGER_MEANINGS
            ),
            "folders": _folders(LEDGER_FOLDERS, LEDGER_MEANINGS),
        },
        "facts": {
            **_table_contract(
                "Facts of Inline XBRL: facts/dataset=D/source=S/SPLIT-*.parquet, those of the documents in the file of "
                "documents with that name",
                FACT_SCHEMA,
                FACT_MEANINGS,
            ),
            "folders": _folders(DOCUMENT_FOLDERS, DOCUMENT_MEANINGS),
        },
        "inputs": _table_contract("Accounts of inputs: inputs/part-*.parquet", ACCOUNT_SCHEMA, INPUT_MEANINGS),
        "merged": _table_contract("tokenizer/merged.parquet", _merged_schema(), MERGED_MEANINGS),
        "vocabulary": _table_contract("tokenizer/vocabulary.parquet", _vocabulary_schema(), VOCABULARY_MEANINGS),
        "used_tokenizer": _dataclass_contract("tokenizer/use.json, of a tokenizer that is used", UsedTokenizer),
        "tokens": _tokens(),
        "token_index": _table_contract(
            "Index of a token shard: tokens/index/split=*/**/part-*.parquet, a row for each piece of a document",
            INDEX_SCHEMA,
            TOKEN_INDEX_MEANINGS,
        ),
        "attributes": _table_contract(
            "Attributes of inputs: attributes/parquet/*.parquet, a row for each document and span",
            ATTRIBUTE_SCHEMA,
            ATTRIBUTE_MEANINGS,
        ),
        "licenses": {
            **_table_contract(
                "Licences of documents: compliance/licenses/dataset=D/source=S/SPLIT-*.parquet, those of the documents "
                "in the file of documents with that name",
                LICENSE_SCHEMA,
                LICENSE_MEANINGS,
            ),
            "folders": _folders(DOCUMENT_FOLDERS, DOCUMENT_MEANINGS),
        },
        "manifest": _manifest(),
        "statistics": _statistics(),
        "table": _table(),
        "plan": _plan(),
        "corpus": _dataclass_contract("A corpus file (YAML)", CorpusConfig),
        "train": _dataclass_contract("A training file (YAML)", TrainConfig),
        "statement": _dataclass_contract("A statement for compliance papers (YAML)", Statement),
    }
    files = {f"schemas/{name}.json": _json(contract) for name, contract in contracts.items()}
    references = {
        "docs/guide-your-own-corpus.md": {"meta": _meta(), "reference": _reference(CorpusConfig, "")},
        "docs/guide-compliance.md": {"reference": _reference(Statement, "")},
        "docs/guide-training.md": {"reference": _reference(TrainConfig, "")},
        "docs/guide-reading-the-ledger.md": {"reference": f"{_reasons()}\n{_structure()}"},
    }
    for guide, parts in references.items():
        page = (ROOT / guide).read_text(encoding="utf-8")
        for mark, content in parts.items():
            page = _with_part(page, mark, content)
        files[guide] = page.encode()
    return files


# --- Arrow ----------------------------------------------------------------------------------------------------------


def stored(schema: pa.Schema) -> pa.Schema:
    """The schema as read back from Parquet, which has no seconds: timestamps are in milliseconds."""
    sink = BytesIO()
    pq.write_table(schema.empty_table(), sink)
    return pq.read_schema(BytesIO(sink.getvalue()))


def columns(schema: pa.Schema, meanings: Mapping[str, str]) -> list[dict[str, Any]]:
    """One object for each column: name, Arrow type in memory and in Parquet, whether nulls are allowed, meaning."""
    found = []
    for entry, on_disk in zip(schema, stored(schema), strict=True):
        column = {"name": entry.name, "type": str(entry.type), "nullable": entry.nullable}
        if on_disk.type != entry.type:
            column["parquet_type"] = str(on_disk.type)
        found.append({**column, "meaning": meanings[entry.name]})
    return found


def _table_contract(title: str, schema: pa.Schema, meanings: Mapping[str, str]) -> dict[str, Any]:
    return {"title": title, "version": _ARROW_VERSION, "columns": columns(schema, meanings)}


def _documents() -> dict[str, Any]:
    forms = {"raw": RAW_SCHEMA, "document": CLEAN_SCHEMA, "published": PUBLISHED_SCHEMA}
    about = {
        "raw": "between ingest and clean",
        "document": "between the other stages",
        "published": "in documents/dataset=D/source=S/SPLIT-*.parquet",
    }
    tables: dict[str, dict[str, Any]] = {
        name: {"where": about[name], "columns": columns(forms[name], DOCUMENT_MEANINGS)} for name in forms
    }
    tables["published"]["folders"] = _folders(DOCUMENT_FOLDERS, DOCUMENT_MEANINGS)
    tables["published"]["optional"] = columns(pa.schema([SUB_SOURCE]), DOCUMENT_MEANINGS)
    return {"title": "Document batch", "version": _ARROW_VERSION, **tables}


def _folders(names: Sequence[str], meanings: Mapping[str, str]) -> list[dict[str, Any]]:
    """Columns in the folder names of a file: `name=value`, percent-encoded."""
    return [{"name": name, "type": "string", "nullable": False, "meaning": meanings[name]} for name in names]


def _merged_schema() -> pa.Schema:
    piece = pa.array([b"a"], pa.large_binary())
    model = UnigramModel(pieces=piece, log_probs=np.zeros(1), num_models=np.ones(1, np.int64), num_bytes=1)
    return model.to_table().schema


def _vocabulary_schema() -> pa.Schema:
    nothing = Vocabulary(
        pieces=pa.array([], pa.large_binary()), log_probs=np.zeros(0), num_models=np.zeros(0, np.int64), num_requested=1
    )
    return vocabulary_table(nothing).schema


def _tokens() -> dict[str, Any]:
    def column(vocab_size: int) -> str:
        meta = TokenMeta(vocab_size=vocab_size, sequence_length=1, eot_id=0, tokenizer="")
        return str(meta.schema().field("ids").type).replace("[1]", "[sequence_length]")

    mixed = TokenMeta(vocab_size=1, sequence_length=1, eot_id=0, tokenizer="", sources=(("", ""),))

    said = dict(_descriptions(TokenMeta))
    sources = said.pop("sources")
    return {
        "title": "Token shard: tokens/split=*/**/part-*.arrow, an uncompressed Arrow IPC file",
        "version": _ARROW_VERSION,
        "columns": [
            {"name": "ids", "type": column(MAX_UINT16_VOCAB), "nullable": False, "when": "vocab_size <= 65536"},
            {"name": "ids", "type": column(MAX_UINT16_VOCAB + 1), "nullable": False, "when": "vocab_size > 65536"},
            {
                "name": "runs",
                "type": str(mixed.schema().field("runs").type),
                "nullable": False,
                "when": "the corpus has a mixture",
                "meaning": "runs of tokens of one source; `source` is an index into the metadata `sources`",
            },
        ],
        "metadata": {
            **said,
            "num_sequences": "Rows of this shard.",
            "padding": "Tokens at the end of a shard of held-out tokens that are of no document; absent if none.",
        },
        "metadata_of_a_mixture": {"sources": f"JSON list: {sources}"},
    }


# --- JSON Schema ----------------------------------------------------------------------------------------------------


def _dataclass_contract(title: str, kind: type) -> dict[str, Any]:
    defs: dict[str, Any] = {}
    reference = _json_type(kind, defs)
    return {"$schema": _DIALECT, "title": title, "version": 1, **reference, "$defs": defs}


def _manifest() -> dict[str, Any]:
    defs: dict[str, Any] = {}
    every = names()
    least = every.index(DEDUPLICATED) + 1
    stages = {"type": "array", "items": _json_type(StageRecord, defs), "minItems": least, "maxItems": len(every)}
    properties = {
        "version": {"const": MANIFEST_VERSION},
        "name": {"type": "string"},
        "config": {**_json_type(CorpusConfig, defs), "description": "The corpus file with every default spelt out."},
        "config_hash": _HEX,
        "finpile": {"type": "string", "description": "Version of FinPile."},
        "python": {"type": "string"},
        "packages": {"type": "object", "additionalProperties": {"type": "string"}},
        "stages": {**stages, "description": f"In this order, up to {DEDUPLICATED} at least: {', '.join(every)}."},
        CARD: {
            "type": "array",
            "items": {"$ref": "#/$defs/FileRecord"},
            "description": "The files of the dataset card, which is made of the other keys.",
        },
        CERTIFICATE: {
            **_object(
                {
                    "date": {"type": "string", "format": "date", "description": "Its end is the last moment."},
                    "undated": {"type": "boolean", "description": "Whether documents without a date are in."},
                    "of": {**_HEX, "description": "The checksum of the manifest of the whole build."},
                    "takedowns": {
                        "anyOf": [{"$ref": "#/$defs/FileRecord"}, {"type": "null"}],
                        "description": "The documents of the day that were taken down; null if there are none.",
                    },
                }
            ),
            "description": "Only of a corpus as of a day.",
        },
        SNAPSHOT: _snapshot(),
        CHECKSUM: {**_HEX, "description": "Fingerprint of all other keys and their values."},
    }
    title = "manifest.json: what a build did, written last"
    schema = _object(properties, required=[name for name in properties if name not in (CERTIFICATE, SNAPSHOT)])
    return {"$schema": _DIALECT, "title": title, "version": MANIFEST_VERSION, **schema, "$defs": defs}


def _snapshot() -> dict[str, Any]:
    paths = {"type": "array", "items": {"type": "string"}}
    rewritten = {"type": "object", "additionalProperties": paths}
    properties = {
        "number": {"type": "integer", "minimum": 1},
        "parent": {**_HEX, "description": "The checksum of the manifest to which files were added."},
        "added": {**paths, "description": "New files."},
        "rewritten": {
            **rewritten,
            "description": "Files of the parent, each with those that have its rows instead; now below `versions/`.",
        },
        "copies": {
            "anyOf": [{"$ref": "#/$defs/FileRecord"}, {"type": "null"}],
            "description": "The current `num_copies` of documents whose file has an older one; null if there is none.",
        },
        "takedowns": {
            "anyOf": [{"$ref": "#/$defs/FileRecord"}, {"type": "null"}],
            "description": "The documents that this snapshot and earlier ones took down; null if there are none.",
        },
        "taken_down": {
            "type": "object",
            "description": "Of `finpile remove`: the number of documents that this snapshot took down, how many of "
            "them were published, and by id the places of their tokens: for each snapshot whose shards have some (0: "
            "the build), the split, and triples of sequence, first token and end.",
        },
    }
    required = [name for name in properties if name != "taken_down"]
    about = "Of a snapshot of `finpile append` or `finpile remove`: which files it has."
    return {**_object(properties, required=required), "description": about}


def _statistics() -> dict[str, Any]:
    defs: dict[str, Any] = {}
    version = CorpusStatistics(sources=()).to_json()["version"]
    properties = {
        "version": {"const": version},
        "private": {"type": "array", "items": {"type": "string"}, "description": "Datasets of the company's own."},
        "sources": {"type": "array", "items": _json_type(SourceStatistics, defs)},
        "years": {"type": "array", "items": _json_type(YearStatistics, defs)},
        "dates": {"type": "array", "items": _json_type(DateStatistics, defs)},
        "heldout": {
            "type": "array",
            "items": _json_type(HeldoutStatistics, defs),
            "description": "Only if documents are held out.",
        },
        "facts": {"type": "array", "items": _json_type(FactStatistics, defs), "description": "Only if there are any."},
        "sub_sources": {
            "type": "array",
            "items": _json_type(SubSourceStatistics, defs),
            "description": "Only if there are any.",
        },
        "licenses": {
            "type": "array",
            "items": _json_type(LicenseStatistics, defs),
            "description": "Only if documents have licences.",
        },
    }
    for definition in defs.values():
        if counted := definition["properties"].get("num_tokens"):
            definition["required"].remove("num_tokens")
            counted["description"] = f"{counted.get('description', '')} Absent with `tokenizer: none`.".lstrip()
    title = "reports/statistics.json: the counts of Tables 1 and 2"
    optional = ("heldout", "facts", "sub_sources", "licenses")
    schema = _object(properties, required=[name for name in properties if name not in optional])
    return {"$schema": _DIALECT, "title": title, "version": version, **schema, "$defs": defs}


def _plan_totals() -> dict[str, Any]:
    totals = ("seconds", "cpu_seconds", "jobs", "memory_bytes", "machine_bytes", "shuffled_bytes", "disk_bytes")
    hours = {"type": "number", "description": "Workers, each a core, times seconds."}
    cost = {"type": ["number", "null"], "description": "With --core-price: core hours times the price."}
    return {**{key: {"type": "number"} for key in totals}, "core_hours": hours, "cost": cost}


def _plan() -> dict[str, Any]:
    defs: dict[str, Any] = {}
    number: dict[str, Any] = {"type": "number"}
    properties = {
        "workers": {"type": "integer"},
        "inputs": {"type": "array", "items": _json_type(SourceInput, defs)},
        "text_bytes": {**number, "description": "Of all documents after cleaning."},
        "documents": number,
        "shards": {"type": "integer"},
        "tokens": {**number, "description": "Of all clean text, in as many copies as the mixture makes."},
        "token_shards": {"type": "integer"},
        "stages": {"type": "array", "items": _json_type(StagePlan, defs)},
        "total": {**_object(_plan_totals()), "description": "Memory is that of one worker."},
        "measured": {
            "type": ["object", "null"],
            "additionalProperties": number,
            "description": "With --measure: by stage, the CPU time here by that of the table; `all` of all stages.",
        },
        "limits": {"type": "array", "items": _json_type(Limit, defs), "description": "The first to be reached first."},
    }
    return {"$schema": _DIALECT, "title": "finpile plan --json", **_object(properties), "$defs": defs}


def _table() -> dict[str, Any]:
    version = to_json_value(Table(name="", title="", caption="", columns=(), rows=()))["version"]
    text: dict[str, Any] = {"type": "string"}
    column = _object({"key": text, "title": text, "shown_in": {**text, "description": "Unit of the shown figures."}})
    row = {
        "kind": {"enum": [kind.value for kind in RowKind]},
        "group": {**text, "description": "Dataset of the row; empty if the table has no groups."},
        "values": {
            "type": "object",
            "additionalProperties": {"type": ["integer", "number", "string", "null"]},
            "description": "By column key: exact counts, ratios as floats, null for a ratio without a denominator.",
        },
        "shown": {"type": "array", "items": text, "description": "The cells as displayed."},
    }
    properties = {
        "version": {"const": version},
        **dict.fromkeys(("name", "title", "caption"), text),
        "columns": {"type": "array", "items": column},
        "rows": {"type": "array", "items": _object(row)},
        "footnotes": {"type": "array", "items": text},
    }
    title = f"reports/table*.json; the same table is next to it as {', '.join(sorted(set(TABLE_FORMATS) - {'json'}))}"
    return {"$schema": _DIALECT, "title": title, "version": version, **_object(properties)}


def _object(properties: Mapping[str, Any], required: list[str] | None = None) -> dict[str, Any]:
    required = list(properties) if required is None else required
    return {"type": "object", "additionalProperties": False, "required": required, "properties": dict(properties)}


def _json_type(kind: Any, defs: dict[str, Any]) -> dict[str, Any]:
    """The JSON Schema of an annotated type; dataclasses are added to `defs` and referenced."""
    if kind in _SCALARS:
        return dict(_SCALARS[kind][0])
    if kind is FilterConfig:
        return _json_filters(defs)
    if dataclasses.is_dataclass(kind):
        name = typing.cast(type, kind).__name__
        if name not in defs:
            defs[name] = {}  # reserves the place: definitions are in the order of their first reference
            defs[name] = _json_dataclass(typing.cast(type, kind), defs)
        reference = {"$ref": f"#/$defs/{name}"}
        return {"anyOf": [reference, {"type": "string"}]} if hasattr(kind, "named") else reference
    origin, arguments = typing.get_origin(kind), typing.get_args(kind)
    if origin is Literal:
        return {"enum": list(arguments)}
    if origin is tuple:
        return {"type": "array", "items": _json_type(arguments[0], defs)}
    if origin is Mapping:
        return {"type": "object", "additionalProperties": _json_type(arguments[1], defs)}
    return {"anyOf": [_json_type(option, defs) for option in arguments]}


def _json_filters(defs: dict[str, Any]) -> dict[str, Any]:
    """A filter by its name, or as a mapping from its name to its parameters; other packages may have more."""
    parameters = {name: _json_type(FILTERS.get(name).parameters, defs) for name in FILTERS.built_in}
    with_parameters = {"type": "object", "minProperties": 1, "maxProperties": 1, "properties": parameters}
    return {"anyOf": [{"type": "string", "examples": list(FILTERS.built_in)}, with_parameters]}


def _json_dataclass(kind: type, defs: dict[str, Any]) -> dict[str, Any]:
    properties: dict[str, Any] = {}
    for entry in _fields(kind):
        schema = {**_json_type(entry.kind, defs), **_TIGHTER.get((kind.__name__, entry.name), {})}
        if entry.kind in (tuple[str, ...], tuple[FilterConfig, ...]):  # a single entry is a list of one
            schema = {"anyOf": [schema.get("items", {}), schema]}
        if entry.meaning:
            schema["description"] = entry.meaning
        if not entry.is_required:
            schema["default"] = entry.default
        properties[entry.name] = schema
    required = [entry.name for entry in _fields(kind) if entry.is_required]
    return {"description": _first_line(kind), **_object(properties, required)}


# --- dataclasses ----------------------------------------------------------------------------------------------------


@dataclasses.dataclass(frozen=True, kw_only=True, slots=True)
class _Field:
    """One field of a configuration or record."""

    name: str
    kind: Any
    meaning: str
    is_required: bool
    default: Any

    @property
    def nested(self) -> type | None:
        """The dataclass of this field: alone, in a list, or as an alternative to null."""
        options = [self.kind]
        for option in options:
            options += typing.get_args(option)
        return next(
            (
                option
                for option in options
                if isinstance(option, type) and dataclasses.is_dataclass(option) and option is not FilterConfig
            ),
            None,
        )

    @property
    def is_mapping(self) -> bool:
        """Whether the field is a mapping from names, or such a mapping is an alternative to null."""
        return any(typing.get_origin(option) is Mapping for option in (self.kind, *typing.get_args(self.kind)))

    @property
    def shown_default(self) -> str:
        """The default in the reference: a mapping by the name of its preset, or as `{}`, whose keys have defaults."""
        if self.is_required:
            return "required"
        nested = self.nested
        if nested is None or not isinstance(self.default, dict) or self.is_mapping:
            return f"`{json.dumps(self.default)}`"
        names = nested.choices() if hasattr(nested, "choices") and hasattr(nested, "named") else ()
        return next((f"`{name}`" for name in names if to_dict(nested.named(name)) == self.default), "`{}`")


#: Fields of a record in memory and below `.work` that the described files do not have.
_NOT_WRITTEN = {("StageRecord", "seals")}


def _fields(kind: type) -> Iterator[_Field]:
    hints, said = typing.get_type_hints(kind), _descriptions(kind)
    for entry in settings(kind):
        if (kind.__name__, entry.name) in _NOT_WRITTEN:
            continue
        default: Any = entry.default
        if entry.default_factory is not dataclasses.MISSING:
            default = entry.default_factory()
        yield _Field(
            name=entry.name,
            kind=hints[entry.name],
            meaning=said.get(entry.name) or UNSAID.get((kind.__name__, entry.name), ""),
            is_required=default is dataclasses.MISSING,
            default=to_dict(None if default is dataclasses.MISSING else default),
        )


def _descriptions(kind: type) -> dict[str, str]:
    """The docstrings of fields."""
    (definition,) = ast.parse(textwrap.dedent(inspect.getsource(kind))).body
    found: dict[str, str] = {}
    for entry, after in pairwise(typing.cast(ast.ClassDef, definition).body):
        is_text = isinstance(after, ast.Expr) and isinstance(after.value, ast.Constant)
        if isinstance(entry, ast.AnnAssign) and isinstance(entry.target, ast.Name) and is_text:
            found[entry.target.id] = " ".join(str(typing.cast(Any, after).value.value).split())
    return found


def _first_line(kind: type) -> str:
    return (inspect.getdoc(kind) or "").partition("\n\n")[0].replace("\n", " ")


# --- the references in docs/ ----------------------------------------------------------------------------------------


def _with_part(page: str, mark: str, content: str) -> str:
    """The page with the content between the two marks of that name."""
    begin, end = f"<!-- {mark}: begin -->", f"<!-- {mark}: end -->"
    (head, _), (_, tail) = page.split(begin), page.split(end)
    return f"{head}{begin}\n\n{content}{end}{tail}"


def _meta() -> str:
    """The keys of `meta` of every format."""
    rows = [("all", dict(COMMON_META))]
    for form in (FORMATS.get(name) for name in FORMATS.built_in):
        own = {"...": "the fields of the record that no setting uses, under their names"} if form.keeps_fields else {}
        rows.append((form.name, {**form.meta, **own}))
    lines = ["| format | key of `meta` | |", "|---|---|---|"]
    for name, keys in rows:
        label = name if name == "all" else f"`{name}`"
        lines += [
            f"| {label} | {'...' if key == '...' else f'`{key}`'} | {_escaped(said)} |" for key, said in keys.items()
        ]
        lines += [] if keys else [f"| {label} | | none of its own |"]
    return "\n".join(lines) + "\n\n"


def _reference(kind: type, path: str) -> str:
    """A table of the keys of a mapping, followed by the tables of the mappings in it."""
    heading = f"### `{path}`\n\n{_first_line(kind)}\n\n" if path else ""
    lines = ["| key | value | default | |", "|---|---|---|---|"]
    below = []
    for entry in _fields(kind):
        meaning = entry.meaning or (_first_line(entry.nested) if entry.nested else "")
        lines.append(f"| `{entry.name}` | {_words(entry.kind)} | {entry.shown_default} | {_escaped(meaning)} |")
        if entry.nested is not None:
            item = f"{entry.name}[]" if typing.get_origin(entry.kind) is tuple else entry.name
            item += ".NAME" if entry.is_mapping else ""
            below.append(_reference(entry.nested, f"{path}.{item}".lstrip(".")))
        if entry.kind == tuple[FilterConfig, ...]:
            filters = ((name, FILTERS.get(name).parameters) for name in FILTERS.built_in)
            below += [_reference(parameters, f"{path}.{entry.name}[].{name}") for name, parameters in filters]
    return heading + "\n".join(lines) + "\n\n" + "".join(below)


def _structure() -> str:
    """All kinds of structure in the accounts of inputs."""
    kinds = _by_owner(STRUCTURE, {name: FORMATS.get(name).structure for name in FORMATS.built_in})
    lines = ["| kind of structure in `inputs/` | |", "|---|---|"]
    return "\n".join([*lines, *(f"| `{kind}` | {_escaped(meaning)} |" for kind, meaning in kinds.items())]) + "\n"


def _reasons() -> str:
    """All reasons of ledger rows, by stage in the order in which stages run."""
    found = {
        "ingest": _by_owner(ingest_reasons, {name: FORMATS.get(name).reasons for name in FORMATS.built_in}),
        "clean": _by_owner(clean_reasons, {name: FILTERS.get(name).reasons for name in FILTERS.built_in}),
        **{info.name: {reason.name: reason.meaning for reason in info.reasons} for info in table() if info.is_dedup},
    }
    rows = [
        f"| {stage} | `{reason}` | {_escaped(meaning)} |"
        for stage in ledger_stages()
        for reason, meaning in found[stage].items()
    ]
    listed = f"Stages, in the order in which they run: {', '.join(f'`{stage}`' for stage in ledger_stages())}.\n"
    return "\n".join([listed, "| stage | reason | |", "|---|---|---|", *rows]) + "\n\n"


def _by_owner(common: Mapping[str, str], own: Mapping[str, Mapping[str, str]]) -> dict[str, str]:
    """The common ones, then those of formats or filters, with the names of their owners."""
    found = dict(common)
    for key, meaning in {key: meaning for entries in own.values() for key, meaning in entries.items()}.items():
        found[key] = f"{', '.join(name for name, entries in own.items() if key in entries)}: {meaning}"
    return found


def _escaped(text: str) -> str:
    return text.replace("|", r"\|")


def _words(kind: Any) -> str:
    """The name of a type in the reference."""
    if kind in _SCALARS:
        return _SCALARS[kind][1]
    if dataclasses.is_dataclass(kind):
        return "mapping or name" if hasattr(kind, "named") else "mapping"
    origin, arguments = typing.get_origin(kind), typing.get_args(kind)
    if origin is Literal:
        return ", ".join(f"`{value}`" for value in arguments)
    if origin is tuple:
        return "list of names or mappings" if arguments[0] is FilterConfig else f"list of {_words(arguments[0])}s"
    if origin is Mapping:
        return "mapping of texts" if arguments[1] is str else f"mapping from names to {_words(arguments[1])}"
    return " or ".join(_words(option) for option in arguments)


def _json(value: Any) -> bytes:
    return (json.dumps(value, indent=2, ensure_ascii=False) + "\n").encode()


def main() -> None:
    for path, content in render().items():
        file = ROOT / path
        state = "unchanged" if file.exists() and file.read_bytes() == content else "written"
        file.write_bytes(content)
        sys.stdout.write(f"{state:<9}  {path}\n")


if __name__ == "__main__":
    main()
