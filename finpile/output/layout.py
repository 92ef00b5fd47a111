"""Paths in the output folder of a build.

OUT/manifest.json                                         written last
OUT/README.md  OUT/croissant.json                         the dataset card (`finpile.report.dataset_card`)
OUT/documents/dataset=D/source=S/train-00000-of-00004.parquet
OUT/documents/dataset=D/source=S/heldout-00000-of-00004.parquet         if documents are held out
OUT/facts/dataset=D/source=S/train-00000-of-00004.parquet the facts of the documents in the file of that name
OUT/removed/stage=S/part-00000-of-00001.parquet
OUT/inputs/part-00000-of-00001.parquet                    the account of each input's bytes
OUT/tokenizer/  OUT/reports/
OUT/tokens/split=train/part-00000-of-00001.arrow
OUT/tokens/split=heldout/dataset=D/source=S/part-00000-of-00001.arrow      if documents are held out
OUT/tokens/index/split=train/part-00000-of-00001.parquet  for each shard: the documents of its tokens
OUT/versions/documents/dataset=D/source=S/train-*.parquet files that only earlier snapshots have
OUT/versions/removed/stage=S/part-*.parquet
OUT/delta/documents/_delta_log/                           Delta Lake tables of all versions (`finpile.delta`)
OUT/delta/documents/dataset=D/source=S/DIGEST.parquet
OUT/delta/removed/
OUT/snapshots/000001.json                                 the manifest of a snapshot, after `finpile append`
OUT/snapshots/000001/tokens/                              the tokens of its documents, laid out like OUT/tokens
OUT/attributes/                                           what `finpile dedup --annotate` says of documents
OUT/compliance/                                           papers of `finpile report --compliance`
OUT/explorer/                                             pages of `finpile explore`
OUT/audit/                                                judgements, sample and results of `finpile audit`
OUT/index/STAGE/STEP/000001/                              keys of the documents that a snapshot brought to a stage
OUT/index/batches/000012.json                             places of the batches of a clean shard
OUT/.work/STAGE/                                          the record of a stage
OUT/.work/STAGE/RUN/                                      files that it passes to later ones; RUN is its fingerprint
OUT/.work/tokenizer/RUN/domains/                          the model of each domain, for corpora as of days
OUT/.work/snapshots/000001/                               the same for a snapshot, laid out like OUT
OUT/.work/build.json                                      whether the manifest describes the folder
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from urllib.parse import quote, unquote

import pyarrow as pa

from finpile import storage
from finpile.documents.document import DOCUMENT_FOLDERS, Label, label_of
from finpile.documents.ledger import LEDGER_FOLDERS
from finpile.output.work_folder import WorkFolder
from finpile.plugins import stages
from finpile.storage.sizes import READ_BYTES

#: Beside a tokenizer: the model before its cut to the vocabulary.
MERGED_MODEL = "merged.parquet"
#: The accounts of all inputs, relative to the root.
INPUTS_PART = "inputs/part-00000-of-00001.parquet"
#: The folder of the indexes of token shards, relative to the root.
TOKEN_INDEX = "tokens/index"
#: The folders of documents and ledger.
TABLES = ("documents", "removed")
FACTS = "facts"
DELTA = "delta"
#: The folders that hold the files of the current snapshot alone.
VERSIONED = (*TABLES, FACTS)
#: The files of the dataset card.
CARD_FILES = (README, CROISSANT) = ("README.md", "croissant.json")
#: The folder of `finpile.history.attributes`.
ATTRIBUTES = "attributes"
#: The folder of the papers of `finpile.report.compliance`.
COMPLIANCE = "compliance"
#: The folder of the files of these that only earlier snapshots have, laid out like OUT.
VERSIONS = "versions"


@dataclass(frozen=True, slots=True)
class Layout:
    """Paths below one output folder (a local path or an fsspec URL), all of them absolute."""

    root: str
    is_kept: bool = field(default=False, compare=False)
    """Whether its work folders are those of a published build or snapshot (`WorkFile.is_kept`)."""

    def __post_init__(self) -> None:
        object.__setattr__(self, "root", storage.absolute(self.root))

    @property
    def manifest(self) -> str:
        return storage.join(self.root, "manifest.json")

    @property
    def state(self) -> str:
        """Whether a build is changing the folder (`finpile.output.build_state`)."""
        return self._in_work("build.json")

    @property
    def documents(self) -> str:
        return storage.join(self.root, "documents")

    @property
    def facts(self) -> str:
        """The facts of Inline XBRL, if documents have any."""
        return storage.join(self.root, FACTS)

    @property
    def removed(self) -> str:
        return storage.join(self.root, "removed")

    @property
    def inputs(self) -> str:
        return storage.join(self.root, "inputs")

    @property
    def tokenizer(self) -> str:
        return storage.join(self.root, "tokenizer")

    @property
    def tokens(self) -> str:
        return storage.join(self.root, "tokens")

    @property
    def reports(self) -> str:
        return storage.join(self.root, "reports")

    @property
    def attributes(self) -> str:
        """What was removed, as attributes of the inputs; they may be deleted."""
        return storage.join(self.root, ATTRIBUTES)

    @property
    def compliance(self) -> str:
        """Papers that `finpile report --compliance` makes of the build; they may be deleted."""
        return storage.join(self.root, COMPLIANCE)

    @property
    def explorer(self) -> str:
        """Pages that `finpile explore` makes of the build; they may be deleted."""
        return storage.join(self.root, "explorer")

    @property
    def audit(self) -> str:
        """What `finpile audit` writes: judgements of a person, and files without texts that may be deleted."""
        return storage.join(self.root, "audit")

    @property
    def delta(self) -> str:
        """The Delta Lake tables (`finpile.delta`)."""
        return storage.join(self.root, DELTA)

    @property
    def snapshots(self) -> str:
        return storage.join(self.root, "snapshots")

    @property
    def versions(self) -> str:
        return storage.join(self.root, VERSIONS)

    def index(self, stage: str, step: str) -> str:
        """The index of keys from which a snapshot finds the documents that new ones touch
        (`finpile.output.key_index`)."""
        return storage.join(self.indexes, stage, step)

    def batch_places(self, shard: int) -> str:
        """The places of the batches of a clean shard."""
        return storage.join(self.indexes, "batches", f"{shard:06d}.json")

    @property
    def indexes(self) -> str:
        return storage.join(self.root, "index")

    def snapshot(self, number: int) -> str:
        """The manifest of a snapshot; number 0 is the build to which the first snapshot was added."""
        return storage.join(self.snapshots, f"{number:06d}.json")

    def snapshot_work(self, number: int) -> Layout:
        """The folder in which a snapshot is made, laid out like OUT; that of number 0 is OUT."""
        return Layout(storage.join(self.snapshots_work, f"{number:06d}")) if number else self

    def snapshot_plan(self, number: int) -> str:
        """What is to be done to make a snapshot the current one: the moves of files, and the manifest."""
        return storage.join(self.snapshot_work(number).root, "commit.json")

    def snapshot_tokens(self, number: int) -> Layout:
        """The folder with the folder `tokens` of a snapshot; that of number 0 is OUT."""
        return Layout(storage.join(self.snapshots, f"{number:06d}")) if number else self

    @property
    def snapshots_work(self) -> str:
        return self._in_work("snapshots")

    @property
    def vacuum_work(self) -> str:
        """Files with which `finpile vacuum` is about to replace published ones."""
        return self._in_work("vacuum")

    @property
    def lock(self) -> str:
        """The file that a command locks while it changes the folder."""
        return self._in_work("lock")

    @property
    def run(self) -> str:
        """The run that changes the folder (`finpile_pipelines.runner.owner`)."""
        return self._in_work("run.json")

    def work(self, stage: str) -> WorkFolder:
        """The record of a stage, and the folders of the files that its runs pass to later stages."""
        return WorkFolder(self._in_work(stage), self.is_kept)

    def _in_work(self, name: str) -> str:
        return storage.join(self.root, ".work", name)

    def published(self, stage: str) -> tuple[str, ...]:
        """The folders outside `.work` that a stage writes, and removes before it runs again."""
        return tuple(storage.join(self.root, name) for name in stages.find(stage).published)


def document_part(dataset: str, source: str, split: str, index: int, count: int) -> str:
    """Path of a shard of the documents of one split, relative to the root; names are percent-encoded as hive readers
    expect."""
    return f"documents/{_source_folder(dataset, source)}/{split}-{index:05d}-of-{count:05d}.parquet"


def facts_part(path: str) -> str:
    """The path of the facts of the documents in a file.

    >>> facts_part("documents/dataset=D/source=S/train-00000-of-00001.parquet")
    'facts/dataset=D/source=S/train-00000-of-00001.parquet'
    """
    return f"{FACTS}/{path.removeprefix('documents/')}"


def removed_part(stage: str, index: int, count: int) -> str:
    return f"removed/stage={stage}/part-{index:05d}-of-{count:05d}.parquet"


def added_part(path: str, snapshot: int) -> str:
    """The path of a published file that a snapshot adds, from that of a build's file.

    >>> added_part("documents/dataset=D/source=S/train-00000-of-00001.parquet", 3)
    'documents/dataset=D/source=S/train-00000-of-00001-snapshot-000003.parquet'
    """
    return f"{path.removesuffix('.parquet')}-snapshot-{snapshot:06d}.parquet"


def rewritten_part(path: str, snapshot: int) -> str:
    """The path of the file that replaces an earlier one in a snapshot.

    >>> rewritten_part("removed/stage=near/part-00000-of-00001-rewritten-000001.parquet", 3)
    'removed/stage=near/part-00000-of-00001-rewritten-000003.parquet'
    """
    return f"{path.removesuffix('.parquet').split('-rewritten-')[0]}-rewritten-{snapshot:06d}.parquet"


def earlier_place(path: str) -> str:
    """Where a published file is that only earlier snapshots have; those of tables leave them for the current one.

    >>> earlier_place("removed/stage=near/part-00000-of-00001.parquet")
    'versions/removed/stage=near/part-00000-of-00001.parquet'
    >>> earlier_place("snapshots/000001-copies.parquet")
    'snapshots/000001-copies.parquet'
    """
    return f"{VERSIONS}/{path}" if path.split("/")[0] in VERSIONED else path


def token_part(split: str, index: int, count: int) -> str:
    return f"tokens/split={split}/part-{index:05d}-of-{count:05d}.arrow"


def heldout_token_part(dataset: str, source: str, index: int, count: int) -> str:
    """Path of a shard of one source's held-out tokens."""
    return f"tokens/split=heldout/{_source_folder(dataset, source)}/part-{index:05d}-of-{count:05d}.arrow"


