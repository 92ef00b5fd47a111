"""`finpile verify`: the laws of a finished build, checked on the files on disk.

Nothing here trusts the run that wrote the tree: files are read and hashed again, and what can be computed from other
files is computed and compared. Each module holds one group of laws as a function `laws(tree, manifest, advance)`; a new
group is a new module and its entry in `GROUPS`.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

from finpile.manifest import load_manifest
from finpile.tree import Tree
from finpile.verify import distinct, files, inputs, texts
from finpile.verify.law import Advance, Law

__all__ = ["GROUPS", "Law", "verify"]

#: The groups of laws after that of the files, in the order of their report.
GROUPS: tuple[Callable[[Tree, Mapping[str, Any], Advance], list[Law]], ...] = (
    inputs.laws,
    texts.laws,
    distinct.laws,
)


def verify(out: str, advance: Advance = lambda size_bytes: None) -> list[Law]:
    """Checks every law of the tree `out`; `advance` receives the bytes read.

    Raises: InputError where `out` holds no finished build.
    """
    tree = Tree(out)
    manifest = load_manifest(tree)
    found = files.laws(tree, manifest, advance)
    if not all(law.holds for law in found):
        return found  # the rest would read files that are known to be wrong
    return found + [law for group in GROUPS for law in group(tree, manifest, advance)]
