"""Models of domains that a build keeps, for trainings on equal texts.

The corpus as of a day has all training documents of some domains: of public sets, of archives that end before the day,
and of all if the day is after that of the split. The build has trained their chunks already, with the same result.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from itertools import groupby
from typing import Any

from finpile import storage
from finpile.config import TokenizerConfig, to_dict
from finpile.documents.digest import add, from_hex, to_hex
from finpile.documents.document import Label, label_of
from finpile.errors import IntegrityError
from finpile.output.layout import Layout
from finpile.output.stage_record import files_of, fingerprint
from finpile.output.work_folder import WorkFile, WorkFolder
from finpile.version import __version__
from finpile_pipelines.unigram.run import TrainingRun
from finpile_pipelines.unigram.split_merge import ChunkModel, domain_file, read_model, write_model
from finpile_pipelines.unigram.texts import Domain, TrainingTexts

_STAGE, _FOLDER = "tokenizer", "domains"


@dataclass(frozen=True, slots=True)
class DomainModels:
    """The models that one build keeps in its folder, and takes from that of another one."""

    folder: WorkFolder
    keys: Mapping[Label, str]
    """Of each domain: equal for equal texts, settings and versions."""
    earlier: WorkFolder | None = None
    """The folder of the other build."""

    @classmethod
    def of(
        cls,
        folder: WorkFolder,
        config: TokenizerConfig,
        files: Sequence[Mapping[str, Any]],
        texts: TrainingTexts,
        whole: Layout | None,
    ) -> DomainModels:
        """Those of a build with these files of training documents, kept in `folder`; `whole` is the other build."""
        digests: dict[Label, int] = {}
        for file in files:
            label = label_of(file)
            digests[label] = add(digests.get(label, 0), from_hex(file["digest"]))
        settings = [__version__, to_dict(config), texts.share]
        keys = {label: fingerprint(_FOLDER, settings, label, to_hex(digest)) for label, digest in digests.items()}
        try:
            earlier = None if whole is None else files_of(whole.work(_STAGE)) / _FOLDER
        except FileNotFoundError:
            earlier = None
        return cls(folder / _FOLDER, keys, earlier)

    def take(self, run: TrainingRun, texts: TrainingTexts) -> list[ChunkModel]:
        """Copies the models of domains that the other build has into the run's folder; returns those of their chunks.

        After an interruption they are those of the interrupted run: it counted the texts of the other domains alone.
        """
        taken, earlier = run.folder.file("taken.json"), self.earlier
        if not taken.exists():
            found = [] if earlier is None else [self._take(earlier, run, texts, domain) for domain in texts.domains]
            storage.write_json(taken, [row for rows in found for row in rows])
        return [ChunkModel.from_json(row) for row in storage.read_json(taken)]

    def _take(
        self, earlier: WorkFolder, run: TrainingRun, texts: TrainingTexts, domain: Domain
    ) -> list[dict[str, Any]]:
        rows_file, model_file = _files(earlier, self.keys[domain.label])
        try:
            rows, model = storage.read_json(rows_file), read_model(model_file)
        except (FileNotFoundError, IntegrityError):  # it is trained then
            return []
        write_model(domain_file(run, texts, domain.label), model)
        return [{**row, "chunk": row["chunk"] + domain.first_chunk} for row in rows]

    def keep(self, run: TrainingRun, texts: TrainingTexts, models: Sequence[ChunkModel]) -> None:
        """Keeps the models of all domains of a training, with what is known of their chunks; called after the merge."""
        first = {domain.label: domain.first_chunk for domain in texts.domains}
        for label, chunks in groupby(models, lambda model: model.chunk.label):
            rows_file, model_file = _files(self.folder, self.keys[label])
            rows = [model.to_json() for model in chunks]
            write_model(model_file, read_model(domain_file(run, texts, label)))
            storage.write_json(rows_file, [{**row, "chunk": row["chunk"] - first[label]} for row in rows])


def _files(folder: WorkFolder, key: str) -> tuple[WorkFile, WorkFile]:
    """What is known of the chunks of a domain, and its model."""
    return folder.file(f"{key}.json"), folder.file(f"{key}.parquet")
