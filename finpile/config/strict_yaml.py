"""Strict YAML to frozen dataclasses: unknown keys, missing keys and values of another type are errors.

Every error has the file, the line, the value found, the value expected, and the nearest known name.
"""

from __future__ import annotations

import dataclasses
import posixpath
import re
import types
import typing
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, field
from datetime import date, datetime
from pathlib import Path
from typing import Any, Literal, NoReturn

import yaml

from finpile.errors import ConfigError, nearest

T = typing.TypeVar("T")

_NULL = "tag:yaml.org,2002:null"
#: As null, where nothing else is meant by it.
_NONE = "none"
_NAMES = {
    str: "text",
    int: "a whole number",
    float: "a number",
    bool: "true or false",
    date: "a day such as 2022-07-31",
}


@dataclass(frozen=True, slots=True)
class Place:
    """The place of a mapping in a YAML file: the lines, from 1, of its keys and of the scalars below each key."""

    file: str = ""
    line: int = 0
    keys: Mapping[str, int] = field(default_factory=dict)
    values: Mapping[tuple[str, str], int] = field(default_factory=dict)

    def of(self, key: str, value: str = "") -> str:
        """`file:line: ` of a value below a key, else of the key, else of the mapping: the prefix of an error message.

        Empty for a configuration that was not read from a file.
        """
        line = self.values.get((key, value)) or self.keys.get(key) or self.line
        return f"{self.file}:{line}: " if self.file else ""


#: Metadata of a dataclass field that has the `Place` of its mapping and is not a setting.
PLACE: Mapping[str, Any] = {"finpile.place": True}
#: Metadata of a dataclass field that has the name of a preset until its long form replaces it, and is not a setting.
PRESET: Mapping[str, Any] = {"finpile.preset": True}


_ADDED = "finpile.added"


def added_keys(kinds: Callable[[], Mapping[str, Any]]) -> Mapping[str, Any]:
    """The metadata of a field that holds the settings of further keys, by name: `kinds` gives the type of each.

    The keys are on one level with the dataclass's own fields, and are checked like these.
    """
    return {_ADDED: kinds}


def added_field(kind: Any) -> dataclasses.Field[Any] | None:
    """The field of a config that holds the settings of further keys."""
    return next((entry for entry in dataclasses.fields(kind) if _ADDED in entry.metadata), None)


def settings(kind: Any) -> list[dataclasses.Field[Any]]:
    """The fields of a configuration that a file sets by their own names: not `Place`, a preset or `added_field`."""
    other = {"finpile.place", "finpile.preset", _ADDED}
    return [entry for entry in dataclasses.fields(kind) if not other & entry.metadata.keys()]


def absolute(file: str | Path, place: str) -> str:
    """A path that a file names, relative to the file's folder, as an absolute path or URL; a URL as it is.

    >>> absolute("s3://corpora/news/corpus.yaml", "../in"), absolute("/corpora/corpus.yaml", "in")
    ('s3://corpora/in', '/corpora/in')
    """
    if "://" in place:
        return place
    if "://" not in str(file) or posixpath.isabs(place):
        return str((Path(file).parent / place).resolve())
    scheme, path = str(file).split("://", 1)
    return f"{scheme}://{posixpath.normpath(posixpath.join(posixpath.dirname(path), place))}"


def load_yaml(path: str | Path, kind: type[T], what: str = "the file") -> T:
    """Reads a YAML file, at a local path or an fsspec URL, into a dataclass.

    A dataclass with a classmethod `named` can also be given by name; a classmethod `choices` lists the names. One with
    a classmethod `parameters_of` is given by name, or as `{NAME: PARAMETERS}`; the method returns the dataclass of the
    parameters. In a list, a name can give several values, by a classmethod `all_named`.

    Raises: ConfigError.
    """
    file: str | Path = str(path) if "://" in str(path) else Path(path)
    try:
        node = yaml.compose(_read(file), Loader=yaml.SafeLoader)
    except OSError as error:
        reason = error.strerror or ("no such file" if isinstance(error, FileNotFoundError) else error)
        raise ConfigError(f"{file}: cannot be read ({reason}); give the path of a YAML file") from error
    except (yaml.YAMLError, ValueError) as error:
        raise ConfigError(f"{file}: is not YAML: {' '.join(str(error).split())}") from error
    except RecursionError:
        raise ConfigError(f"{file}: lists or mappings are nested too deep; expected the keys of {what}") from None
    if node is None:
        raise ConfigError(f"{file}: is empty; expected the keys of {what}")
    try:
        return typing.cast(T, _Reader(str(file)).read(node, kind, what))
    except RecursionError:
        raise ConfigError(f"{file}: a list or mapping has itself as a part (`&` and `*`): write it out") from None


def from_values(values: Mapping[str, Any], kind: type[T], what: str) -> T:
    """Reads what `load_yaml` would read from a file with these values.

    Raises: ConfigError.
    """
    node = yaml.compose(yaml.safe_dump(values), Loader=yaml.SafeLoader)
    return typing.cast(T, _Reader(what).read(typing.cast(yaml.Node, node), kind, what))


