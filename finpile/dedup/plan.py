"""Plans: what a deduplication algorithm computes and exchanges, apart from where it runs.

A *part* is the documents that one process holds: a shard, a batch of a pipeline, or the documents of one scope of a
table. A plan is a list of passes over all parts; each pass reads what the passes before it left.

    rows of a part --by hash--> answer --by part--> replies                                  Exchange
    keys of a part --by key--> pairs --> connected groups --> removals of each group         Groups
    documents and replies of a part --> removals and spans                                   Pass.decide

All functions are pure: from Arrow tables to Arrow tables, with the schemas that the plan names. Four executors run any
plan: `finpile.dedup.in_memory` on one table, `finpile_pipelines.executors.shards` on the shards of a build,
`finpile_pipelines.executors.elements` on batches of a Beam pipeline, and `finpile_pipelines.executors.incremental` on
the documents that a snapshot touches. The results do not depend on the executor, nor on how documents are divided into
parts.

Decision: docs/decisions/0080-one-plan-per-algorithm.md.
"""

from __future__ import annotations

import hashlib
from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any, Literal, NamedTuple

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from finpile.config import ContaminationConfig, CorpusConfig, DedupConfig, HeldoutConfig
from finpile.dedup.order import Order, order_keys
from finpile.plugins.stages import Algorithm

_U64 = npt.NDArray[np.uint64]

#: A removed document (`row` of the part `shard`) and, for a duplicate, the document that is kept for it.
REMOVAL_SCHEMA = pa.schema(
    [
        pa.field("id", pa.string(), nullable=False),
        pa.field("shard", pa.int32(), nullable=False),
        pa.field("row", pa.int32(), nullable=False),
        pa.field("duplicate_of", pa.string()),
        pa.field("duplicate_offset", pa.int64()),
        pa.field("kept_shard", pa.int32()),
        pa.field("kept_row", pa.int32()),
        pa.field("reason", pa.string(), nullable=False),
        pa.field("detail", pa.string(), nullable=False),
    ]
)
#: Bytes `start` to `end` of the text of `row` that are removed. The same bytes begin at `duplicate_offset` of the text
#: of the document `duplicate_of`. Both are texts before the stage. The spans of one row ascend and do not overlap.
SPAN_SCHEMA = pa.schema(
    [
        pa.field("row", pa.int32()),
        pa.field("start", pa.int64()),
        pa.field("end", pa.int64()),
        pa.field("reason", pa.string()),
        pa.field("detail", pa.string()),
        pa.field("duplicate_of", pa.string()),
        pa.field("duplicate_offset", pa.int64()),
    ]
)
#: A key of the document in `row` of a part. Keys are spread evenly.
KEY_SCHEMA = pa.schema([("key", pa.uint64()), ("row", pa.int32())])

#: Columns that the documents of every part have. `digest` is that of the text after cleaning; `priority` the position
#: of the source; `shard` the number of the part.
COLUMNS = ("id", "timestamp", "digest", "priority", "shard", "row")
#: A column that an executor computes: 63 bits of scope and digest, the number of a document in candidate pairs.
NUMBER = "number"
#: A column of the documents of a pass that `sees_removed`: whether an earlier stage removed the document.
IS_REMOVED = "is_removed"


@dataclass(frozen=True, kw_only=True, slots=True)
class Settings:
    """The parts of a corpus file from which plans are made."""

    dedup: DedupConfig
    heldout: HeldoutConfig = field(default_factory=HeldoutConfig)
    contamination: ContaminationConfig | None = None
    template_groups: tuple[str | None, ...] = (None,)
    """The rule of each source, by `priority`; of all documents if there is one source."""
    root: str = "."

    def __post_init__(self) -> None:
        self.heldout.check_dedup(exact=self.dedup.exact, order=self.dedup.order)

    @classmethod
    def of(cls, config: CorpusConfig) -> Settings:
        groups = tuple(source.template_group for source in config.sources)
        return cls(
            dedup=config.dedup,
            heldout=config.heldout,
            contamination=config.contamination,
            template_groups=groups,
            root=config.root,
        )

    @property
    def order(self) -> Order:
        """The order in which copies are preferred."""
        return self.dedup.order


@dataclass(frozen=True, kw_only=True, slots=True)
class Part:
    """The documents that one process holds, and what it has received about them."""

    documents: pa.Table
    """`COLUMNS` and the further columns that the step reads, in one chunk, `row` ascending. `text` is what earlier
    stages and passes left."""
    number: int
    scope: str
    """The dataset, or "" for the corpus. Documents of different scopes are compared only if the algorithm says so."""
    is_ranked: bool = False
    """Whether `priority` is the position of each document in the order of all documents."""
    replies: Mapping[str, pa.Table] = field(default_factory=dict)
    """Those of earlier exchanges of the pass, by name."""
    kept: Mapping[str, pa.Table] = field(default_factory=dict)
    """What earlier exchanges of the pass kept of this part, by name."""
    level: int = 0
    """Refinements of the last exchange that ran, or that now runs."""
    round: int = 1
    opened: Any = None
    """What `Plan.open` returned."""

    def places(self, order: Order) -> tuple[_U64, _U64]:
        """Two numbers for each document whose order is that of the documents."""
        if self.is_ranked:
            rank = self.documents["priority"].to_numpy().astype(np.uint64)
            return rank, np.zeros(len(rank), np.uint64)
        return order_keys(self.documents, order)


