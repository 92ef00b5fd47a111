"""Steps of a build as Beam transforms, for pipelines of your own.

    read, unreadable = pipeline | ReadDocuments(config)
    documents, cut = read | CleanDocuments(config)
    documents, copies = documents | ExactDuplicates()
    documents, near_copies = documents | NearDuplicates()
    documents, repeats = documents | RepeatedSubstrings()

Each transform returns `Outputs(kept, removed)`: kept documents and ledger rows
(`finpile.documents.ledger.LEDGER_SCHEMA`), both as `pa.RecordBatch`. Documents are batches with the columns of
`finpile.documents.document.DOCUMENT_SCHEMA`, of which only `id` (unique) and `text` are required; `priority` (int32)
may be added and decides which copy is kept, the smaller number first. Further columns pass through; string and binary
views in them become large strings and large binary.

The results do not depend on how documents are cut into batches, on their order, or on the number of partitions; for the
settings of a corpus file they are the documents that `finpile build` publishes. Tables travel through the runner's
shuffle: the transforms need no shared disk and keep nothing in the launcher.
"""

import finpile_pipelines.quiet_beam  # noqa: F401
from finpile_pipelines.executors.elements import Outputs
from finpile_pipelines.transforms.deduplication import (
    Deduplicate,
    ExactDuplicates,
    NearDuplicates,
    RepeatedSubstrings,
)
from finpile_pipelines.transforms.documents import CleanDocuments, ReadDocuments

__all__ = [
    "CleanDocuments",
    "Deduplicate",
    "ExactDuplicates",
    "NearDuplicates",
    "Outputs",
    "ReadDocuments",
    "RepeatedSubstrings",
]