def _read(file: str | Path) -> str:
    if isinstance(file, Path):
        return file.read_text(encoding="utf-8")
    from finpile.storage.file_systems import file_system_of, read_all  # fsspec: not for local files

    return read_all(*file_system_of(file)).decode()


class _Reader:
    """Converts YAML nodes, which have line numbers, into values of annotated types."""

    def __init__(self, file: str) -> None:
        self._file = file
        self._loader = yaml.SafeLoader("")

    def read(self, node: yaml.Node, kind: Any, what: str) -> Any:
        origin = typing.get_origin(kind)
        if origin in (typing.Union, types.UnionType):
            return self._union(node, typing.get_args(kind), what)
        if dataclasses.is_dataclass(kind):
            return self._dataclass(node, kind, what)
        if origin is Literal:
            choices = typing.get_args(kind)
            value = self._plain(node, what)
            return value if value in choices else self._fail(node, what, kind)
        if origin is tuple:
            return self._tuple(node, typing.get_args(kind)[0], what)
        if origin is Mapping:
            return self._mapping(node, what, typing.get_args(kind)[1])
        return self._scalar(node, kind, what)

    def _union(self, node: yaml.Node, kinds: tuple[Any, ...], what: str) -> Any:
        for kind in kinds:
            if self._fits(node, kind):
                return None if kind is type(None) else self.read(node, kind, what)
        return self._fail(node, what, *kinds)

    def _fits(self, node: yaml.Node, kind: Any) -> bool:
        """Whether a node looks like the kind: enough to choose a member of a union, before `read` checks the value."""
        if kind is type(None):
            return isinstance(node, yaml.ScalarNode) and (node.tag == _NULL or node.value == _NONE)
        if dataclasses.is_dataclass(kind):
            named = hasattr(kind, "named") and isinstance(node, yaml.ScalarNode) and node.tag.endswith(":str")
            return named or isinstance(node, yaml.MappingNode)
        if typing.get_origin(kind) is Literal:
            return isinstance(node, yaml.ScalarNode) and node.value in typing.get_args(kind)
        if typing.get_origin(kind) in (tuple, Mapping):
            return not isinstance(node, yaml.ScalarNode)
        try:
            return isinstance(node, yaml.ScalarNode) and _is_a(self._plain(node, "a value"), kind)
        except ConfigError:
            return False

    def _dataclass(self, node: yaml.Node, kind: Any, what: str) -> Any:
        if isinstance(node, yaml.ScalarNode) and hasattr(kind, "named") and node.tag.endswith(":str"):
            return self._made(node, lambda: kind.named(node.value))
        if not isinstance(node, yaml.MappingNode):
            self._fail(node, what, kind)
        if hasattr(kind, "parameters_of"):
            return self._with_parameters(node, kind, what)
        every_hint = typing.get_type_hints(kind)
        hints = {entry.name: every_hint[entry.name] for entry in settings(kind)}
        places = [entry.name for entry in dataclasses.fields(kind) if PLACE.items() <= entry.metadata.items()]
        values: dict[str, Any] = {name: self._place(node) for name in places}
        further = added_field(kind)
        added = {} if further is None else further.metadata[_ADDED]()
        hints |= {name: of | None for name, of in added.items()}
        for key, child in self._entries(node, what):
            if key not in hints:
                self._error(_key_node(node, key), f"unknown key `{key}` in {what}{nearest(key, hints)}")
            values[key] = self.read(child, hints[key], f"`{key}`")
        if further is not None:
            given = {name: values.pop(name, None) for name in added}
            values[further.name] = {name: value for name, value in given.items() if value is not None}
        for entry in dataclasses.fields(kind):
            required = entry.default is dataclasses.MISSING and entry.default_factory is dataclasses.MISSING
            if required and entry.name not in values:
                self._error(node, f"key `{entry.name}` is missing in {what}")
        return self._made(node, lambda: kind(**values))

    def _with_parameters(self, node: yaml.MappingNode, kind: Any, what: str) -> Any:
        entries = list(self._entries(node, what))
        if len(entries) != 1:
            self._error(node, f"{what} is a mapping of {len(entries)} keys: expected `NAME: {{PARAMETER: VALUE}}`")
        [(name, child)] = entries
        parameters = self.read(child, self._made(node, lambda: kind.parameters_of(name)), f"`{name}`")
        return self._made(node, lambda: kind(name=name, parameters=parameters))

    def _place(self, node: yaml.MappingNode) -> Place:
        keys = {key.value: key.start_mark.line + 1 for key, _ in node.value}
        values: dict[tuple[str, str], int] = {}
        for key, child in node.value:
            for leaf in _leaves(child):
                values.setdefault((key.value, leaf.value), leaf.start_mark.line + 1)
        return Place(self._file, node.start_mark.line + 1, keys, values)

    def _made(self, node: yaml.Node, make: typing.Callable[[], T]) -> T:
        """The value that `make` returns; an error of its checks gets the line of the key or entry that it names."""
        try:
            return make()
        except ConfigError as error:
            self._error(_blamed(node, str(error)), str(error))

    def _tuple(self, node: yaml.Node, kind: Any, what: str) -> tuple[Any, ...]:
        if isinstance(node, yaml.ScalarNode) and (kind is str or hasattr(kind, "named")):
            return self._entry(node, kind, what)
        if not isinstance(node, yaml.SequenceNode):
            self._error(node, f"{what} is {_found(node)}: expected a list")
        return tuple(value for child in node.value for value in self._entry(child, kind, f"an entry of {what}"))

    def _entry(self, node: yaml.Node, kind: Any, what: str) -> tuple[Any, ...]:
        """The values of an entry of a list: several for the name of a preset."""
        if isinstance(node, yaml.ScalarNode) and hasattr(kind, "all_named") and node.tag.endswith(":str"):
            return self._made(node, lambda: tuple(kind.all_named(node.value)))
        return (self.read(node, kind, what),)

    def _mapping(self, node: yaml.Node, what: str, kind: Any) -> dict[str, Any]:
        if not isinstance(node, yaml.MappingNode):
            self._error(node, f"{what} is {_found(node)}: expected a mapping of names")
        return {key: self.read(child, kind, f"`{key}` of {what}") for key, child in self._entries(node, what)}

    def _entries(self, node: yaml.MappingNode, what: str) -> Iterator[tuple[str, yaml.Node]]:
        """Keys and their values; keys are unique texts."""
        seen: set[str] = set()
        for key, child in node.value:
            if not isinstance(key, yaml.ScalarNode):
                self._error(key, f"a key of {what} is {_found(key)}: expected text")
            if key.value in seen:
                self._error(key, f"key `{key.value}` is given twice in {what}: keep one of them")
            seen.add(key.value)
            yield key.value, child

    def _scalar(self, node: yaml.Node, kind: Any, what: str) -> Any:
        value = self._plain(node, what)
        if not _is_a(value, kind):
            self._fail(node, what, kind)
        return float(value) if kind is float else value

    def _plain(self, node: yaml.Node, what: str) -> Any:
        """The value of a scalar; any other node is returned unchanged and fails the check for a scalar."""
        if not isinstance(node, yaml.ScalarNode):
            return node
        try:
            if b"\0" in str(node.value).encode():  # an escape can be half of a character
                raise ValueError("no path, pattern or name has a zero byte")
            return self._loader.construct_object(node, deep=True)
        except (yaml.YAMLError, ValueError) as error:
            problem = getattr(error, "problem", None) or error
            self._error(node, f"{what} is {_found(node)}: {problem}")

    def _fail(self, node: yaml.Node, what: str, *kinds: Any) -> NoReturn:
        expected = " or ".join(_described(kind) for kind in kinds)
        is_unquoted = str in kinds and isinstance(node, yaml.ScalarNode) and node.tag != _NULL
        remedy = "; put it in quotes if it is text" if is_unquoted else ""
        self._error(node, f"{what} is {_found(node)}: expected {expected}{remedy}")

    def _error(self, node: yaml.Node, message: str) -> NoReturn:
        place = "" if message.startswith(f"{self._file}:") else f"{self._file}:{node.start_mark.line + 1}: "
        raise ConfigError(place + message)


