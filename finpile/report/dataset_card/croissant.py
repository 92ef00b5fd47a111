"""`croissant.json`: the corpus in the vocabulary of MLCommons Croissant 1.1, with provenance in that of W3C PROV-O.

It names no moment of publication, which no input has: who publishes the corpus adds `datePublished`.

Source: http://mlcommons.org/croissant/1.1, https://www.w3.org/TR/prov-o/
"""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping, Sequence
from typing import Any
from urllib.parse import quote

import pyarrow as pa

from finpile.documents.document import DOCUMENT_FOLDERS, PUBLISHED_SCHEMA, SUB_SOURCE
from finpile.documents.ledger import LEDGER_FOLDERS, PUBLISHED_LEDGER_SCHEMA
from finpile.output.stage_record import FileRecord
from finpile.report.dataset_card.contents import CardFacts

VERSION = "http://mlcommons.org/croissant/1.1"
#: As `mlcroissant` has it.
_PARQUET = "application/x-parquet"
_MEDIA_TYPES = {
    "parquet": _PARQUET, "json": "application/json", "arrow": "application/vnd.apache.arrow.file", "csv": "text/csv",
    "md": "text/markdown", "tex": "application/x-tex", "html": "text/html",
}  # fmt: skip
_OTHER_TYPE = "application/octet-stream"
_TERMS = (
    "arrayShape citeAs column containedIn extract field fileObject fileProperty fileSet format includes isArray "
    "isLiveDataset jsonPath key md5 parentField path recordSet references regex repeated replace samplingRate "
    "separator source subField transform"
)
#: The specification's context, and the prefix of PROV-O.
_CONTEXT: Mapping[str, Any] = {
    "@language": "en",
    "@vocab": "https://schema.org/",
    **{term: f"cr:{term}" for term in _TERMS.split()},
    "conformsTo": "dct:conformsTo",
    "cr": "http://mlcommons.org/croissant/",
    "data": {"@id": "cr:data", "@type": "@json"},
    "dataType": {"@id": "cr:dataType", "@type": "@vocab"},
    "dct": "http://purl.org/dc/terms/",
    "description": {"@container": "@language"},
    "equivalentProperty": "cr:equivalentProperty",
    "examples": {"@id": "cr:examples", "@type": "@json"},
    "name": {"@container": "@language"},
    "prov": "http://www.w3.org/ns/prov#",
    "rai": "http://mlcommons.org/croissant/RAI/",
    "sc": "https://schema.org/",
}


def croissant(facts: CardFacts) -> str:
    """The JSON-LD of a corpus."""
    optional = [SUB_SOURCE] if any(source["sub_source"] for source in facts.config["sources"]) else []
    tables: list[tuple[str, pa.Schema, tuple[str, ...]]] = [
        ("documents", pa.schema([*PUBLISHED_SCHEMA, *optional]), DOCUMENT_FOLDERS)
    ]
    if facts.below("removed"):
        tables.append(("removed", PUBLISHED_LEDGER_SCHEMA, LEDGER_FOLDERS))
    value = {
        "@context": _CONTEXT,
        "@type": "sc:Dataset",
        "name": facts.name,
        "description": facts.description,
        "conformsTo": VERSION,
        "version": facts.version,
        "license": sorted({row.license for row in facts.licenses if row.license}) or ["unknown"],
        **({"inLanguage": facts.languages} if facts.languages else {}),
        "distribution": [*(_file_set(name) for name, *_ in tables), *map(_file_object, facts.files)],
        "recordSet": [_splits(facts), *(_record_set(*table) for table in tables)],
        **_provenance(facts),
    }
    return json.dumps(value, indent=1, ensure_ascii=False) + "\n"


def _file_set(table: str) -> dict[str, Any]:
    return {
        "@type": "cr:FileSet",
        "@id": f"{table}-files",
        "name": f"{table}-files",
        "encodingFormat": _PARQUET,
        "includes": f"{table}/*.parquet",
    }


def _file_object(file: FileRecord) -> dict[str, Any]:
    return {
        "@type": "cr:FileObject",
        "@id": quote(file.path),
        "name": file.path,
        "contentUrl": file.path,
        "contentSize": f"{file.size_bytes} B",
        "encodingFormat": _MEDIA_TYPES.get(file.path.rsplit(".", 1)[-1], _OTHER_TYPE),
        "sha256": file.checksum,
    }


