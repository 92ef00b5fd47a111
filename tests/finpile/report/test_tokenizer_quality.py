"""Quality of tokenizers by source: counts equal those of a slow reading of each text's tokens."""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Sequence
from typing import Any

import pyarrow as pa
import pytest
from finpile_tokenizer import UnigramTokenizer, UnigramTrainer, count_pretokens, merge, prune_to

from finpile.errors import InputError
from finpile.report.table import Table
from finpile.report.tokenizer_quality import QualityCounts, quality_tables
from finpile.tokens.tokenizers.opening import open_tokenizer
from finpile.tokens.tokenizers.protocol import Tokenizer
from tests.support.other_tokenizers import TEXTS, write_bpe, write_normalising_bpe

_WORDS = "the bank of oil and the price of gold rose by 1987 points in the third quarter".split()  # noqa: SIM905
#: By dataset and source; the second has white space of several kinds, and a source has no word.
SOURCES = {
    ("FinPile", "News"): [" ".join(_WORDS[at:] + _WORDS[:at]) for at in range(len(_WORDS))] * 3,
    ("Other", "Notes"): [*TEXTS, "a\u00a0b\u3000c\u2028d e", "", "12 345\n\n6"],
    ("Other", "Blank"): [" \n\t  "],
}


@pytest.fixture(scope="module")
def tokenizers(tmp_path_factory: pytest.TempPathFactory) -> list[Tokenizer]:
    folder = tmp_path_factory.mktemp("tokenizers")
    texts = [text for some in SOURCES.values() for text in some]
    for name, write in {"bpe": write_bpe, "nfc": write_normalising_bpe}.items():
        (folder / name).mkdir()
        write(folder / name, texts)
    counts = count_pretokens(pa.array(texts, pa.large_string()))
    model = UnigramTrainer(vocab_size=420, seed_size=2000).train(counts)
    UnigramTokenizer(prune_to(merge([model]), 400)).save(folder / "own")
    return [open_tokenizer(folder / name) for name in ("bpe", "nfc", "own")]


def counted(tokenizers: Sequence[Tokenizer], parts: int = 1) -> QualityCounts:
    """Each source's texts in this number of arrays."""
    counts = QualityCounts(tokenizers)
    given = [
        (*source, pa.array(texts[number::parts], pa.large_string()))
        for source, texts in SOURCES.items()
        for number in range(parts)
    ]
    assert [row[:2] for row in counts.watch(given)] == [row[:2] for row in given]
    return counts


def rows(table: Table) -> list[dict[str, Any]]:
    keys = [column.key for column in table.columns]
    return [dict(zip(keys, (cell.value for cell in row.cells), strict=True)) for row in table.rows]


def slow(tokenizer: Tokenizer, texts: Sequence[str]) -> dict[str, Any]:
    """The figures of a row, text by text and token by token."""
    pieces = [piece.decode(errors="replace") for piece in tokenizer.pieces]
    used = Counter(at for text in texts for at in tokenizer.encode([text])[0])
    num_tokens, num_bytes = used.total(), sum(len(text.encode()) for text in texts)
    num_words = sum(len(text.split()) for text in texts)
    own = getattr(tokenizer, "log_probs", None)

    def share(kind: Any) -> float:
        found = sum(times for at, times in used.items() if at not in tokenizer.control_ids and kind(pieces[at]))
        return 100 * found / num_tokens

    size = tokenizer.vocab_size - len(tokenizer.control_ids)
    return {
        "num_bytes": num_bytes,
        "num_words": num_words,
        "num_tokens": num_tokens,
        "tokens_per_word": num_tokens / num_words if num_words else None,
        "bytes_per_token": num_bytes / num_tokens,
        "bits_per_byte": num_tokens * math.log2(tokenizer.vocab_size) / num_bytes,
        "own_bits_per_byte": None if own is None else -sum(own[at] / math.log(2) for at in used.elements()) / num_bytes,
        "digits_percent": share(lambda piece: piece.strip().isdigit()),
        "blank_percent": share(str.isspace),
        "words_percent": share(lambda piece: len(piece.split()) > 1),
        "unused_percent": 100 * (size - len(used.keys() - tokenizer.control_ids)) / size,
    }


def test_figures_are_those_of_a_slow_reading(tokenizers: list[Tokenizer]) -> None:
    by_source, _ = quality_tables(counted(tokenizers))
    expected = []
    for tokenizer in tokenizers:
        parts = {f"{dataset}: {source}": texts for (dataset, source), texts in SOURCES.items()}
        parts = {"All": [text for texts in SOURCES.values() for text in texts], **parts}
        expected += [{"tokenizer": tokenizer.name, "source": name, **slow(tokenizer, parts[name])} for name in parts]
    found = rows(by_source)
    assert len(found) == len(expected)
    for row, wanted in zip(found, expected, strict=True):
        assert row == pytest.approx(wanted), row["source"]
    assert any(row["words_percent"] for row in found) and any(row["digits_percent"] for row in found)


def test_vocabularies_are_those_of_a_slow_reading(tokenizers: list[Tokenizer]) -> None:
    _, vocabularies = quality_tables(counted(tokenizers))
    texts = [text for some in SOURCES.values() for text in some]
    own = set(tokenizers[-1].pieces)
    for row, tokenizer in zip(rows(vocabularies), tokenizers, strict=True):
        used = {at for text in texts for at in tokenizer.encode([text])[0]}
        kept = {at: piece for at, piece in enumerate(tokenizer.pieces) if at not in tokenizer.control_ids}
        shown = [piece.decode(errors="replace") for piece in kept.values()]
        assert row["num_pieces"] == len(kept)
        assert row["num_words"] == sum(len(piece.split()) > 1 for piece in shown)
        assert row["num_digits"] == sum(piece.strip().isdigit() for piece in shown)
        assert row["num_blank"] == sum(piece.isspace() for piece in shown)
        assert row["num_unused"] == len(kept.keys() - used)
        assert row["num_shared"] == sum(piece in own for piece in dict.fromkeys(tokenizer.pieces))
    assert rows(vocabularies)[-1]["shared_percent"] == 100


def test_figures_do_not_depend_on_how_texts_are_cut(tokenizers: list[Tokenizer]) -> None:
    assert quality_tables(counted(tokenizers)) == quality_tables(counted(tokenizers, parts=3))


def test_no_text_is_an_error(tokenizers: list[Tokenizer]) -> None:
    with pytest.raises(InputError, match="no text"):
        quality_tables(QualityCounts(tokenizers))
