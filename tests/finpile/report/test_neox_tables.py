"""Tables 14 to 18 of GPT-NeoX-20B: the paper's figures from its counts, and counts of the libraries themselves."""

from __future__ import annotations

import csv
import re
import string
from collections import Counter
from collections.abc import Sequence
from fractions import Fraction
from itertools import pairwise
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st

from finpile.report import neox_tables, word_counts
from finpile.report.documents import iter_texts
from finpile.report.neox_tables import shared_tokens, table14, table15, table16, table17, table18, worst_words
from finpile.report.table import Table
from finpile.report.table3 import ComparedSource, Comparison, TokenCount, TokenizerFacts, compare
from finpile.report.word_counts import WordCounts
from finpile.tokens.tokenizers.opening import open_tokenizer
from finpile.tokens.tokenizers.protocol import OpenTokenizer
from tests.support.other_tokenizers import byte_level_bpe, train_sentencepiece
from tests.support.real_data import DATA, needs

GOLDEN = Path(__file__).resolve().parents[2] / "golden"
TOKENIZERS = DATA / "tokenizers"
needs_data = needs("tokenizers")
#: Appendix E.1.2: a word is between white space or punctuation as Python defines them.
SEPARATORS = re.compile(rf"[\s{re.escape(string.punctuation)}]+")


def texts_of(*texts: str, source: str = "s") -> tuple[str, str, pa.Array]:
    return "d", source, pa.array(texts, pa.large_string())


def shown(table: Table) -> list[list[str]]:
    return [[cell.text for cell in row.cells] for row in table.rows]


# --- the paper's figures -------------------------------------------------------------------------------------------


def golden(number: int) -> list[dict[str, str]]:
    with (GOLDEN / f"gpt_neox_20b_table{number}.csv").open(encoding="utf-8", newline="") as stream:
        return list(csv.DictReader(stream))


def of_the_paper() -> Comparison:
    def counted(both: dict[str, str], without: dict[str, str], key: str) -> TokenCount:
        tokens = int(both[key])
        return TokenCount(num_tokens=tokens, num_whitespace=tokens - int(without[key]))

    rows = [pair for pair in zip(golden(15), golden(16), strict=True) if pair[0]["component"] != "Total"]
    return Comparison(
        tokenizers=tuple(TokenizerFacts(name=name, vocab_size=50257, lossless=None) for name in ("GPT-2", "NeoX")),
        sources=tuple(
            ComparedSource(
                dataset="The Pile",
                source=both["component"],
                num_docs=1,
                num_chars=1,
                num_bytes=1,
                counts=(counted(both, without, "gpt2"), counted(both, without, "gpt_neox_20b")),
            )
            for both, without in rows
        ),
    )


@pytest.mark.parametrize(("number", "make"), [(15, table15), (16, table16)])
def test_the_papers_counts_give_every_cell_of_the_paper(number: int, make: Any) -> None:
    printed = [
        [row["component"], f"{int(row['gpt2']):,}", f"{int(row['gpt_neox_20b']):,}", row["ratio"]]
        for row in sorted(golden(number)[:-1], key=lambda row: row["component"].casefold())
    ]
    total = golden(number)[-1]
    expected = [*printed, ["Total", f"{int(total['gpt2']):,}", f"{int(total['gpt_neox_20b']):,}", total["ratio"]]]
    assert shown(make(of_the_paper())) == expected


def test_table14_has_the_totals_of_the_paper() -> None:
    assert shown(table14(of_the_paper())) == [
        ["The Pile", "383,111,734", "342,887,807", "0.89501"],
        ["The Pile excl. space", "337,787,550", "322,074,249", "0.95348"],
    ]


