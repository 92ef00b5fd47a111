"""The training texts of a tokenizer: files, domains, and the number of chunks of each domain.

A domain is a source. A file is a task: the launcher only lists files, and workers read their texts.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Container, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Literal, TypeAlias

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from finpile import storage
from finpile.documents.document import Label, label_of
from finpile.documents.segments import share_of
from finpile.documents.split import TRAIN
from finpile.errors import InputError, count_of
from finpile.output.layout import Layout, row_of
from finpile.output.published_files import PublishedFile
from finpile.output.snapshots import document_files
from finpile.report import documents
from finpile.sources.readers.finding import describe
from finpile_pipelines import graph
from finpile_pipelines.exchange.tasks import Outcomes, Tasks
from finpile_pipelines.progress import report_progress
from finpile_pipelines.unigram.run import TrainingRun

#: Chunks per domain in the paper, and the maximum for `auto`. Source: BloombergGPT (arXiv:2303.17564) §2.3.
PAPER_CHUNKS = 256
#: Target size of a chunk for `auto`: enough text to train about ten thousand pieces.
AUTO_CHUNK_BYTES = 16 << 20


@dataclass(frozen=True, slots=True)
class BuildFile:
    """A documents shard of a build, restricted to one side of the temporal split."""

    file: PublishedFile
    split: str = TRAIN

    @property
    def url(self) -> str:
        """The path or URL of the shard."""
        return storage.join(self.file.root, self.file.path)

    def texts(self) -> Iterator[tuple[Label, pa.Array]]:
        """The file's texts as large_string arrays, and the domain of each array.

        Raises: IntegrityError if the file is not as it was written.
        """
        table = self.file.table(["text", "split"])
        chosen = table.filter(pc.equal(table["split"], self.split))
        yield row_of(self.url), chosen["text"].cast(pa.large_string()).combine_chunks()


@dataclass(frozen=True, slots=True)
class DocumentFile:
    """Any other file that `finpile.report.documents` can read."""

    url: str
    label: Label
    """The domain of texts that do not name one."""
    domain_field: str | None = None
    """The field of the records with the domain of each."""
    text_field: str = documents.TEXT
    split: str = TRAIN
    """Of a documents shard of a build: see `BuildFile`."""

    def texts(self) -> Iterator[tuple[Label, pa.Array]]:
        """The file's texts as large_string arrays, and the domain of each array."""
        found = documents.iter_file(self.url, self.label, self.domain_field, self.text_field, self.split)
        for dataset, source, texts in found:
            yield (dataset, source), texts


TextFile: TypeAlias = BuildFile | DocumentFile


@dataclass(frozen=True, slots=True)
class Domain:
    """A source that the tokenizer is trained on."""

    label: Label
    first_chunk: int
    """Number of the domain's first chunk; chunks are numbered consecutively over all domains."""
    num_chunks: int
    share: float = 1.0
    """The part of its text that is trained on."""


@dataclass(frozen=True, slots=True)
class TrainingTexts:
    """The training texts of a tokenizer. Texts of domains that are not in `domains` are skipped."""

    files: tuple[TextFile, ...]
    domains: tuple[Domain, ...]
    sizes: tuple[int, ...] = ()
    """Text bytes of each file, for the progress display; empty if they are not known."""

    @property
    def share(self) -> float:
        """The part of the text that is trained on."""
        return min((domain.share for domain in self.domains), default=1.0)

    def without(self, labels: Container[Label]) -> TrainingTexts:
        """The texts of the other domains of a build, whose chunks keep their numbers."""
        sizes = self.sizes or (0,) * len(self.files)
        left = [(file, size) for file, size in zip(self.files, sizes, strict=True) if row_of(file.url) not in labels]
        domains = tuple(domain for domain in self.domains if domain.label not in labels)
        return TrainingTexts(tuple(file for file, _ in left), domains, tuple(size for _, size in left))


def plan_domains(
    domain_bytes: Mapping[Label, int], chunks: int | Literal["auto"], sample_bytes: int | None = None
) -> tuple[Domain, ...]:
    """The domains in order of their names, each with its number of chunks.

    Of more text than `sample_bytes`, the same share of each is trained on.
    """
    share = share_of(sum(domain_bytes.values()), sample_bytes)
    domains: list[Domain] = []
    first = 0
    for label, num_bytes in sorted(domain_bytes.items()):
        count = num_chunks(num_bytes * share, chunks)
        domains.append(Domain(label, first, count, share))
        first += count
    return tuple(domains)


