"""Puts ES modules into one script: pages that are opened from disk cannot load modules.

The modules keep to the forms below, each at the beginning of a line; names that are imported cannot be renamed.

import { a, b } from "./x.js"
export function f, export async function f, export const c, export class C, export { a, b } (from "./x.js")
"""

from __future__ import annotations

import posixpath
import re
from collections.abc import Callable

_IMPORT = re.compile(r"""^import \{([^}]*)\} from ['"](\.[^'"]+)['"];?[ \t]*$""", re.MULTILINE)
_FORWARD = re.compile(r"""^export \{([^}]*)\} from ['"](\.[^'"]+)['"];?[ \t]*$""", re.MULTILINE)
_EXPORT = re.compile(r"^export ((?:async )?function\*?|const|let|var|class) (\w+)", re.MULTILINE)
_LISTED = re.compile(r"^export \{([^}]*)\};?[ \t]*$", re.MULTILINE)
_LEFT = re.compile(r"^(?:import|export)\b.*$", re.MULTILINE)


def bundle(entry: str, read: Callable[[str], str]) -> str:
    """One script that runs the module `entry`; `read` returns the text of a module by its path.

    Raises: ValueError for a form of import or export that is not of those above.

    >>> modules = {"a.js": 'import { b } from "./b.js"\\nb()\\n', "b.js": "export const b = () => 1\\n"}
    >>> print(bundle("a.js", modules.__getitem__))
    (() => {
    "use strict";
    const modules = {};
    modules["b.js"] = (() => {
    const b = () => 1
    return { b };
    })();
    modules["a.js"] = (() => {
    const { b } = modules["b.js"];
    b()
    return {  };
    })();
    })();
    <BLANKLINE>
    """
    parts: list[str] = []
    _add(entry, read, set(), parts)
    return "\n".join(["(() => {", '"use strict";', "const modules = {};", *parts, "})();", ""])


def _add(path: str, read: Callable[[str], str], done: set[str], parts: list[str]) -> None:
    if path in done:
        return
    done.add(path)
    text = read(path)
    folder = posixpath.dirname(path)

    def located(name: str) -> str:
        return posixpath.normpath(posixpath.join(folder, name))

    for _, name in (*_IMPORT.findall(text), *_FORWARD.findall(text)):
        _add(located(name), read, done, parts)
    names = [match[1] for match in _EXPORT.findall(text)]
    names += [name for listed in _LISTED.findall(text) for name in _names(listed)]
    forwarded: list[str] = []

    def forward(match: re.Match[str]) -> str:
        forwarded.extend(_names(match[1]))
        return f'const {{ {", ".join(_names(match[1]))} }} = modules["{located(match[2])}"];'

    text = _FORWARD.sub(forward, text)
    text = _IMPORT.sub(
        lambda match: f'const {{ {", ".join(_names(match[1]))} }} = modules["{located(match[2])}"];', text
    )
    text = _LISTED.sub("", _EXPORT.sub(r"\1 \2", text))
    if left := _LEFT.search(text):
        raise ValueError(f"{path}: this form of import or export cannot be bundled: {left[0]!r}")
    exported = ", ".join([*names, *forwarded])
    parts.append(f'modules["{path}"] = (() => {{\n{text.rstrip()}\nreturn {{ {exported} }};\n}})();')


def _names(listed: str) -> list[str]:
    return [name.strip() for name in listed.split(",") if name.strip()]