@needs_data
def test_shared_and_longest_tokens_are_those_of_the_paper() -> None:
    gpt2, neox = (open_tokenizer(TOKENIZERS / path) for path in ("gpt2", "gpt_neox/20B_tokenizer.json"))
    assert shown(shared_tokens([gpt2, neox]))[0][1:4] == ["50,257", "36,938", "73.5%"]
    printed = {
        "gpt2": "rawdownloadcloneembedreportprint BuyableInstoreAndOnline cloneembedreportprint ␣RandomRedditorWithNo "
        "␣telecommunications channelAvailability ␣disproportionately ␣Telecommunications ␣guiActiveUnfocused "
        "ItemThumbnailImage",
        "20B_tokenizer": "␣immunohistochemistry ␣immunohistochemical ␣telecommunications ␣immunofluorescence "
        "␣immunosuppressive ␣BytePtrFromString ␣multidisciplinary ␣histopathological ␣neurodegenerative "
        "␣indistinguishable",
    }
    for column, tokenizer in enumerate([gpt2, neox], start=1):
        ours, theirs = [row[column] for row in shown(table17([gpt2, neox]))], printed[tokenizer.name].split()
        # Tokens as long as the tenth are a choice of the paper.
        longer = {token for token in theirs if len(token) > min(map(len, theirs))}
        assert [len(token) for token in ours] == sorted(map(len, theirs), reverse=True)
        assert {token for token in ours if len(token) > min(map(len, ours))} == longer


#: Table 18: words of which one tokenizer makes one token, and the other as many as printed.
WORST_OF_GPT2 = {
    "hematopoietic": 6, "adenocarcinoma": 6, "MERCHANTABILITY": 5, "CONSEQUENTIAL": 5, "oligonucleotides": 5,
    "cytoplasmic": 5, "corticosteroids": 4, "neurodegenerative": 4, "asymptotic": 4, "aneurysm": 4,
}  # fmt: skip
WORST_OF_NEOX = {
    "Schwarzenegger": 5, "Bolshevik": 4, "crowdfunding": 4, "misogyny": 4, "McAuliffe": 4,
    "unstoppable": 4, "Timberwolves": 4, "excruciating": 4, "Kaepernick": 4, "Valkyrie": 4,
}  # fmt: skip


@needs_data
def test_worst_words_of_the_paper_are_found_with_its_counts() -> None:
    gpt2, neox = (open_tokenizer(TOKENIZERS / path) for path in ("gpt2", "gpt_neox/20B_tokenizer.json"))
    ten_times = " ".join([*WORST_OF_GPT2, *WORST_OF_NEOX, "plain"] * 10)
    found = WordCounts()
    comparison = compare([gpt2, neox], found.watch([texts_of(ten_times)]))
    rows = {row[0]: row for row in shown(table18([gpt2, neox], worst_words(comparison, [gpt2, neox], found)))}
    assert {word: row[2:5:2] for word, row in rows.items()} == {
        **{word: ["gpt2", str(number)] for word, number in WORST_OF_GPT2.items()},
        **{word: ["20B_tokenizer", "1"] for word in WORST_OF_NEOX},
    }
    assert {word: int(row[6]) for word, row in rows.items()} == {**dict.fromkeys(WORST_OF_GPT2, 1), **WORST_OF_NEOX}


# --- counts of the libraries ---------------------------------------------------------------------------------------


@pytest.fixture(scope="module")
def trained(tmp_path_factory: pytest.TempPathFactory, sample_build: Path) -> dict[str, Path]:
    """A byte-level BPE of `tokenizers`, a Unigram model of `sentencepiece`, and the tokenizer of the build."""
    folder = tmp_path_factory.mktemp("tokenizers")
    texts = [text for _, _, array in iter_texts([sample_build], 20_000) for text in array.to_pylist()]
    bpe = byte_level_bpe(texts, 600)
    bpe.add_tokens([" " * size for size in range(24, 1, -1)])
    bpe.save(str(folder / "bpe.json"))
    pieces = train_sentencepiece(folder / "pieces.model", texts, vocab_size=700, byte_fallback=True)
    return {"bpe": folder / "bpe.json", "pieces": pieces, "ours": sample_build / "tokenizer"}


def directly(paths: dict[str, Path]) -> dict[str, Any]:
    """Text to the tokens of each library, as the bytes that they are."""
    import sentencepiece
    from finpile_tokenizer import UnigramTokenizer
    from tokenizers import Tokenizer

    bpe, own = Tokenizer.from_file(str(paths["bpe"])), UnigramTokenizer.load(paths["ours"])
    bpe.encode_special_tokens = True
    pieces = sentencepiece.SentencePieceProcessor(model_file=str(paths["pieces"]))
    return {
        "bpe": lambda text: [bpe.decode([i], skip_special_tokens=False) for i in bpe.encode(text).ids],
        "pieces": lambda text: [piece.replace("▁", " ") for piece in pieces.encode(text, out_type=str)],
        "ours": lambda text: [own.decode([i]).decode(errors="replace") for i in own.encode(text)],
    }