def find_files(
    docs: Iterable[str], split: str = TRAIN, domain_field: str | None = None, text_field: str = documents.TEXT
) -> list[TextFile]:
    """The files of all `docs`, sorted. An entry is the OUT folder of a build (on any file system), a folder or a file.

    The domain of a record is its value of `domain_field`; by default that of its own names, or of its file. Its text is
    its value of `text_field`. A build has domains and texts of its own.

    Raises: InputError if an entry does not exist, has an unknown format, or a file is named twice; IntegrityError for a
    damaged manifest of a build.
    """
    found = sorted(
        (file for entry in docs for file in _files_of(entry, split, domain_field, text_field)),
        key=lambda file: (file.url, repr(file)),
    )
    places = Counter(storage.real(file.url) for file in found)
    twice = [url for url, count in places.items() if count > 1]
    if twice:
        raise InputError(f"{twice[0]}: is named more than once, so its texts would count twice: name it once")
    return found


def versions(files: Iterable[TextFile]) -> list[list[Any]]:
    """The domain, name, size and modification mark of each file, sorted; equal if no file has changed."""
    rows = []
    for file in files:
        now = describe(file.url)
        domain = list(row_of(file.url) if isinstance(file, BuildFile) else file.label)
        if isinstance(file, DocumentFile) and file.domain_field is not None:
            domain.append(file.domain_field)
        if isinstance(file, DocumentFile) and file.text_field != documents.TEXT:
            domain.append(f"text: {file.text_field}")
        rows.append([domain, now.locator, now.size_bytes, now.version])
    return sorted(rows, key=repr)


def measure_texts(run: TrainingRun, files: Sequence[TextFile]) -> tuple[TrainingTexts, Outcomes]:
    """Plans the training on `files`: workers read each file once and count the bytes of its domains.

    Also returns the measurements: one row per file and domain, with the number of documents and bytes. A file without
    texts has one row with an empty domain.

    Raises: InputError if a file cannot be read, or if the files hold no text.
    """

    def construct(pipeline: graph.Pipeline) -> graph.PCollection[dict[str, Any]]:
        return pipeline | Tasks(files) | "Measure" >> graph.FlatMap(_measure_file)

    narrow, _ = run.narrowed(len(files))
    rows = narrow.step("measure", construct, lambda rows: count_of(len(files), "file"))
    broken = [row["error"] for row in rows if "error" in row]
    if broken:
        run.folder.file("measure.json").remove()
        raise InputError(min(broken))
    domain_bytes: Counter[Label] = Counter()
    for row in rows:
        domain_bytes[label_of(row)] += row["bytes"]
    if not +domain_bytes:
        raise InputError(f"no text to train on in {count_of(len(files), 'file')}: name files with text")
    sizes: Counter[str] = Counter()
    for row in rows:
        sizes[row["file"]] += row["bytes"]
    domains = plan_domains(+domain_bytes, run.config.chunks, run.config.sample_bytes)
    return TrainingTexts(tuple(files), domains, tuple(sizes[file.url] for file in files)), rows


def _measure_file(file: TextFile) -> Iterator[dict[str, Any]]:
    num_documents: Counter[Label] = Counter()
    num_bytes: Counter[Label] = Counter()
    try:
        for label, texts in file.texts():
            size = pc.sum(pc.binary_length(texts)).as_py() or 0
            num_documents[label] += len(texts)
            num_bytes[label] += size
            report_progress(len(texts), size)
    except InputError as error:
        yield {"file": file.url, "error": str(error)}
        return
    except OSError as error:
        yield {"file": file.url, "error": f"{file.url}: cannot be read: {error}"}
        return
    for label in num_documents or [("", "")]:
        documents_and_bytes = {"documents": num_documents[label], "bytes": num_bytes[label]}
        yield {"file": file.url, "dataset": label[0], "source": label[1], **documents_and_bytes}


def _files_of(entry: str, split: str, domain_field: str | None, text_field: str) -> list[TextFile]:
    layout = Layout(entry)
    if any(name.startswith("dataset=") and name.endswith(".parquet") for name in _listed(layout.documents)):
        return [BuildFile(file, split) for file in document_files(layout)]
    found = documents.list_files([entry])
    return [DocumentFile(url, label, domain_field, text_field, split) for url, label in found]


def _listed(folder: str) -> list[str]:
    try:
        return storage.list_files(folder)
    except (ImportError, ValueError, OSError) as error:  # the file system is unknown or cannot be reached
        raise InputError(f"{folder}: cannot be listed: {error}") from error


def num_chunks(size_bytes: float, asked: int | str) -> int:
    """The chunks of a domain of this much text."""
    if isinstance(asked, int):
        return asked
    return int(np.clip(round(size_bytes / AUTO_CHUNK_BYTES), 1, PAPER_CHUNKS))