def heldout_tokens(layout: Layout, dataset: str, source: str) -> str:
    """The folder of one source's held-out token shards."""
    return storage.join(layout.tokens, "split=heldout", _source_folder(dataset, source))


def token_index(shard: str) -> str:
    """Path or URL of the index of a token shard."""
    root, _, below = shard.rpartition("tokens/split=")
    return f"{root}{TOKEN_INDEX}/split={below.removesuffix('.arrow')}.parquet"


def _source_folder(dataset: str, source: str) -> str:
    return f"dataset={quote(dataset, safe='')}/source={quote(source, safe='')}"


def split_of(path: str) -> str:
    """The split of the documents in a file.

    >>> split_of("documents/dataset=D/source=S/heldout-00000-of-00001.parquet")
    'heldout'
    """
    return path.rsplit("/", 1)[-1].split("-", 1)[0]


def row_of(path: str) -> Label:
    """(dataset, source) of the path of a documents shard."""
    named = values_in_path(path)
    return label_of(named)


def read_published(root: str, path: str, columns: Sequence[str] | None = None) -> pa.Table:
    """The Parquet file `root/path`, with the columns that the folders in `path` hold, as strings.

    Folders in `root` hold none, whatever they are called.
    """
    url = storage.join(root, path)
    (table,) = with_path_columns(path, columns, lambda stored: [storage.read_parquet(url, stored)])
    return table


