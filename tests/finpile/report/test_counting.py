"""Tokenizers as counters, documents as texts, and the command that brings them together."""

from __future__ import annotations

import gzip
import json
from itertools import pairwise
from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
import regex
import zstandard
from click.testing import CliRunner
from finpile_cli.compare import compare_command

from finpile.errors import InputError
from finpile.report.documents import iter_texts
from finpile.report.table3 import Comparison, compare, efficiency, table3
from finpile.tokens.tokenizers.opening import open_tokenizer
from finpile.tokens.tokenizers.protocol import CountingTokenizer, Measured
from tests.support.real_data import DATA, needs

TOKENIZERS = DATA / "tokenizers"
needs_data = needs("tokenizers")
TEXTS = [
    "Shares of ACME Corp. rose 12.5% to $1,234.56 on Tuesday.",
    "  def f(x):\n\t    return x ** 2   # two  spaces\n\n\n",
    "don't we'll naïve café 😀 中文 Ελλάδα x<|endoftext|>y",
    "",
    " ",
]
ARRAY = pa.array(TEXTS, pa.large_string())
#: GPT-2's published pattern (Radford et al. 2019, encoder.py).
GPT2_PATTERN = regex.compile(r"'s|'t|'re|'ve|'m|'ll|'d| ?\p{L}+| ?\p{N}+| ?[^\s\p{L}\p{N}]+|\s+(?!\S)|\s+")


def gpt2_ids(text: str, folder: Path) -> list[int]:
    """Byte-pair encoding as it is defined: merge the pair of the lowest rank until there is none."""
    vocabulary = json.loads((folder / "encoder.json").read_text())
    lines = (folder / "vocab.bpe").read_text().split("\n")[1:-1]
    ranks = {tuple(line.split(" ")): rank for rank, line in enumerate(lines)}
    shown = [*range(33, 127), *range(161, 173), *range(174, 256)]
    hidden = [byte for byte in range(256) if byte not in shown]
    alphabet = {byte: chr(byte) for byte in shown} | {byte: chr(256 + at) for at, byte in enumerate(hidden)}
    ids = []
    for chunk in GPT2_PATTERN.findall(text):
        word = [alphabet[byte] for byte in chunk.encode()]
        while len(word) > 1:
            rank, at = min((ranks.get(pair, len(ranks)), at) for at, pair in enumerate(pairwise(word)))
            if rank == len(ranks):
                break
            word[at : at + 2] = [word[at] + word[at + 1]]
        ids += [vocabulary[piece] for piece in word]
    return ids


@needs_data
def test_gpt2_files_give_the_ids_of_their_definition() -> None:
    tokenizer = open_tokenizer(TOKENIZERS / "gpt2")
    assert tokenizer.encode(TEXTS) == [gpt2_ids(text, TOKENIZERS / "gpt2") for text in TEXTS]  # type: ignore[attr-defined]
    assert (tokenizer.name, tokenizer.vocab_size) == ("gpt2", 50257)


@needs_data
@pytest.mark.parametrize(
    ("path", "name", "vocab_size"),
    [
        ("gpt2/encoder.json", "gpt2", 50257),
        ("gpt_neox/20B_tokenizer.json", "20B_tokenizer", 50277),
        ("t5/spiece.model", "t5", 32000),
        ("t5/tokenizer.json", "t5", 32100),
        ("albert", "albert", 30000),
        ("seqio", "seqio", 26),
    ],
)
def test_every_kind_is_detected_from_its_files(path: str, name: str, vocab_size: int) -> None:
    tokenizer = open_tokenizer(TOKENIZERS / path)
    assert (tokenizer.name, tokenizer.vocab_size) == (name, vocab_size)
    measured = tokenizer.measure(ARRAY)
    assert measured.tokens.tolist() == tokenizer.count(ARRAY).tolist()
    assert len(measured.tokens) == len(TEXTS)
    assert measured.tokens[3] == 0


@needs_data
def test_losses_are_counted() -> None:
    gpt2 = open_tokenizer(TOKENIZERS / "gpt2").measure(ARRAY)
    assert (gpt2.num_altered, gpt2.num_unknown) == (0, 0)
    t5 = open_tokenizer(TOKENIZERS / "t5" / "spiece.model").measure(pa.array(["plain words", "a 中 b", "a\nb"]))
    assert (t5.num_altered, t5.num_unknown) == (2, 1)


@needs_data
def test_neox_changes_only_text_that_is_not_in_composed_form() -> None:
    neox = open_tokenizer(TOKENIZERS / "gpt_neox" / "20B_tokenizer.json")
    assert neox.measure(pa.array(["caf\u00e9", "cafe\u0301"])).num_altered == 1


