"""`bom.cdx.json`: the corpus as a CycloneDX 1.6 bill of materials, with a data component for each source.

Source: https://cyclonedx.org/docs/1.6/json/
"""

from __future__ import annotations

import hashlib
import json
import uuid
from collections.abc import Iterator
from typing import Any
from urllib.parse import quote

from finpile.documents.document import Label, label_of
from finpile.output.layout import row_of
from finpile.report.compliance.facts import PaperFacts

_SPEC = "1.6"
_SCHEMA = f"http://cyclonedx.org/schema/bom-{_SPEC}.schema.json"
#: Identifiers of SPDX; a licence by another name is `name`.
SPDX_LICENSES = frozenset({
    "AGPL-3.0-only", "AGPL-3.0-or-later", "Apache-2.0", "BSD-2-Clause", "BSD-3-Clause", "BSL-1.0", "CC-BY-2.0",
    "CC-BY-2.5", "CC-BY-3.0", "CC-BY-4.0", "CC-BY-NC-2.0", "CC-BY-NC-3.0", "CC-BY-NC-4.0", "CC-BY-NC-ND-3.0",
    "CC-BY-NC-ND-4.0", "CC-BY-NC-SA-2.0", "CC-BY-NC-SA-3.0", "CC-BY-NC-SA-4.0", "CC-BY-ND-4.0", "CC-BY-SA-2.5",
    "CC-BY-SA-3.0", "CC-BY-SA-4.0", "CC0-1.0", "CDLA-Permissive-1.0", "CDLA-Permissive-2.0", "CDLA-Sharing-1.0",
    "EPL-2.0", "EUPL-1.2", "GFDL-1.2-only", "GFDL-1.2-or-later", "GFDL-1.3-only", "GPL-2.0-only", "GPL-2.0-or-later",
    "GPL-3.0-only", "GPL-3.0-or-later", "ISC", "LGPL-2.1-only", "LGPL-3.0-only", "MIT", "MPL-2.0", "ODbL-1.0",
    "ODC-By-1.0", "PDDL-1.0", "PostgreSQL", "Unlicense", "Zlib",
})  # fmt: skip
_CORPUS = "corpus"


def bom(facts: PaperFacts) -> bytes:
    """The bill of materials. Its serial number follows from its content."""
    components = list(_sources(facts))
    value = {
        "$schema": _SCHEMA,
        "bomFormat": "CycloneDX",
        "specVersion": _SPEC,
        "version": 1,
        "metadata": {
            "tools": {"components": [{"type": "application", "name": "finpile", "version": facts.card.finpile}]},
            "component": _corpus(facts),
            **_provider(facts),
        },
        "components": components,
        "dependencies": [
            {"ref": _CORPUS, "dependsOn": [component["bom-ref"] for component in components]},
            *({"ref": component["bom-ref"]} for component in components),
        ],
        "compositions": [{"aggregate": "complete", "assemblies": [_CORPUS]}],
    }
    serial = uuid.uuid5(uuid.NAMESPACE_URL, json.dumps(value, sort_keys=True, ensure_ascii=True))
    value = {
        **{key: value[key] for key in ("$schema", "bomFormat", "specVersion")},
        "serialNumber": serial.urn,
        **value,
    }
    return (json.dumps(value, indent=1, ensure_ascii=False) + "\n").encode()


def _provider(facts: PaperFacts) -> dict[str, Any]:
    name = facts.stated.provider.name
    return {"manufacturer": {"name": name}} if name else {}


def _corpus(facts: PaperFacts) -> dict[str, Any]:
    files = [file.path for file in facts.card.files]
    return {
        "type": "data",
        "bom-ref": _CORPUS,
        "name": facts.card.name,
        "version": facts.card.version,
        "description": facts.card.description,
        "hashes": [_listing(facts, "")],
        "licenses": _licenses(row.license for row in facts.card.licenses),
        "properties": _properties(
            documents=sum(facts.card.splits.values()),
            textBytes=facts.card.text_bytes,
            files=len(files),
            takenDown=facts.card.num_taken_down,
        ),
        "data": [
            {
                "type": "dataset",
                "name": facts.card.name,
                "contents": {"properties": _properties(splits=", ".join(facts.card.splits))},
                **_governance(facts),
            }
        ],
    }


def _governance(facts: PaperFacts) -> dict[str, Any]:
    said = facts.stated.provider
    if not said.name:
        return {}
    return {"governance": {"custodians": [{"organization": {"name": said.name}}]}}


def _sources(facts: PaperFacts) -> Iterator[dict[str, Any]]:
    for label, digest in facts.digests.items():
        dataset, source = label
        ref = f"source:{quote(dataset, safe='')}/{quote(source, safe='')}"
        found = [file for file in facts.card.documents if label_of(file) == label]
        kind = facts.kinds[label]
        statement = facts.stated.sources.get(f"{dataset}/{source}")
        yield {
            "type": "data",
            "bom-ref": ref,
            "group": dataset,
            "name": source,
            "version": facts.card.version,
            "hashes": [_listing(facts, _folder(facts, label))],
            "licenses": _licenses(row.license for row in facts.card.licenses if (row.dataset, row.source) == label),
            **(
                {"externalReferences": [{"type": "source-distribution", "url": statement.link}]}
                if statement and statement.link
                else {}
            ),
            "properties": _properties(
                kind=kind or "not stated",
                formats=", ".join(facts.formats_of(label)),
                documents=sum(file["documents"] for file in found),
                heldOutDocuments=sum(file["heldout"] for file in found),
                textBytes=sum(file["text_bytes"] for file in found),
                documentsDigest=digest,
            ),
            "data": [
                {
                    "type": "dataset",
                    "name": f"{dataset}: {source}",
                    **({"description": statement.description} if statement and statement.description else {}),
                }
            ],
        }


def _folder(facts: PaperFacts, label: Label) -> str:
    paths: Iterator[str] = (file["path"] for file in facts.card.documents)
    return next(path.rsplit("/", 1)[0] + "/" for path in paths if row_of(path) == label)


def _listing(facts: PaperFacts, folder: str) -> dict[str, str]:
    """The SHA-256 of what `sha256sum` prints of all published files below a folder, in the order of their paths."""
    lines = "".join(f"{file.checksum}  {file.path}\n" for file in facts.card.files if file.path.startswith(folder))
    return {"alg": "SHA-256", "content": hashlib.sha256(lines.encode()).hexdigest()}


def _licenses(named: Iterator[str | None]) -> list[dict[str, Any]]:
    return [
        {"license": {"id" if value in SPDX_LICENSES else "name": value}}
        for value in sorted({value for value in named if value})
    ]


def _properties(**values: object) -> list[dict[str, str]]:
    return [{"name": f"finpile:{name}", "value": str(value)} for name, value in values.items()]