def read_published_parts(root: str, path: str, columns: Sequence[str] | None = None) -> Iterator[pa.Table]:
    """The same, in tables of about `READ_BYTES`; of a file without rows, none."""
    url = storage.join(root, path)
    return with_path_columns(
        path, columns, lambda stored: storage.read_parquet_parts(url, stored, size_bytes=READ_BYTES)
    )


def with_path_columns(
    path: str, columns: Sequence[str] | None, read: Callable[[list[str] | None], Iterable[pa.Table]]
) -> Iterator[pa.Table]:
    """The tables that `read` returns for those of the columns that are in a file at `path`, None for all, with the
    columns that the names of its folders hold, as strings."""
    named = {name: value for name, value in values_in_path(path).items() if columns is None or name in columns}
    stored = None if columns is None else [name for name in columns if name not in named]
    return (_with_named(table, named, columns) for table in read(stored))


def _with_named(table: pa.Table, named: Mapping[str, str], columns: Sequence[str] | None) -> pa.Table:
    for name, value in named.items():
        field = pa.field(name, pa.string(), nullable=False)
        table = table.append_column(field, pa.repeat(pa.scalar(value, pa.string()), table.num_rows))
    return table if columns is None else table.select([name for name in columns if name in table.column_names])


def values_in_path(path: str) -> dict[str, str]:
    """The values of the folders `name=value` above a file, by name."""
    named = dict(part.split("=", 1) for part in path.split("/")[:-1] if "=" in part)
    return {name: unquote(named[name]) for name in (*DOCUMENT_FOLDERS, *LEDGER_FOLDERS) if name in named}
