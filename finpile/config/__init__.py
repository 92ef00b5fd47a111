"""The corpus file, by subject, and the strict reading of YAML. The names below are imported on first use."""

from __future__ import annotations

from typing import TYPE_CHECKING

from finpile_tokenizer.lazy_exports import lazy_exports

if TYPE_CHECKING:
    from finpile.config.clean import CleanConfig, FilterConfig
    from finpile.config.corpus import CorpusConfig, ReportsConfig, from_dict, load_config
    from finpile.config.dedup import DedupConfig, NearConfig, SubstringConfig, TemplatesConfig
    from finpile.config.heldout import MAX_GRAM_WORDS, ContaminationConfig, EvalSetConfig, HeldoutConfig, OverlapConfig
    from finpile.config.sources import SourceConfig
    from finpile.config.tokenizer import TokenizerConfig, TokensConfig
    from finpile.config.values import to_dict

__all__ = [
    "MAX_GRAM_WORDS",
    "CleanConfig",
    "ContaminationConfig",
    "CorpusConfig",
    "DedupConfig",
    "EvalSetConfig",
    "FilterConfig",
    "HeldoutConfig",
    "NearConfig",
    "OverlapConfig",
    "ReportsConfig",
    "SourceConfig",
    "SubstringConfig",
    "TemplatesConfig",
    "TokenizerConfig",
    "TokensConfig",
    "from_dict",
    "load_config",
    "to_dict",
]

__getattr__, __dir__ = lazy_exports(__name__)