@needs_data
def test_whitespace_tokens_are_those_that_are_white_space_only() -> None:
    # GPT-2 makes three tokens of three spaces before a word's own; GPT-NeoX-20B has one for the run.
    text = pa.array(["a" + " " * 4 + "b"])
    gpt2, neox = (open_tokenizer(TOKENIZERS / path).measure(text) for path in ("gpt2", "gpt_neox/20B_tokenizer.json"))
    assert (gpt2.tokens.tolist(), gpt2.num_whitespace) == ([5], 3)
    assert (neox.tokens.tolist(), neox.num_whitespace) == ([3], 1)


@needs_data
def test_marks_in_a_text_are_text() -> None:
    neox = open_tokenizer(TOKENIZERS / "gpt_neox" / "20B_tokenizer.json")
    assert neox.count(pa.array(["<|endoftext|>"]))[0] > 1


def test_own_tokenizer_counts_equal_its_encoding(tmp_path: Path) -> None:
    from finpile_tokenizer import UnigramTokenizer, UnigramTrainer, count_pretokens, merge, prune_to

    texts = pa.array([f"oil rose {n}%   today" for n in range(99)] + TEXTS, pa.large_string())
    trained = UnigramTokenizer(prune_to(merge([UnigramTrainer(vocab_size=300).train(count_pretokens(texts))]), 300))
    trained.save(tmp_path / "acme" / "tokenizer")
    own = open_tokenizer(tmp_path / "acme")
    assert (own.name, own.vocab_size, own.lossless) == ("acme", trained.vocab_size, True)
    encoded = [trained.encode(text) for text in TEXTS]
    measured = own.measure(ARRAY)
    assert measured.tokens.tolist() == own.count(ARRAY).tolist() == [len(ids) for ids in encoded]
    blank = [token for ids in encoded for token in ids if trained.decode([token]).decode(errors="replace").isspace()]
    assert measured.num_whitespace == len(blank) > 0
    exported = open_tokenizer(tmp_path / "acme" / "tokenizer" / "tokenizer.json")
    assert exported.measure(ARRAY).tokens.tolist() == measured.tokens.tolist()


@pytest.mark.parametrize("name", ["absent", "empty", "page.html", "bad.json", "bad.model", "gpt2"])
def test_a_path_without_a_tokenizer_is_named_with_the_expected_files(tmp_path: Path, name: str) -> None:
    (tmp_path / "empty").mkdir()
    (tmp_path / "gpt2").mkdir()
    for file in ("page.html", "bad.json", "bad.model", "gpt2/encoder.json", "gpt2/vocab.bpe"):
        (tmp_path / file).write_text("{'")
    with pytest.raises(InputError, match=name):
        open_tokenizer(tmp_path / name)


def test_gpt2_files_of_two_models_are_reported(tmp_path: Path) -> None:
    (tmp_path / "encoder.json").write_text('{"a": 0, "b": 1}')
    (tmp_path / "vocab.bpe").write_text("#version: 0.2\na b\n")
    with pytest.raises(InputError, match=r"encoder\.json has no 'ab'"):
        open_tokenizer(tmp_path)


def read(*paths: Path, limit_bytes: int | None = None) -> list[tuple[str, str, list[str]]]:
    return [(dataset, source, texts.to_pylist()) for dataset, source, texts in iter_texts(paths, limit_bytes)]


def jsonl(texts: list[str]) -> bytes:
    return "".join(json.dumps({"text": text}) + "\n" for text in texts).encode()


def test_every_container_gives_the_same_texts(tmp_path: Path) -> None:
    (tmp_path / "a.jsonl").write_bytes(jsonl(TEXTS))
    (tmp_path / "b.jsonl.gz").write_bytes(gzip.compress(jsonl(TEXTS)))
    half = len(jsonl(TEXTS)) // 2
    frames = [zstandard.compress(part) for part in (jsonl(TEXTS)[:half], jsonl(TEXTS)[half:])]
    (tmp_path / "c.jsonl.zst").write_bytes(b"".join(frames))
    pq.write_table(pa.table({"text": TEXTS}), tmp_path / "d.parquet")
    names = ["a.jsonl", "b.jsonl.gz", "c.jsonl.zst", "d.parquet"]
    assert read(*(tmp_path / name for name in names)) == [(name[0], name[0], TEXTS) for name in names]


