"""A byte-level Unigram tokenizer: train in chunks, merge, prune, encode.

counts = count_pretokens(texts)                        # an Arrow array of texts
model = UnigramTrainer(vocab_size=65_536).train(counts)  # one for each chunk
vocabulary = prune_to(merge([model, ...]), 131_072)
tokenizer = UnigramTokenizer(vocabulary)
tokenizer.save("tokenizer/")                           # loads in HF tokenizers and transformers
"""

from finpile_tokenizer.errors import EmptyCorpusError, FormatError, InputTypeError, TokenizerError
from finpile_tokenizer.merge import MIN_VOCAB_SIZE, merge, prune_to
from finpile_tokenizer.model import END_OF_TEXT, UnigramModel, Vocabulary
from finpile_tokenizer.pretokens.counts import MAX_PRETOKEN_BYTES, PretokenCounts, count_pretokens
from finpile_tokenizer.pretokens.pretokenizer import PRETOKEN_PATTERN, pretokenize
from finpile_tokenizer.segmentations.sampling import DistinctSample
from finpile_tokenizer.tokenizer import UnigramTokenizer
from finpile_tokenizer.trainer import CHUNK_VOCAB_SIZE, DEFAULT_MAX_PIECE_BYTES, UnigramTrainer
from finpile_tokenizer.warmup import compile_kernels

__all__ = [
    "CHUNK_VOCAB_SIZE",
    "DEFAULT_MAX_PIECE_BYTES",
    "END_OF_TEXT",
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
    "compile_kernels",
    "count_pretokens",
    "merge",
    "pretokenize",
    "prune_to",
]