def _is_a(value: Any, kind: Any) -> bool:
    """Strict type check: true is not a number, and a datetime is not a date."""
    if isinstance(value, bool) or kind is bool:
        return isinstance(value, bool) and kind is bool
    if isinstance(value, datetime):
        return False
    return isinstance(value, (int, float) if kind is float else kind)


def _described(kind: Any) -> str:
    if kind is type(None):
        return "null"
    if typing.get_origin(kind) is Literal:
        return " or ".join(typing.get_args(kind))
    if dataclasses.is_dataclass(kind):
        choices: Any = getattr(kind, "choices", tuple)
        return " or ".join(["a mapping", *choices()])
    if typing.get_origin(kind) is Mapping:
        return "a mapping"
    return _NAMES.get(kind, "a list")


def _found(node: yaml.Node) -> str:
    if isinstance(node, yaml.ScalarNode):
        return repr(node.value)
    return "a list" if isinstance(node, yaml.SequenceNode) else "a mapping"


def _key_node(node: yaml.MappingNode, name: str) -> yaml.Node:
    keys: list[yaml.Node] = [key for key, _ in node.value]
    return next(key for key in keys if key.value == name)


def _blamed(node: yaml.Node, message: str) -> yaml.Node:
    """The node that a check's message is about: the key with whose path it begins, or the value below that it quotes.

    A message about no key is about the whole node.
    """
    path, quoted = re.split(r"[^\w.]", message, maxsplit=1)[0].split("."), re.findall(r"'([^']*)'", message)
    for key, child in node.value if isinstance(node, yaml.MappingNode) else ():
        if key.value in path:
            return next((leaf for leaf in _leaves(child) if leaf.value in quoted), key)
    return node


def _leaves(node: yaml.Node) -> Iterator[yaml.ScalarNode]:
    """All scalars below a node, keys included."""
    if isinstance(node, yaml.ScalarNode):
        yield node
        return
    for child in node.value:
        for part in child if isinstance(child, tuple) else (child,):
            yield from _leaves(part)
