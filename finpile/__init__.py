"""FinPile builder: a company's archives into a language model's training corpus and tokenizer.

The names below are imported on first use. `finpile_pipelines` has `build`.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from finpile_tokenizer.lazy_exports import lazy_exports

from finpile.version import __version__

if TYPE_CHECKING:
    from finpile.config import CorpusConfig, NearConfig, SubstringConfig, load_config
    from finpile.dedup.in_memory import Deduplicated, deduplicate
    from finpile.documents.document import DOCUMENT_SCHEMA
    from finpile.documents.ledger import LEDGER_SCHEMA
    from finpile.errors import ConfigError, FinpileError, InputError, IntegrityError, RunError
    from finpile.output.published import open_documents, open_facts, open_ledger
    from finpile.tokens.store import TokenStore

__all__ = [
    "DOCUMENT_SCHEMA",
    "LEDGER_SCHEMA",
    "ConfigError",
    "CorpusConfig",
    "Deduplicated",
    "FinpileError",
    "InputError",
    "IntegrityError",
    "NearConfig",
    "RunError",
    "SubstringConfig",
    "TokenStore",
    "__version__",
    "deduplicate",
    "load_config",
    "open_documents",
    "open_facts",
    "open_ledger",
]

__getattr__, __dir__ = lazy_exports(__name__)
