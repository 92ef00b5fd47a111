"""Registries of named objects: built-in ones, one per module or package in a package, and those of other packages.

Another package adds an object by an entry point, whose name is that of the object:

    [project.entry-points."finpile.formats"]
    mbox = "my_package.mbox:FORMAT"

Every process of a build loads entry points by itself. `Registry.register` adds an object to the current process alone.
"""

from __future__ import annotations

import importlib
import pkgutil
from functools import cached_property
from pathlib import Path
from typing import TYPE_CHECKING, Any, Generic, Protocol, TypeVar, cast

from finpile.errors import ConfigError, nearest

if TYPE_CHECKING:
    from importlib.metadata import EntryPoint


class Named(Protocol):
    """An object with a name."""

    @property
    def name(self) -> str: ...


T = TypeVar("T", bound=Named)


class Registry(Generic[T]):
    """Objects of one kind by name. An object is imported when it is first needed, its name is known without."""

    def __init__(self, key: str, *, package: str, attribute: str, group: str) -> None:
        """A registry of the objects `attribute` of the modules of `package`, and of the entry points of `group`.

        `key` is the key of the corpus file that holds such a name; error messages begin with it.
        """
        self.group = group
        self._key = key
        self._package = package
        self._attribute = attribute
        self._loaded: dict[str, T] = {}

    def __contains__(self, name: object) -> bool:
        return name in self.built_in or name in self._loaded or name in self._entry_points

    def names(self) -> tuple[str, ...]:
        """All names, sorted."""
        return tuple(sorted({*self.built_in, *self._loaded, *self._entry_points}))

    def check(self, name: str) -> None:
        """Raises: ConfigError for an unknown name, with the nearest known one."""
        if name not in self:
            raise ConfigError(f"{self._key}: {name!r} is not known{nearest(name, self.names())}")

    def get(self, name: str) -> T:
        """The object of that name.

        Raises: ConfigError for an unknown name, and for an entry point that cannot be loaded.
        """
        if name not in self._loaded:
            self.check(name)
            self._loaded[name] = self._load(name)
        return self._loaded[name]

    def register(self, entry: T) -> None:
        """Adds an object to this process.

        Raises: ConfigError for a name that another object has.
        """
        if entry.name in self and (entry.name in self.built_in or self.get(entry.name) != entry):
            raise ConfigError(f"{self._key}: {entry.name!r} is registered already: choose another name")
        self._loaded[entry.name] = entry

    @cached_property
    def built_in(self) -> tuple[str, ...]:
        """Names of the built-in objects, sorted: those of the modules of the package."""
        root, *names = self._package.split(".")  # the packages below the root are not imported
        folders = [str(Path(place, *names)) for place in importlib.import_module(root).__path__]
        return tuple(sorted(module.name for module in pkgutil.iter_modules(folders)))

    @cached_property
    def _entry_points(self) -> dict[str, EntryPoint]:
        from importlib.metadata import entry_points  # reads the metadata of all installed packages

        return {entry.name: entry for entry in entry_points(group=self.group)}

    def _load(self, name: str) -> T:
        if name in self.built_in:
            found: Any = getattr(importlib.import_module(f"{self._package}.{name}"), self._attribute)
        else:
            entry = self._entry_points[name]
            try:
                found = entry.load()
            except (ImportError, AttributeError) as error:
                raise ConfigError(f"{self._key}: {name!r} ({entry.value}) cannot be loaded: {error}") from error
        if getattr(found, "name", None) != name:
            raise ConfigError(f"{self._key}: the object registered as {name!r} has another name: {found!r}")
        return cast(T, found)
