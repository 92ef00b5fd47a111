"""A byte-level Unigram tokenizer: train in chunks, merge, prune, encode.

counts = count_pretokens(texts)                        # an Arrow array of texts
model = UnigramTrainer(vocab_size=65_536).train(counts)  # one for each chunk
vocabulary = prune_to(merge([model, ...]), 131_072)
tokenizer = UnigramTokenizer(vocabulary)
tokenizer.save("tokenizer/")                           # loads in HF tokenizers and transformers

The names below are imported on first use: Numba takes a third of a second to import, which errors and tables do not
need.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from finpile_tokenizer.lazy_exports import lazy_exports

if TYPE_CHECKING:
    from finpile_tokenizer.errors import EmptyCorpusError, FormatError, InputTypeError, TokenizerError
    from finpile_tokenizer.merging import MIN_VOCAB_SIZE, merge, prune_to
    from finpile_tokenizer.model import END_OF_TEXT, UnigramModel, Vocabulary
    from finpile_tokenizer.pretokens.counts import MAX_PRETOKEN_BYTES, PretokenCounts, count_pretokens
    from finpile_tokenizer.pretokens.pretokenizer import PRETOKEN_PATTERN, pretokenize
    from finpile_tokenizer.segmentations.sampling import DistinctSample
    from finpile_tokenizer.tokenizer import UnigramTokenizer
    from finpile_tokenizer.trainer import CHUNK_VOCAB_SIZE, DEFAULT_MAX_PIECE_BYTES, UnigramTrainer
    from finpile_tokenizer.warmup import KERNEL_GROUPS, compile_kernels

__version__ = "0.1.0"

__all__ = [
    "CHUNK_VOCAB_SIZE",
    "DEFAULT_MAX_PIECE_BYTES",
    "END_OF_TEXT",
    "KERNEL_GROUPS",
    "MAX_PRETOKEN_BYTES",
    "MIN_VOCAB_SIZE",
    "PRETOKEN_PATTERN",
    "DistinctSample",
    "EmptyCorpusError",
    "FormatError",
    "InputTypeError",
    "PretokenCounts",
    "TokenizerError",
    "UnigramModel",
    "UnigramTokenizer",
    "UnigramTrainer",
    "Vocabulary",
    "__version__",
    "compile_kernels",
    "count_pretokens",
    "merge",
    "pretokenize",
    "prune_to",
]

__getattr__, __dir__ = lazy_exports(__name__)