def test_counts_and_words_are_those_of_each_library(sample_build: Path, trained: dict[str, Path]) -> None:
    tokenizers: list[OpenTokenizer] = [open_tokenizer(path, name) for name, path in trained.items()]
    batches, found = list(iter_texts([sample_build])), WordCounts()
    comparison = compare(tokenizers, found.watch(batches))
    encode = directly(trained)

    tokens: dict[str, Counter[str]] = {name: Counter() for name in trained}
    solid: dict[str, Counter[str]] = {name: Counter() for name in trained}
    vocabulary: dict[str, Counter[str]] = {}
    for _, source, array in batches:
        for text in array.to_pylist():
            vocabulary.setdefault(source, Counter()).update(word for word in SEPARATORS.split(text) if word)
            for name in trained:
                made = encode[name](text)
                tokens[name][source] += len(made)
                solid[name][source] += sum(not token.isspace() for token in made)
    for table, expected in [(table15(comparison), tokens), (table16(comparison), solid)]:
        *rows, total = table.rows
        assert len(rows) == len(vocabulary) > 3
        for row in rows:
            source = re.sub(r" \(.*", "", row.cells[0].text)
            assert [cell.value for cell in row.cells[1:4]] == [expected[name][source] for name in trained]
        assert [cell.value for cell in total.cells[1:4]] == [expected[name].total() for name in trained]
    assert [cell.value for cell in table15(comparison).rows[-1].cells[4:]] == [
        tokens["ours"].total() / tokens[other].total() for other in ("bpe", "pieces")
    ]

    prefix = {"bpe": " ", "pieces": "", "ours": " "}  # SentencePiece puts a space before each text
    names = list(trained)
    worst = worst_words(comparison, tokenizers, found)
    assert {(names[one.worse], names[one.better]) for one in worst} == {
        ("bpe", "ours"), ("ours", "bpe"), ("pieces", "ours"), ("ours", "pieces"),
    }  # fmt: skip
    for source, counts in vocabulary.items():
        frequent = [word for word, number in counts.items() if number >= 10]
        lengths = {name: {word: len(encode[name](prefix[name] + word)) for word in frequent} for name in names}
        for worse, better in [("bpe", "ours"), ("ours", "bpe"), ("pieces", "ours"), ("ours", "pieces")]:
            many, few = lengths[worse], lengths[better]
            ranked = sorted(
                (word for word in frequent if many[word] > few[word]),
                key=lambda word: (-Fraction(many[word], few[word]), few[word] - many[word], -counts[word], word),
            )
            ours = [
                (one.word, one.num_occurrences)
                for one in worst
                if (re.sub(r" \(.*", "", one.component), names[one.worse], names[one.better]) == (source, worse, better)
            ]
            assert ours == [(word, counts[word]) for word in ranked[:10]]
    by_key = [column.key for column in table18(tokenizers, worst).columns]
    for row in table18(tokenizers, worst).rows:
        values = dict(zip(by_key, (cell.value for cell in row.cells), strict=True))
        for name in names:
            made = encode[name](prefix[name] + str(values["word"]))
            assert values[f"{name}_num_tokens"] == len(made)
            if not any("\ufffd" in token or "<0x" in token for token in made):  # parts of characters are escaped
                assert values[f"{name}_tokens"] == " ".join(token.replace(" ", "␣") for token in made)


def test_pieces_joined_are_the_text(trained: dict[str, Path]) -> None:
    text = " Zürich  rose,  \n 中文 12.5% 𝄞"
    for name in ("bpe", "ours"):
        tokenizer = open_tokenizer(trained[name])
        assert b"".join(tokenizer.pieces[token] for token in tokenizer.encode([text])[0]) == text.encode()
    pieces = open_tokenizer(trained["pieces"])
    spelled = b"".join(pieces.pieces[token] for token in pieces.encode(["Zürich 中 x"])[0])
    assert spelled == " Zürich 中 x".encode()


