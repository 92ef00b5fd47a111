"""MkDocs hooks: the README becomes the first page, and files of the repository that pages link to join the site.

Links in `docs/` and in the README are relative to the repository, so that they also work there. A linked file outside
`docs/` is copied below `files/`; a link to a folder becomes plain text.
"""

from __future__ import annotations

import posixpath
import re
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from mkdocs.structure.files import File, Files

ROOT = Path(__file__).resolve().parents[1]
HOME, COPIED = "index.md", "files"
_LINK = re.compile(r"(?P<image>!?)\[(?P<text>[^\]]*)\]\((?P<target>[^)#\s]+)(?P<anchor>#[^)]*)?\)")


def on_files(files: Files, config: Any) -> Files:
    """Adds the README and the linked files."""
    files.append(File.generated(config, HOME, content=(ROOT / "README.md").read_text()))
    waiting = ["README.md", *(f"docs/{file.src_uri}" for file in files.documentation_pages() if file.src_uri != HOME)]
    added: set[str] = set()
    while waiting:
        for target in sorted(_linked_files(waiting.pop()) - added):
            added.add(target)
            files.append(File.generated(config, f"{COPIED}/{target}", abs_src_path=str(ROOT / target)))
            waiting += [target] if target.endswith(".md") else []
    return files


def on_page_markdown(markdown: str, *, page: Any, **_: Any) -> str:
    """Links of a page as links of the site."""
    source = _path_in_repository(page.file.src_uri)

    def rewritten(link: re.Match[str]) -> str:
        target = _resolve(source, link["target"])
        if target is None:
            return link[0]
        if (ROOT / target).is_dir():
            return link["text"]
        url = posixpath.relpath(_path_in_site(target), posixpath.dirname(page.file.src_uri) or ".")
        return f"{link['image']}[{link['text']}]({url}{link['anchor'] or ''})"

    return _LINK.sub(rewritten, markdown)


def _linked_files(source: str) -> set[str]:
    """The files outside `docs/` that a page of the repository links to."""
    return {target for target in _targets(source) if not target.startswith("docs/") and (ROOT / target).is_file()} - {
        "README.md"
    }


def _targets(source: str) -> Iterator[str]:
    for link in _LINK.finditer((ROOT / source).read_text()):
        target = _resolve(source, link["target"])
        if target is not None:
            yield target


def _resolve(source: str, target: str) -> str | None:
    """The path in the repository that a link of the page `source` means; None for URLs and for what does not exist."""
    path = posixpath.normpath(posixpath.join(posixpath.dirname(source), target))
    return path if "://" not in target and not target.startswith("mailto:") and (ROOT / path).exists() else None


def _path_in_repository(page: str) -> str:
    if page == HOME:
        return "README.md"
    return page.removeprefix(f"{COPIED}/") if page.startswith(f"{COPIED}/") else f"docs/{page}"


def _path_in_site(target: str) -> str:
    if target == "README.md":
        return HOME
    return target.removeprefix("docs/") if target.startswith("docs/") else f"{COPIED}/{target}"
