"""Checks of the papers of `finpile report --compliance`: made again from the build, they equal the files on disk."""

from __future__ import annotations

from finpile import storage
from finpile.errors import command_line
from finpile.output.layout import COMPLIANCE
from finpile.output.snapshots import numbers
from finpile.output.takedowns import read_takedowns
from finpile.report.compliance import STATED, Given, load_given, papers_of, removals_of
from finpile.report.compliance.domains import suffixes_version
from finpile.report.compliance.facts import manifest_url
from finpile.report.compliance.takedowns import DROPPED
from finpile.verify.check import Check
from finpile.verify.made_again import differences
from finpile.verify.output import Output

_NAME = "compliance papers = the build and what was stated"


def checks(output: Output) -> list[Check]:
    """Reads all documents, and the papers; no check if there are none."""
    layout = output.layout
    if not storage.list_files(layout.compliance):
        return []
    given = load_given(storage.join(layout.root, STATED))
    if message := _unrelated(output, given):
        return [Check.of(_NAME, [message], "")]
    papers = papers_of(layout, output.manifest, given, output.advance)
    number, wrong = differences(layout, COMPLIANCE, papers)
    of = "" if given.manifest == output.manifest["checksum"] else ", of an earlier snapshot"
    return [Check.of(_NAME, wrong, f"{number} files{of}")]


def _unrelated(output: Output, given: Given) -> str:
    """Why the papers cannot be made again; empty if they can."""
    again = f"`{command_line('report', output.layout.root, '--compliance')}` writes them again"
    if given.suffixes != suffixes_version():
        return f"domains are of {given.suffixes}, and this is {suffixes_version()}: install that version; or {again}"
    url = manifest_url(output.layout, output.manifest, given.manifest)
    if not url:
        return f"the papers are of another build, of a snapshot that is gone, or older than the reports: {again}"
    listed = read_takedowns(output.layout, storage.read_json(url))
    for number in set(removals_of(listed)) - {*numbers(output.layout)}:
        paper = storage.join(output.layout.compliance, f"takedown-{number:06d}.md")
        if storage.is_file(paper) and DROPPED.encode() not in storage.read_bytes(paper):
            return (
                f"`finpile vacuum` deleted snapshot {number}, of which takedown-{number:06d} has more than is left: "
                f"keep it elsewhere; {again}"
            )
    return ""
