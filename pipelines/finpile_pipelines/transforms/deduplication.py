"""Deduplication of batches as transforms: each runs the plan of one algorithm."""

from finpile.config import CorpusConfig, DedupConfig, NearConfig, SubstringConfig
from finpile.dedup.documents import Scope
from finpile.dedup.exact import Fold
from finpile.dedup.order import Order
from finpile.dedup.plan import Plan, Settings, plan_of
from finpile.errors import ConfigError
from finpile.plugins import stages
from finpile_pipelines.executors.batches import PARTITIONS
from finpile_pipelines.executors.elements import PlanOverElements


class Deduplicate(PlanOverElements):
    """Runs one algorithm with the settings of a corpus file; returns `Outputs(kept, removed)`.

    Args:
        config: The corpus file, from `finpile.load_config`.
        name: The algorithm: `exact`, `templates`, `near`, `substring`, `overlap`, `contamination`, or one of another
            package. Apply them in this order.
        partitions: Partitions of each shuffle: about one for each 16 MiB of text.

    `priority` is the position of a document's source in `config.sources`, as `ReadDocuments` gives it.

    Raises:
        ConfigError: The corpus file does not ask for it, or its number of rounds is not fixed.
        InputError: A file that it reads cannot be read.
    """

    def __init__(self, config: CorpusConfig, name: str, partitions: int = PARTITIONS) -> None:
        super().__init__(name, _plan(name, Settings.of(config)), config.dedup.scope, partitions)


class ExactDuplicates(PlanOverElements):
    """Keeps one document of each set of equal texts; returns `Outputs(kept, removed)`.

    Of equal texts the one of the smallest `priority` is kept, then the earliest `timestamp`, then the smallest id.

    Args:
        order: `time` keeps the earliest one, then that of the smallest `priority`; see `finpile.dedup.order`.
        scope: `dataset` compares documents with the same value in `dataset`, `corpus` all of them.
        fold: The differences that equal texts may have.
        partitions: Partitions of the shuffle by digest: about one for each 100,000 documents.

    Limits: a partition's digests (about 150 bytes a document) are held in memory as one table, and so is one batch.
    Text passes through the shuffle once.
    """

    def __init__(
        self,
        scope: Scope = "dataset",
        fold: Fold = "none",
        partitions: int = PARTITIONS,
        order: Order = "priority",
    ) -> None:
        dedup = DedupConfig(exact_fold=fold, near=None, scope=scope, order=order)
        super().__init__("exact", _plan("exact", Settings(dedup=dedup)), scope, partitions)


class NearDuplicates(PlanOverElements):
    """Keeps one document of each cluster of near duplicates; returns `Outputs(kept, removed)`.

    A document is removed only if it is itself a near duplicate of the document that is kept for it. That is the one of
    the smallest `priority`, then the earliest `timestamp`, then the smallest digest.

    Args:
        near: The setting, or its name: `fast` (480 hashes of single words) or `paper` (9,000 of shingles of five).
        scope: `dataset` compares documents with the same value in `dataset`, `corpus` all of them.
        partitions: Partitions of each shuffle: about one for each 16 MiB of text.
        order: `time` keeps the earliest one, and no decision depends on a later document; see `finpile.dedup.order`.

    Texts must be distinct within a scope: apply `ExactDuplicates` first. Equal texts fail the pipeline.

    Limits: one worker joins all candidate pairs into groups; it holds at most one edge (about 100 bytes) for each
    document that has a candidate and each partition. All texts of one group are held in memory, and so is one batch.
    Text passes through the shuffle twice; texts of groups, once more.
    """

    def __init__(
        self,
        near: NearConfig | str = "paper",
        scope: Scope = "dataset",
        partitions: int = PARTITIONS,
        order: Order = "priority",
    ) -> None:
        setting = NearConfig.named(near) if isinstance(near, str) else near
        dedup = DedupConfig(near=setting, scope=scope, order=order)
        super().__init__("near", _plan("near", Settings(dedup=dedup)), scope, partitions)


class RepeatedSubstrings(PlanOverElements):
    """Cuts text of `min_length` or more that occurs elsewhere too; returns `Outputs(kept, removed)`.

    `removed` has a row for each span. It also has a row for each document of which cuts leave too little, or which they
    make equal to another one. Of several copies of a window one stays (`keep: first`): that in the document of the
    smallest `priority`, then of the earliest `timestamp`, then of the smallest digest.

    Args:
        substring: The setting, or its `min_length` in bytes.
        scope: `dataset` compares documents with the same value in `dataset`, `corpus` all of them.
        fold: The differences that equal texts may have after the cuts.
        root: The folder that `substring.tokenizer` is relative to.
        partitions: Partitions of each shuffle: about one for each 16 MiB of text.
        order: `time` keeps the earliest copy, then that of the smallest `priority`; see `finpile.dedup.order`.

    Texts must be distinct within a scope: apply `ExactDuplicates` first.

    Limits: `rounds` is a number, since a pipeline has a fixed number of steps. One worker holds the surroundings of all
    windows with one minimizer: text that a million documents share comes to one partition (`finpile build` refines such
    minimizers). Text passes through the shuffle up to three times a round, and twice in the end.

    Raises:
        ConfigError: `rounds` is `fixpoint`, or the tokenizer cannot be read.
    """

    def __init__(
        self,
        substring: SubstringConfig | int = 200,
        scope: Scope = "dataset",
        fold: Fold = "none",
        root: str = ".",
        partitions: int = PARTITIONS,
        order: Order = "priority",
    ) -> None:
        setting = SubstringConfig(min_length=substring) if isinstance(substring, int) else substring
        dedup = DedupConfig(near=None, substring=setting, exact_fold=fold, scope=scope, order=order)
        super().__init__("substring", _plan("substring", Settings(dedup=dedup, root=root)), scope, partitions)


def _plan(name: str, settings: Settings) -> Plan:
    """Raises: ConfigError if the settings do not ask for it."""
    algorithm = stages.find(name)
    plan = plan_of(algorithm, settings) if isinstance(algorithm, stages.Algorithm) else None
    if plan is None:
        raise ConfigError(f"{name}: the corpus file does not ask for it")
    return plan