def test_the_text_of_a_record_is_that_of_the_field(tmp_path: Path) -> None:
    records = [{"text": "no", "body": f"text {number}", "doc": {"full": f"all of {number}"}} for number in range(3)]
    (tmp_path / "a.jsonl").write_text("".join(json.dumps(record) + "\n" for record in records))
    pq.write_table(pa.Table.from_pylist([*records, {**records[0], "body": None}]), tmp_path / "b.parquet")
    (tmp_path / "c.txt").write_text("a text has no fields")
    paths = [tmp_path / name for name in ("a.jsonl", "b.parquet", "c.txt")]
    for field, expected in (("body", "text {}"), ("doc.full", "all of {}")):
        one, two, three = (
            [text for text in texts.to_pylist() if text] for *_, texts in iter_texts(paths, text_field=field)
        )
        assert one == [expected.format(number) for number in range(3)]
        assert two[:3] == one
        assert three == ["a text has no fields"]
    for path, message in (
        (paths[0], r"a\.jsonl:1: has no string under the key `nope` \(--text-field names it\)"),
        (paths[1], r"no column `nope` but text, body, doc \(--text-field names it\)"),
    ):
        with pytest.raises(InputError, match=message):
            list(iter_texts([path], text_field="nope"))
    with pytest.raises(InputError, match=r"b\.parquet, row 0: has no string under the key `doc`"):
        list(iter_texts([paths[1]], text_field="doc"))


def test_documents_of_a_build_have_texts_of_their_own(tmp_path: Path) -> None:
    folder = tmp_path / "documents" / "dataset=FinPile" / "source=News"
    folder.mkdir(parents=True)
    pq.write_table(pa.table({"text": ["one"], "body": ["no"]}), folder / "part-00000-of-00001.parquet")
    assert [texts.to_pylist() for *_, texts in iter_texts([tmp_path], text_field="body")] == [["one"]]


def test_texts_of_a_folder_are_one_source_in_the_order_of_names(tmp_path: Path) -> None:
    folder = tmp_path / "speeches"
    for name, text in (("b.txt", "two"), ("a.txt", "one"), ("z/c.txt", "three")):
        (folder / name).parent.mkdir(parents=True, exist_ok=True)
        (folder / name).write_text(text)
    assert read(folder) == [("speeches", "speeches", ["one", "two", "three"])]


def test_a_mark_at_the_beginning_of_a_text_file_is_not_text(tmp_path: Path) -> None:
    (tmp_path / "a.txt").write_text("one", encoding="utf-8-sig")
    assert read(tmp_path / "a.txt") == [("a", "a", ["one"])]


def test_an_output_tree_keeps_its_datasets_and_sources(tmp_path: Path) -> None:
    for dataset, source in (("FinPile", "News"), ("C4", "C4")):
        folder = tmp_path / "documents" / f"dataset={dataset}" / f"source={source}"
        folder.mkdir(parents=True)
        columns = {"text": [source], "dataset": [dataset], "source": [source]}
        pq.write_table(pa.table(columns), folder / "part-00000-of-00001.parquet")
    (tmp_path / "reports.txt").write_text("no document")
    assert read(tmp_path) == [("C4", "C4", ["C4"]), ("FinPile", "News", ["News"])]


def test_components_of_the_pile_are_sources(tmp_path: Path) -> None:
    record = {"text": "x", "meta": {"pile_set_name": "FreeLaw"}}
    (tmp_path / "val.jsonl").write_text(json.dumps(record))
    assert read(tmp_path / "val.jsonl") == [("The Pile", "FreeLaw", ["x"])]


def test_a_limit_ends_each_source_with_the_text_that_reaches_it(tmp_path: Path) -> None:
    (tmp_path / "a.jsonl").write_bytes(jsonl(["12345", "é7", "8"]))
    (tmp_path / "b.jsonl").write_bytes(jsonl(["123456789", "0"]))
    limited = read(tmp_path / "a.jsonl", tmp_path / "b.jsonl", limit_bytes=6)
    assert [texts for _, _, texts in limited] == [["12345", "é7"], ["123456789"]]


@pytest.mark.parametrize(
    ("name", "content", "message"),
    [
        ("a.jsonl", b'{"text": "x"}\n{"text": 7}\n', r"a\.jsonl:2: has no string"),
        ("a.jsonl", b'{"text": "x"}\n\n{"tex', r"a\.jsonl:3: is not JSON"),
        ("a.jsonl", b"\xff\n", r"a\.jsonl:1: is not JSON in UTF-8"),
        ("a.txt", b"ab\xff", "byte 2 is not UTF-8"),
        ("a.jsonl.zst", zstandard.compress(jsonl(TEXTS))[:-4], "cut short"),
        ("a.jsonl.gz", gzip.compress(jsonl(TEXTS), mtime=0)[:-9], "cut short"),
        ("a.jsonl.gz", b"no gzip at all", "damaged"),
        ("a.parquet", b"PAR1", "Parquet"),
        ("a.pdf", b"", "unknown kind"),
    ],
)
def test_broken_files_are_errors_that_name_them(tmp_path: Path, name: str, content: bytes, message: str) -> None:
    (tmp_path / name).write_bytes(content)
    with pytest.raises(InputError, match=message):
        read(tmp_path / name)