class Sent(NamedTuple):
    """What a part gives to an exchange."""

    rows: pa.Table
    kept: pa.Table | None = None
    """What the part keeps until it decides."""


class Answer(NamedTuple):
    """The result for all rows of some hashes, or for the members of some groups."""

    rows: pa.Table
    counts: Mapping[str, int] = {}
    """Sums of them are counts of the stage."""


@dataclass(frozen=True, kw_only=True, slots=True)
class Exchange:
    """Parts send rows; all rows of one hash are answered together; replies return to the parts."""

    name: str
    reads: tuple[str, ...]
    """Columns of documents besides `COLUMNS`."""
    rows: Callable[[Part], Sent]
    sends: pa.Schema
    """Has `shard`, the number of the part, and the column `key`."""
    answer: Callable[[pa.Table], Answer]
    """From all rows of some hashes, in any order."""
    replies: pa.Schema
    """Has `shard`, the part that gets the reply."""
    keeps: pa.Schema | None = None
    key: str = "hash"
    """The column by which rows are sent: 64-bit hashes or 16-byte digests."""
    shards_of_unit: int = 1
    """Shards whose rows share a partition, because rows are small beside the texts."""
    is_row_wise: bool = False
    """Whether the rows of a part are those of its pieces: then not all of it has to be in memory."""
    share: float = 1.0
    """Of the work of the pass; the rest is that of `Pass.decide`."""
    refine: Callable[[Part], Sent] | None = None
    """While a reply has rows whose column `crowded` is true, the rows of the next `level`, whose replies are added.
    Executors that hold all rows of a hash in memory need not refine."""
    most_levels: int = 0


@dataclass(frozen=True, kw_only=True, slots=True)
class Groups:
    """Documents that share keys are candidate pairs; groups that pairs connect are resolved with their texts."""

    name: str
    keys: Callable[[Part], pa.Table]
    """`key` (uint64), `doc` (the `NUMBER` of a document) and further columns, a row for each key of each document."""
    sends: pa.Schema
    pairs: Callable[[pa.Table], Answer]
    """From all rows of some keys to `finpile.dedup.near.clusters.PAIR_SCHEMA`."""
    resolve: Callable[[pa.Table, pa.Table], Answer]
    """From the documents of some groups, with a column `group`, and all their pairs (`GROUPED_PAIR_SCHEMA`, in order)
    to `REMOVAL_SCHEMA`."""
    documents: Callable[[pa.Table], pa.Table] | None = None
    """Replaces columns of documents before they are read, such as their `NUMBER`."""
    reads: tuple[str, ...] = ("text", NUMBER)
    shards_of_unit: int = 1
    """Shards whose keys share a partition."""

    def prepared(self, part: Part) -> Part:
        """The part with its documents as they are read."""
        return part if self.documents is None else replace(part, documents=self.documents(part.documents))


@dataclass(frozen=True, slots=True)
class Decision:
    """What a part loses."""

    removals: pa.Table = field(default_factory=REMOVAL_SCHEMA.empty_table)
    spans: pa.Table = field(default_factory=SPAN_SCHEMA.empty_table)
    """Bytes of the texts that the pass was given."""
    counts: Mapping[str, Any] = field(default_factory=dict)
    """JSON-able. Executors add `removed`, `spans` and `cut_bytes`."""


@dataclass(frozen=True, kw_only=True, slots=True)
class Index:
    """How a pass can decide some documents without reading all others: it reads those that share a key with them."""

    keys: Callable[[Part], pa.Table]
    """`KEY_SCHEMA`: documents that may affect each other share a key. The keys of a part are those of its pieces."""
    reads: tuple[str, ...]
    bytes_of_key: int
    """Bytes of text for each key, about."""
    reach: Literal["equal", "connected", "shared"]
    """`equal`: the documents of one key are decided together, and have no other key. `connected`: as are those that
    others connect. `shared`: a document is decided from those that share one of its keys, whatever is decided about
    them."""
    is_causal: bool = False
    """Of `shared`: only from those before it in the order of time."""