@pytest.mark.parametrize("name", ["bpe", "ours"])
def test_a_vocabulary_shares_all_tokens_with_itself(trained: dict[str, Path], name: str) -> None:
    tokenizer, again = open_tokenizer(trained[name], name), open_tokenizer(trained[name], "again")
    distinct = len(set(tokenizer.pieces))  # `bpe` has a run of spaces twice
    assert [cell.value for cell in shared_tokens([tokenizer, again]).rows[0].cells[1:3]] == [
        tokenizer.vocab_size,
        distinct,
    ]
    assert distinct == tokenizer.vocab_size or name == "bpe"


def test_own_vocabulary_equals_its_export(sample_build: Path) -> None:
    own, exported = (
        open_tokenizer(sample_build / "tokenizer" / part, part or "own") for part in ("", "tokenizer.json")
    )
    assert list(own.pieces) == list(exported.pieces)
    assert own.control_ids == exported.control_ids
    assert [row[1] for row in shown(table17([own]))] == [row[1] for row in shown(table17([exported]))]


# --- words and tokens ----------------------------------------------------------------------------------------------

signs = st.sampled_from([*"abé中 \t\n\x1c\x85\u00a0\u3000.,'_~-\u2019\ufeff\x00", "\u200b"])


@given(st.lists(st.tuples(st.sampled_from("st"), st.lists(st.text(signs)))), st.integers(1, 3), st.integers(0, 4))
def test_words_are_counted_as_a_dictionary_counts_them(
    batches: list[tuple[str, list[str]]], least: int, pending: int
) -> None:
    counted, expected = WordCounts(), Counter[str]()
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(word_counts, "_PENDING_ROWS", pending)
        for source, texts in batches:
            counted.add(("d", source), pa.array(texts, pa.large_string()))
            expected.update(word for text in texts for word in SEPARATORS.split(text) if word)
    sources = sorted({("d", source) for source, _ in batches})
    if sources:
        found = counted.frequent(sources, least)
        assert found == {word: number for word, number in expected.items() if number >= least}
        assert list(found) == sorted(found)


class Listed:
    """A tokenizer of one token a character, with any vocabulary."""

    lossless: bool | None = True

    def __init__(self, name: str, pieces: Sequence[str], controls: Sequence[int] = ()) -> None:
        self.name, self.pieces, self.control_ids = name, [piece.encode() for piece in pieces], frozenset(controls)
        self.vocab_size = len(pieces)

    def encode(self, texts: Sequence[str]) -> list[list[int]]:
        return [
            [self.pieces.index(sign.encode()) if sign.encode() in self.pieces else 0 for sign in text] for text in texts
        ]

    def measure(self, texts: pa.Array) -> Any:
        raise NotImplementedError

    def count(self, texts: pa.Array) -> Any:
        raise NotImplementedError


def test_longest_tokens_are_mainly_letters() -> None:
    kept = ["नमस्ते", " ab cd", "abc12"]
    pieces = ["<|endoftext|>", "ÃÂÃÂÃÂÃÂÃÂ", "----------", "  abc     ", "ab1234", "aaaaaaaa", *kept, "��abc"]
    assert [row[1] for row in shown(table17([Listed("t", pieces, controls=[0])]))] == ["नमस्ते", "␣ab␣cd", "abc12"]


def test_control_characters_of_tokens_are_shown_as_escapes() -> None:
    assert neox_tables._shown(b" a\n\xff\t") == "␣a\\n\\xff\\t"


def test_words_that_a_tokenizer_does_not_know_are_not_compared() -> None:
    known, other = Listed("known", ["?", " ", *"abc"]), Listed("other", ["?", " ", *"ab"], controls=[0])
    comparison = Comparison(
        tokenizers=(),
        sources=(
            ComparedSource(dataset="d", source="s", num_docs=1, num_chars=1, num_bytes=1, counts=(TokenCount(),) * 2),
        ),
    )
    found = WordCounts()
    found.add(("d", "s"), pa.array(["abc abb " * 10], pa.large_string()))
    assert worst_words(comparison, [known, other], found) == []


def test_ties_are_in_order_of_ids_and_words() -> None:
    table = table17([Listed("t", ["cba", "bac", "abc"])])
    assert [row[1] for row in shown(table)] == ["cba", "bac", "abc"]
    assert all(int(low[0]) < int(high[0]) for low, high in pairwise(shown(table)))
