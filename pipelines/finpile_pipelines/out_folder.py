"""Which contents of OUT a build may overwrite, and the state that it records in OUT while it changes them.

Decision: docs/decisions/0022-an-old-build-stays-until-the-new-one-is-whole.md.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import replace

from finpile import storage
from finpile.config import CorpusConfig, to_dict
from finpile.errors import ConfigError, command_line
from finpile.output.build_state import DEDUP_NAME, BuildState, read_state, write_state
from finpile.output.layout import Layout
from finpile.output.manifest import damaged_manifest, file_of_list, find_manifest
from finpile.output.takedowns import LIST_SUFFIX, read_takedowns
from finpile.plugins import stages


def check_kind(layout: Layout) -> None:
    """Raises: ConfigError for a folder that contains anything but a build."""
    names = names_in_out(layout.root)
    if names and not names & {".work", "manifest.json"}:
        raise ConfigError(f"-o {layout.root} holds files of another kind ({sorted(names)[0]}, ...): name a new folder")


def names_in_out(out: str) -> set[str]:
    """The names of the files and folders in an output folder; none if it does not exist.

    Raises: ConfigError if it is a file.
    """
    try:
        return set(storage.list_folder(out))
    except FileNotFoundError:
        return set()
    except NotADirectoryError:
        raise ConfigError(f"-o {out} is a file: name a folder") from None


def check_later_stages(layout: Layout, until: str) -> None:
    """Raises: ConfigError for a build that ran stages after `until`: their files would not fit the new documents."""
    later = [folder for stage in stages.after(until) for folder in layout.published(stage) if storage.exists(folder)]
    if later:
        raise ConfigError(f"-o {layout.root} holds a whole build ({later[0]}): name a new folder, or say --replace")


def check_snapshots(layout: Layout) -> None:
    """Raises: ConfigError for a build with snapshots: it is built again as a whole only."""
    if storage.exists(layout.snapshots):
        of_dedup = (find_manifest(layout) or {}).get("name") == DEDUP_NAME  # nothing is appended to its output
        made_by, append = ("", "") if of_dedup else ("`finpile append` or ", "append to it, or ")
        raise ConfigError(
            f"-o {layout.root} holds snapshots of {made_by}`finpile remove`: {append}say --fresh to build the corpus "
            "of all inputs again without them"
        )


def check_takedowns(layout: Layout, saved: str | None) -> None:
    """Writes the ids of documents that were taken down, one in each line, to the file `saved`.

    Raises: ConfigError without such a file, if documents were taken down: a fresh build brings them back;
    IntegrityError if the manifest or the list is damaged.
    """
    if not any(name.endswith(LIST_SUFFIX) for name in storage.names_in(layout.snapshots)):
        return  # nothing was taken down, or the lists were saved by the run that is continued
    manifest = find_manifest(layout)
    if manifest is None:
        raise damaged_manifest(layout.manifest, "is missing or altered, and lists the documents that were taken down")
    file, takedowns = file_of_list(manifest), read_takedowns(layout, manifest)
    if file is None:
        return
    if saved is None:
        remove = command_line("remove", layout.root, "--documents-from", "FILE", "--why", "TEXT")
        raise ConfigError(
            f"-o {layout.root} holds a build from which {takedowns.num_rows:,} documents were taken down "
            f"({layout.root}/{file['path']}), and --fresh brings them back: say --takedowns-to FILE to save their "
            f"ids, and after the build `{remove}`"
        )
    storage.write_bytes(saved, "".join(f"{name}\n" for name in takedowns["id"].to_pylist()).encode())


def forget_stages(layout: Layout) -> None:
    """Makes every stage run again. Published files stay until the stage that writes them begins."""
    storage.remove_tree(layout.snapshots_work)
    storage.remove_tree(layout.indexes)
    for stage in stages.names():
        layout.work(stage).remove()


class OutFolder:
    """The output folder of one run whose last stage is `until`; `as_of` is that of `BuildState`."""

    def __init__(
        self,
        layout: Layout,
        config: CorpusConfig,
        until: str,
        *,
        replace: bool,
        is_writable: bool,
        as_of: Iterable[str] = (),
    ) -> None:
        self._layout = layout
        self._until = until
        without = () if config.tokenizer else (info.name for info in stages.table() if info.makes_tokens)
        self._not_built = {*stages.after(until), *without}
        self._may_replace = replace
        self._is_writable = is_writable
        self._state = BuildState.of_config(to_dict(config), is_whole=False, as_of=as_of)
        self._is_ours = False
        self._found = read_state(layout)

    @property
    def is_open(self) -> bool:
        """Whether the manifest has to be written: this build or an earlier one changed published files."""
        return self._found is not None and not self._found.is_whole

    def check_name(self) -> None:
        """Raises: ConfigError if OUT holds a build of another name that is not to be replaced."""
        before = None if self._may_replace else self._before()
        if before is not None and before.name and before.name != self._state.name:
            raise ConfigError(
                f"-o {self._layout.root} holds the build {before.name!r}, not {self._state.name!r}: name another "
                "folder, or say --replace to overwrite it"
            )

    def claim(self, why: str) -> None:
        """Called before anything is changed.

        Raises: ConfigError if OUT cannot be written, or holds another build that is not to be replaced.
        """
        if not self._is_writable:
            raise ConfigError(
                f"-o {self._layout.root}: cannot be written, and {why}: name a folder that can be written"
            )
        if not self._is_ours:
            self._check_paths()
        self._is_ours = True

    def begin(self, stage: str) -> None:
        """Called before a stage runs."""
        self.claim(f"stage {stage} has to run")
        if self._layout.published(stage) or self.is_open or not storage.is_file(self._layout.manifest):
            self._write(is_whole=False)
            for folder in (self._layout.snapshots, self._layout.versions, self._layout.indexes, self._layout.delta):
                storage.remove_tree(folder)
        if stage == self._until:
            self.remove_later()

    def remove_later(self) -> None:
        """Removes what stages wrote that are not part of this build: those after its last one, and without a tokenizer
        those that make tokens."""
        self._write(is_whole=False)
        for later in sorted(self._not_built):
            self._layout.work(later).remove()
            for folder in self._layout.published(later):
                storage.remove_tree(folder)

    def end(self) -> None:
        """Called after the manifest was written."""
        self._write(is_whole=True)

    def _write(self, *, is_whole: bool) -> None:
        state = replace(self._state, is_whole=is_whole)
        if state != self._found:
            write_state(self._layout, state)
            self._found = state

    def _check_paths(self) -> None:
        """All builds of `finpile dedup` have the same name: there, other inputs make another build."""
        before = None if self._may_replace or self._state.name != DEDUP_NAME else self._before()
        if before is not None and before.paths and not set(before.paths) & set(self._state.paths):
            raise ConfigError(
                f"-o {self._layout.root} holds what was made of other inputs ({before.paths[0]}, ...): name another "
                "folder, or say --replace to overwrite it"
            )

    def _before(self) -> BuildState | None:
        """The build that OUT holds; None if there is none, or it cannot be determined."""
        if self._found is not None and (self.is_open or not storage.is_file(self._layout.manifest)):
            return self._found
        return self._of_manifest() or self._found

    def _of_manifest(self) -> BuildState | None:
        try:
            return BuildState.of_config(storage.read_json(self._layout.manifest)["config"], is_whole=True)
        except (OSError, ValueError, KeyError, TypeError):
            return None