@dataclass(frozen=True, kw_only=True, slots=True)
class Pass:
    """One decision about all documents that the passes before it left."""

    name: str
    """Of its folder and its index."""
    steps: tuple[Exchange | Groups, ...]
    """In order. `Groups` stand alone."""
    decide: Callable[[Part], Decision] | None = None
    """None: the replies of the last step are the removals (`REMOVAL_SCHEMA`)."""
    reads: tuple[str, ...] = ()
    """Columns that `decide` reads besides `COLUMNS`; without any, it gets no documents, only replies."""
    cuts: bool = False
    """Whether it decides spans. At most one pass of a plan does."""
    rounds: int | Literal["fixpoint"] = 1
    """How often the pass runs on what it left, as long as it cuts text. Several rounds are followed by one without
    effect, which counts what it would cut."""
    after_cuts: bool = False
    """Whether it runs only if the pass before it cut text."""
    sees_removed: bool = False
    """Whether it is given documents that earlier stages removed too, but for those that were taken down."""
    sources: frozenset[int] | None = None
    """The sources, by `priority`, whose documents it is about; None: all. Parts of other sources need not be read."""
    index: Index | None = None
    share: float = 1.0
    """Of the work of the plan, by that of its other passes."""

    @property
    def is_repeated(self) -> bool:
        """Whether the number of its rounds depends on what it cuts."""
        return self.rounds != 1


class Inputs(NamedTuple):
    """What a plan reads besides documents."""

    settings: Any = None
    """JSON-able: identifies the content."""
    tables: Mapping[str, pa.Table] = {}


@dataclass(frozen=True, kw_only=True, slots=True)
class Counted:
    """What one round of a pass counted."""

    sums: Counter[str]
    """Of all counts that are numbers. Of an executor: `removed`, `spans`, `cut_bytes`, `exchanged_bytes`; of groups
    `candidate_pairs` and `grouped_documents`."""
    outcomes: Sequence[Mapping[str, Any]]
    """The counts of `decide`, of each part."""


#: The rounds of each pass that ran, by name of the pass.
Found = Mapping[str, Sequence[Counted]]


def count_removed(found: Found, opened: Any) -> dict[str, Any]:
    """Returns the number of removed documents."""
    return {"removed": sum(counted.sums["removed"] for rounds in found.values() for counted in rounds)}


def read_nothing() -> Inputs:
    """Returns no inputs."""
    return Inputs()


def open_nothing(tables: Mapping[str, pa.Table]) -> Any:
    """Returns None."""


@dataclass(frozen=True, kw_only=True, slots=True)
class Plan:
    """An algorithm with its settings."""

    passes: tuple[Pass, ...]
    settings: Any
    """JSON-able values on which the outcome depends, besides the documents."""
    counts: Callable[[Found, Any], dict[str, Any]] = count_removed
    """JSON-able counts of the stage, from those of its passes and the result of `open`; they include `removed`."""
    kernels: tuple[str, ...] = ()
    """Groups of kernels, as `module:function`, the longest compilation first."""
    read: Callable[[], Inputs] = read_nothing
    """Reads and checks further inputs. Raises: ConfigError or InputError."""
    open: Callable[[Mapping[str, pa.Table]], Any] = open_nothing
    """What each process makes of the tables of `read`, once."""
    cost: int = 1
    """Of a byte of text, by that of one reading."""

    def __post_init__(self) -> None:
        if sum(one.cuts for one in self.passes) > 1:
            raise ValueError("two passes of a plan cut text: put them into two plans")
        for before, one in zip((None, *self.passes), self.passes, strict=False):
            if any(isinstance(step, Groups) for step in one.steps) and (len(one.steps) > 1 or one.decide):
                raise ValueError(f"pass {one.name!r}: Groups are the only step of their pass, which has no `decide`")
            if one.after_cuts and (before is None or not before.cuts):
                raise ValueError(f"pass {one.name!r}: the pass before it cuts no text")
            if one.is_repeated and not one.cuts:
                raise ValueError(f"pass {one.name!r}: only a pass that cuts text has rounds")

    @property
    def pipelines(self) -> list[list[Pass]]:
        """The passes that can be one pipeline each. A pass that may be skipped ends its pipeline."""
        found: list[list[Pass]] = []
        is_open = False
        for one in self.passes:
            if one.is_repeated or not is_open:
                found.append([])
            found[-1].append(one)
            is_open = not one.is_repeated and not one.after_cuts
        return found


def plan_of(algorithm: Algorithm, settings: Settings) -> Plan | None:
    """Returns the plan of an algorithm; None if the settings do not ask for it.

    The module of an algorithm whose key is None is not imported: kernels and tokenizers take time and memory.
    """
    value: Any = settings
    for name in algorithm.key.split("."):
        value = getattr(value, name, algorithm)  # an added algorithm's settings are no field
    if value is None:
        return None
    found: Plan | None = algorithm.load_plan()(settings)
    return found


def scope_bits(scope: str) -> Any:
    """64 bits that are mixed into the hashes of a scope, so that different scopes share no hash."""
    return np.frombuffer(hashlib.blake2b(scope.encode(), digest_size=8).digest(), dtype="<u8")[0]


def key_table(keys: _U64, rows: npt.NDArray[np.int32] | pa.ChunkedArray) -> pa.Table:
    """Returns `KEY_SCHEMA` of keys and the rows of their documents."""
    return pa.table({"key": keys, "row": rows}, schema=KEY_SCHEMA)