def test_parquet_without_text_names_its_columns(tmp_path: Path) -> None:
    pq.write_table(pa.table({"body": ["x"]}), tmp_path / "a.parquet")
    with pytest.raises(InputError, match="no column `text` but body"):
        read(tmp_path / "a.parquet")


class Characters:
    """A tokenizer of one token a character, `cost` times over."""

    lossless: bool | None = True

    def __init__(self, name: str, cost: int) -> None:
        self.name, self.vocab_size, self._cost = name, 256, cost

    def measure(self, texts: pa.Array) -> Measured:
        return Measured(tokens=self.count(texts))

    def count(self, texts: pa.Array):  # type: ignore[no-untyped-def]
        return pa.compute.multiply(pa.compute.utf8_length(texts), self._cost).to_numpy(zero_copy_only=False)


@pytest.mark.parametrize("names", [["name", "b"], ["b", "b_percent"], ["b", "b"]])
def test_tokenizers_with_the_name_of_a_column_are_refused(names: list[str]) -> None:
    """The JSON of Table 3 would lack a column."""
    with pytest.raises(InputError, match="NAME=PATH"):
        compare([Characters(name, 1) for name in names], [("D", "S", pa.array(["a"], pa.large_string()))])


def three_sources() -> list[tuple[str, str, pa.Array]]:
    parts = [
        ("C4", "C4", ["aé"]),
        ("FinPile", "News", ["x"]),
        ("FinPile", "Web", ["yz", ""]),
        ("FinPile", "News", ["w"]),
    ]
    return [(dataset, source, pa.array(texts, pa.large_string())) for dataset, source, texts in parts]


def compared() -> Comparison:
    tokenizers: list[CountingTokenizer] = [Characters("three", 3), Characters("two", 2)]
    return compare(tokenizers, three_sources())


def test_comparison_adds_up_by_source_dataset_and_total() -> None:
    table = table3(compared())
    assert [[cell.text for cell in row.cells] for row in table.rows] == [
        ["FinPile", "12", "150%", "8"],
        ["C4", "6", "150%", "4"],
        ["Total", "18", "150%", "12"],
    ]
    by_source = table3(compared(), by="source")
    assert [row.cells[0].text for row in by_source.rows] == ["News", "Web", "C4", "Total"]
    assert [column.title for column in table.columns] == ["Dataset", "three", "/two", "two"]
    total = compared().total
    assert (total.num_docs, total.num_chars, total.num_bytes) == (5, 6, 7)


def test_efficiency_counts_bits_of_equal_tokens() -> None:
    first = efficiency(compared()).rows[0].cells
    assert first[5].text == f"{18 * 8 / 7:.3f}"


def test_comparison_needs_texts_and_names_of_its_own() -> None:
    with pytest.raises(InputError, match="no text"):
        compare([Characters("a", 1)], [("D", "S", pa.array([""], pa.large_string()))])
    with pytest.raises(InputError, match="NAME=PATH"):
        compare([Characters("a", 1), Characters("a", 2)], three_sources())
    with pytest.raises(InputError, match="at least one"):
        compare([], three_sources())


@needs_data
def test_compare_command_writes_its_printed_table(tmp_path: Path) -> None:
    (tmp_path / "notes.jsonl").write_bytes(jsonl(TEXTS[:3]))
    out = tmp_path / "out"
    arguments = [f"OPT={TOKENIZERS / 'gpt2'}", str(TOKENIZERS / "albert"), "--ours", f"OPT={TOKENIZERS / 'gpt2'}"]
    asked = [*arguments, "--on", str(tmp_path / "notes.jsonl"), "-o", str(out)]
    ran = CliRunner().invoke(compare_command, [*asked, "--json"], catch_exceptions=False)
    result = json.loads(ran.output)
    assert [one["name"] for one in result["tokenizers"]] == ["albert", "OPT"]
    tokens = result["sources"][0]["counts"][1]["num_tokens"]
    assert tokens == sum(len(gpt2_ids(text, TOKENIZERS / "gpt2")) for text in TEXTS[:3])
    assert sorted(result["files"]) == sorted(str(path) for path in out.iterdir())
    plain = CliRunner().invoke(compare_command, asked, catch_exceptions=False)
    assert "albert: decoding does not give back" in plain.output
