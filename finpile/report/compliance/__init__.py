"""Papers for authorities, customers and rightsholders, as functions of a build and of what its provider states.

    summary.{md,json}            the public summary of training content (AI Act, Article 53(1)(d))
    licenses.{md,json}           licences by licence and by source; licenses/ has that of each document
    takedown-000002.{md,json}    the certificate of a removal
    provenance.intoto.json       an in-toto statement over the manifest and all files, to be signed by the user
    bom.cdx.json                 a CycloneDX bill of materials
    stated.yaml                  what was stated, and which manifest the papers are about

They are below `OUT/compliance`, in no manifest: one of them has the digest of the manifest. `finpile verify` makes them
again. No text, title or URL of a document is in them.

Decision: docs/decisions/0095-compliance-papers.md.
"""

from __future__ import annotations

import hashlib
from collections.abc import Iterable, Iterator, Mapping
from typing import Any

import pyarrow as pa

from finpile import storage
from finpile.config.rows import entries_of
from finpile.documents.document import label_of
from finpile.output.layout import COMPLIANCE, Layout
from finpile.output.lock import hold_to_write
from finpile.output.manifest import counts_by_stage
from finpile.output.published_files import Advance, PublishedFiles
from finpile.output.takedowns import read_takedowns
from finpile.report.compliance.bom import bom
from finpile.report.compliance.domains import suffixes_version
from finpile.report.compliance.facts import PaperFacts, kind_of, manifest_url, removals_of
from finpile.report.compliance.licenses import licenses_paper
from finpile.report.compliance.paper import Paper
from finpile.report.compliance.provenance import provenance
from finpile.report.compliance.stated import Given, RunSteps, Statement, load_given
from finpile.report.compliance.summary import summary_paper
from finpile.report.compliance.survey import Survey
from finpile.report.compliance.takedowns import certificates

#: The file of `Given`.
STATED = f"{COMPLIANCE}/stated.yaml"

__all__ = [
    "STATED",
    "Given",
    "RunSteps",
    "Statement",
    "load_given",
    "papers_of",
    "removals_of",
    "unstated_kinds",
    "write_papers",
]


def write_papers(
    layout: Layout,
    manifest: Mapping[str, Any],
    stated: Statement,
    runs: Iterable[RunSteps] = (),
    advance: Advance = lambda size_bytes: None,
) -> list[str]:
    """Writes the papers of a build or of its current snapshot; returns their URLs, without those of single documents.

    Raises: ConfigError for a statement about other sources or removals, or a folder that cannot be written;
    IntegrityError for a damaged file of documents.
    """
    rows = {"/".join(label) for label in entries_of(manifest["config"])}
    stated.check(rows, removals_of(read_takedowns(layout, manifest)))
    given = Given(manifest=manifest["checksum"], suffixes=suffixes_version(), stated=stated, runs=tuple(runs))
    refusal = f"{layout.root}: the folder is read-only: copy it to a writable disk to write its papers"
    with hold_to_write(layout, "report", refusal):
        storage.remove_tree(layout.compliance)
        written = []
        for path, content in papers_of(layout, manifest, given, advance):
            url = storage.join(layout.root, path)
            if isinstance(content, pa.Table):
                storage.write_parquet(url, content)
            else:
                storage.write_bytes(url, content)
                written.append(url)
    return written


def papers_of(
    layout: Layout, manifest: Mapping[str, Any], given: Given, advance: Advance
) -> Iterator[tuple[str, bytes | pa.Table]]:
    """The papers of the build or snapshot that `given` names, by path relative to OUT: tables of the licences of
    documents first. `manifest` is the current one.

    Raises: IntegrityError for a damaged file.
    """
    url = manifest_url(layout, manifest, given.manifest)
    content = storage.read_bytes(url)
    manifest = storage.read_json(url)
    sha256 = hashlib.sha256(content).hexdigest()
    facts = PaperFacts(layout=layout, manifest=manifest, manifest_sha256=sha256, given=given, survey=Survey())
    for file in PublishedFiles(layout, manifest).below("documents"):
        yield from facts.survey.add(file, lambda label: facts.kinds[label] == "crawled", advance)
    papers = {STATED: given.to_yaml(), f"{COMPLIANCE}/bom.cdx.json": bom(facts)}
    for name, paper in _texts(facts):
        papers[f"{COMPLIANCE}/{name}.md"] = paper.to_markdown()
        papers[f"{COMPLIANCE}/{name}.json"] = paper.to_json()
    yield from papers.items()
    yield f"{COMPLIANCE}/provenance.intoto.json", provenance(facts, papers)


def _texts(facts: PaperFacts) -> Iterator[tuple[str, Paper]]:
    yield "summary", summary_paper(facts)
    yield "licenses", licenses_paper(facts)
    for number, paper in certificates(facts):
        yield f"takedown-{number:06d}", paper


def unstated_kinds(manifest: Mapping[str, Any]) -> list[str]:
    """The sources with documents whose kind is not stated."""
    entries = entries_of(manifest["config"])
    labels = sorted({label_of(file) for file in counts_by_stage(manifest)["split"]["documents"]})
    return ["/".join(label) for label in labels if kind_of(entries[label]) is None]