def _splits(facts: CardFacts) -> dict[str, Any]:
    return {
        "@type": "cr:RecordSet",
        "@id": "splits",
        "name": "splits",
        "dataType": "cr:Split",
        "key": {"@id": "splits/name"},
        "field": [{"@type": "cr:Field", "@id": "splits/name", "name": "name", "dataType": "sc:Text"}],
        "data": [{"splits/name": split} for split in facts.splits],
    }


def _record_set(table: str, schema: pa.Schema, folders: tuple[str, ...]) -> dict[str, Any]:
    """A table: columns of its files, and those that folders have, whose values are percent-encoded there."""
    fields = {
        **{name: {"extract": {"fileProperty": "fullpath"}, **_in_folder(name)} for name in folders},
        **{name: {"extract": {"column": name}} for name in schema.names},
    }
    return {
        "@type": "cr:RecordSet",
        "@id": table,
        "name": table,
        "field": [
            {
                "@type": "cr:Field",
                "@id": f"{table}/{name}",
                "name": name,
                "dataType": _data_type(schema.field(name).type if name in schema.names else pa.string()),
                "source": {"fileSet": {"@id": f"{table}-files"}, **source},
            }
            for name, source in fields.items()
        ],
    }


def _in_folder(name: str) -> dict[str, Any]:
    return {"transform": {"regex": f".*{name}=([^/]*)/.*"}}


def _data_type(kind: pa.DataType) -> str:
    if pa.types.is_timestamp(kind):
        return "sc:DateTime"
    return "sc:Integer" if pa.types.is_integer(kind) else "sc:Text"


def _provenance(facts: CardFacts) -> dict[str, Any]:
    """Where the corpus comes from: its sources, the stages that made it of them, and the version before it."""
    sources = list(_sources(facts))
    before = {"@type": "prov:Entity", "@id": _urn(facts, "version", f"1.{facts.snapshot - 1}.0")}
    return {
        "prov:wasDerivedFrom": sources,
        **({"prov:wasRevisionOf": before} if facts.snapshot else {}),
        "prov:wasGeneratedBy": list(_activities(facts, [source["@id"] for source in sources])),
        "prov:wasAttributedTo": {"@type": "prov:SoftwareAgent", "prov:label": f"FinPile {facts.finpile}"},
    }


def _sources(facts: CardFacts) -> Iterator[dict[str, Any]]:
    for number, source in enumerate(facts.config["sources"]):
        yield {
            "@type": "prov:Entity",
            "@id": _urn(facts, "source", str(number)),
            "prov:label": f"{source['dataset']}: {_name_of(source['name'])}",
            "encodingFormat": source["format"],
            **({"license": source["license"]} if source["license"] else {}),
        }


def _name_of(name: str | Mapping[str, Any]) -> str:
    """The name of a source, or what its records are divided by."""
    return name if isinstance(name, str) else f"sources by {name['field']}"


def _activities(facts: CardFacts, sources: Sequence[str]) -> Iterator[dict[str, Any]]:
    """The stages, each informed by the one before it; the first one used the sources."""
    config = facts.config
    settings = {**config["dedup"], "split": config["heldout"], "tokenizer": _given(config["tokenizer"])}
    before: dict[str, Any] = {"prov:used": [{"@id": source} for source in sources]}
    for name in facts.stages:
        urn = _urn(facts, "stage", name)
        said = {"description": json.dumps(settings[name], sort_keys=True)} if settings.get(name) else {}
        yield {"@type": "prov:Activity", "@id": urn, "prov:label": name, **said, **before}
        before = {"prov:wasInformedBy": {"@id": urn}}


def _given(tokenizer: Mapping[str, Any] | None) -> dict[str, Any]:
    """The keys of a tokenizer that have a value."""
    return {name: value for name, value in (tokenizer or {}).items() if value is not None}


def _urn(facts: CardFacts, kind: str, name: str) -> str:
    return f"urn:finpile:{quote(facts.name, safe='')}:{kind}:{name}"
