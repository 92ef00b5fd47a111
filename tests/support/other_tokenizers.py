"""Tokenizers of other libraries, trained on a few texts: one of each kind of files, lossless and lossy ones."""

from __future__ import annotations

import base64
import io
import json
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    import tokenizers

END = "<|endoftext|>"
#: Characters of several bytes, of which a vocabulary has no piece; decomposed ones; ligatures; names of special tokens.
TEXTS = (
    "  Café cafe\u0301 ﬁne ½\tnaïve 😀😀👩‍👩‍👧 \u4e2d\u6587 Ελλάδα",
    "a</s>b <|endoftext|> [SEP] <s> and </s></s>",
    "Rates rose.\n\n\tYields fell  by 12.5%.\r\nEnd ",
    "😀",
    "e\u0301" * 40 + " shares " + "日本" * 30,
)


def byte_level_bpe(texts: Sequence[str], vocab_size: int = 400) -> tokenizers.Tokenizer:
    """Byte-level BPE of Hugging Face, which is lossless."""
    from tokenizers import Tokenizer, decoders, models, pre_tokenizers, trainers

    made = Tokenizer(models.BPE())
    made.pre_tokenizer = pre_tokenizers.ByteLevel(add_prefix_space=False)
    made.decoder = decoders.ByteLevel()
    alphabet = pre_tokenizers.ByteLevel.alphabet()
    trainer = trainers.BpeTrainer(
        vocab_size=vocab_size, initial_alphabet=alphabet, special_tokens=[END], show_progress=False
    )
    made.train_from_iterator(texts, trainer)
    return made


def write_bpe(folder: Path, texts: Sequence[str]) -> Path:
    byte_level_bpe(texts).save(str(folder / "tokenizer.json"))
    return folder / "tokenizer.json"


def write_normalising_bpe(folder: Path, texts: Sequence[str]) -> Path:
    """The same with composed characters, a space before each text, and offsets without it, as of GPT-NeoX."""
    from tokenizers import AddedToken, Tokenizer, normalizers, pre_tokenizers, processors

    made = Tokenizer.from_file(str(write_bpe(folder, texts)))
    made.normalizer = normalizers.NFC()
    made.pre_tokenizer = pre_tokenizers.ByteLevel(add_prefix_space=True)
    made.post_processor = processors.ByteLevel(trim_offsets=True)
    made.add_tokens([AddedToken("  ", normalized=True)])
    made.save(str(folder / "tokenizer.json"))
    return folder / "tokenizer.json"


def write_unigram(folder: Path, texts: Sequence[str]) -> Path:
    """Unigram of Hugging Face as T5's: normalised, and `</s>` in a text is a piece of it."""
    from tokenizers import Tokenizer, decoders, models, normalizers, pre_tokenizers, trainers

    made = Tokenizer(models.Unigram())
    made.normalizer = normalizers.NFKC()
    made.pre_tokenizer = pre_tokenizers.Metaspace()
    made.decoder = decoders.Metaspace()
    trainer = trainers.UnigramTrainer(
        vocab_size=300, special_tokens=["<pad>", "</s>", "<unk>"], unk_token="<unk>", show_progress=False
    )
    made.train_from_iterator(texts[5:], trainer)
    made.save(str(folder / "tokenizer.json"))
    return folder / "tokenizer.json"


def write_wordpiece(folder: Path, texts: Sequence[str]) -> Path:
    """WordPiece as BERT's: lower case, no accents, no white space."""
    from tokenizers import Tokenizer, decoders, models, normalizers, pre_tokenizers, trainers

    made = Tokenizer(models.WordPiece(unk_token="[UNK]"))
    made.normalizer = normalizers.BertNormalizer(lowercase=True)
    made.pre_tokenizer = pre_tokenizers.BertPreTokenizer()
    made.decoder = decoders.WordPiece()
    trainer = trainers.WordPieceTrainer(vocab_size=400, special_tokens=["[UNK]", "[SEP]"], show_progress=False)
    made.train_from_iterator(texts[5:], trainer)
    made.save(str(folder / "tokenizer.json"))
    return folder / "tokenizer.json"


def write_sentencepiece(folder: Path, texts: Sequence[str]) -> Path:
    """SentencePiece with its own normaliser, which folds white space."""
    return train_sentencepiece(folder / "spiece.model", texts[5:], model_type="unigram")


def write_sentencepiece_bytes(folder: Path, texts: Sequence[str]) -> Path:
    """BPE of SentencePiece that changes nothing: characters without a piece are bytes."""
    same = {"normalization_rule_name": "identity", "add_dummy_prefix": False, "remove_extra_whitespaces": False}
    return train_sentencepiece(folder / "bytes.model", texts[5:], model_type="bpe", byte_fallback=True, **same)


def train_sentencepiece(file: Path, texts: Sequence[str], **settings: object) -> Path:
    """A model of SentencePiece in a file."""
    from sentencepiece import SentencePieceTrainer

    model = io.BytesIO()
    lines = (line for text in texts for line in text.splitlines())
    SentencePieceTrainer.train(
        sentence_iterator=lines,
        model_writer=model,
        **{"vocab_size": 500, "hard_vocab_limit": False, "num_threads": 1, "minloglevel": 2, **settings},
    )
    file.write_bytes(model.getvalue())
    return file


def write_gpt2(folder: Path, texts: Sequence[str]) -> Path:
    """Its two files, as transformers name them."""
    (folder / "bpe").mkdir()
    model = json.loads(write_bpe(folder / "bpe", texts).read_text())["model"]
    (folder / "vocab.json").write_text(json.dumps(model["vocab"]))
    lines = ["#version: 0.2", *(" ".join(pair) for pair in model["merges"]), ""]
    (folder / "merges.txt").write_text("\n".join(lines))
    return folder


def write_tiktoken(folder: Path, texts: Sequence[str]) -> Path:
    """A rank file under the name of the vocabulary whose pattern it needs."""
    from finpile_tokenizer.export import byte_alphabet

    (folder / "bpe").mkdir()
    vocabulary = json.loads(write_bpe(folder / "bpe", texts).read_text())["model"]["vocab"]
    byte_of = {character: byte for byte, character in byte_alphabet().items()}
    pieces = [bytes(map(byte_of.__getitem__, piece)) for piece in vocabulary if piece != END]
    file = folder / "cl100k_base.tiktoken"
    rows = (b"%s %d\n" % (base64.b64encode(piece), rank) for rank, piece in enumerate(sorted(pieces, key=len)))
    file.write_bytes(b"".join(rows))
    return file


#: All of them, by name. A writer returns what `tokenizer.use` names.
WRITERS: dict[str, Callable[[Path, Sequence[str]], Path]] = {
    "bpe": write_bpe,
    "normalising_bpe": write_normalising_bpe,
    "unigram": write_unigram,
    "wordpiece": write_wordpiece,
    "sentencepiece": write_sentencepiece,
    "sentencepiece_bytes": write_sentencepiece_bytes,
    "gpt2": write_gpt2,
    "tiktoken": write_tiktoken,
}
#: Those of which each text is the bytes of its tokens.
LOSSLESS = ("bpe", "gpt2", "tiktoken")
