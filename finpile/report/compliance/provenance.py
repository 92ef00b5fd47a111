"""`provenance.intoto.json`: an in-toto Statement with the SLSA provenance of a build, unsigned.

Its subjects are the manifest and all files that it lists. The inputs have the digests that `finpile verify` computes:
of the documents of each source before any of them is removed. Paths of the machine are not in it.

Source: https://in-toto.io/Statement/v1, https://slsa.dev/spec/v1.0/provenance
"""

from __future__ import annotations

import hashlib
import json
from collections.abc import Iterator, Mapping
from typing import Any
from urllib.parse import quote

from finpile.documents.document import label_of
from finpile.report.compliance.facts import PaperFacts

_STATEMENT = "https://in-toto.io/Statement/v1"
_PREDICATE = "https://slsa.dev/provenance/v1"
_BUILD_TYPE = "urn:finpile:build:v1"
#: Keys of the corpus file whose values are paths; parameters of filters have names of their own.
_PATHS = frozenset({"paths", "use", "tokenizer", "filters"})
#: The algorithm of `finpile.documents.digest`.
DOCUMENTS_DIGEST = "finpileDocuments"


def provenance(facts: PaperFacts, papers: Mapping[str, bytes]) -> bytes:
    """The statement; `papers` are its by-products, by path."""
    manifest = facts.manifest
    subjects = {file.path: file.checksum for file in facts.card.files}
    subjects |= {file["path"]: file["checksum"] for file in manifest.get("card", ())}
    value = {
        "_type": _STATEMENT,
        "subject": [
            {"name": "manifest.json", "digest": {"sha256": facts.manifest_sha256}},
            *({"name": path, "digest": {"sha256": digest}} for path, digest in sorted(subjects.items())),
        ],
        "predicateType": _PREDICATE,
        "predicate": {
            "buildDefinition": {
                "buildType": _BUILD_TYPE,
                "externalParameters": {"corpus": _without_root(manifest["config"])},
                "internalParameters": {
                    "stages": [{key: stage[key] for key in ("stage", "fingerprint")} for stage in manifest["stages"]],
                    **{key: manifest[key] for key in ("snapshot", "as_of") if key in manifest},
                },
                "resolvedDependencies": [*_code(facts), *_inputs(facts)],
            },
            "runDetails": {
                "builder": {
                    "id": f"pkg:generic/finpile@{manifest['finpile']}",
                    "version": {
                        "finpile": manifest["finpile"],
                        "python": manifest["python"],
                        **manifest["packages"],
                    },
                },
                "metadata": {"invocationId": manifest["checksum"]},
                "byproducts": [
                    {"name": path, "digest": {"sha256": hashlib.sha256(content).hexdigest()}}
                    for path, content in sorted(papers.items())
                ],
            },
        },
    }
    return (json.dumps(value, indent=1, ensure_ascii=False) + "\n").encode()


def _code(facts: PaperFacts) -> Iterator[dict[str, Any]]:
    yield {"name": "finpile", "uri": f"pkg:generic/finpile@{facts.manifest['finpile']}"}
    for package, version in sorted(facts.manifest["packages"].items()):
        yield {"name": package, "uri": f"pkg:pypi/{package}@{version}"}


def _inputs(facts: PaperFacts) -> Iterator[dict[str, Any]]:
    """The inputs of each source, by their documents before anything was removed."""
    cleaned = {label_of(row): row for row in facts.counts["clean"]["sources"]}
    for row in facts.counts["ingest"]["sources"]:
        label = label_of(row)
        found = cleaned.get(label, {})
        digest = found.get("digest_before_filters", found.get("digest"))
        yield {
            "name": f"{row['dataset']}: {row['source']}",
            "uri": f"urn:finpile:{quote(facts.card.name, safe='')}:{quote('/'.join(label), safe='')}",
            **({"digest": {DOCUMENTS_DIGEST: digest}} if digest else {}),
            "annotations": {name: row[name] for name in ("files", "input_bytes", "documents") if name in row},
        }


def _without_root(config: Mapping[str, Any]) -> dict[str, Any]:
    """The corpus file, with paths below its root relative to it, and of paths elsewhere the last name alone."""
    settings = {key: value for key, value in config.items() if key != "root"}
    found: dict[str, Any] = _relative(settings, str(config["root"]).rstrip("/"))
    return found


def _relative(value: Any, root: str, is_path: bool = False) -> Any:
    if isinstance(value, Mapping):
        return {
            key: _relative(entry, root, is_path or (key in _PATHS and not isinstance(entry, Mapping)))
            for key, entry in value.items()
        }
    if isinstance(value, list):
        return [_relative(entry, root, is_path) for entry in value]
    if not isinstance(value, str):
        return value
    found = value.removeprefix(f"{root}/") if root else value
    is_elsewhere = is_path and found.startswith(("/", "file://"))
    return found.rstrip("/").rpartition("/")[2] if is_elsewhere else found
