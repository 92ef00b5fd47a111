"""The encoder of the pages has the ids of `finpile_tokenizer`, for any text."""

from __future__ import annotations

import json
import math
import random
from collections import Counter, defaultdict
from pathlib import Path

import numpy as np
import pytest
from click.testing import CliRunner
from finpile_cli.main import finpile
from finpile_tokenizer import UnigramTokenizer

from benchmarks.common.browser import Browser
from finpile import open_documents
from finpile.errors import InputError
from finpile.explorer import write_explorer
from finpile.output.layout import row_of
from finpile.tokens import TokenStore
from finpile.tokens.provenance import TokenProvenance
from tests.finpile.explorer.conftest import read_data, violations

#: First and last code points of scripts and signs.
_SCRIPTS = (
    (0x20, 0x24F),  # Latin
    (0x370, 0x3FF),  # Greek
    (0x400, 0x52F),  # Cyrillic
    (0x531, 0x58F),  # Armenian
    (0x5D0, 0x5F4),  # Hebrew
    (0x600, 0x6FF),  # Arabic
    (0x900, 0x97F),  # Devanagari
    (0x980, 0x9FE),  # Bengali
    (0xB82, 0xBFA),  # Tamil
    (0xC00, 0xC7F),  # Telugu
    (0xE01, 0xE5B),  # Thai
    (0xE81, 0xEDF),  # Lao
    (0xF00, 0xFDA),  # Tibetan
    (0x10A0, 0x10FF),  # Georgian
    (0xAC00, 0xD7A3),  # Hangul
    (0x1200, 0x137C),  # Ethiopic
    (0x13A0, 0x13FD),  # Cherokee
    (0x1780, 0x17F9),  # Khmer
    (0x1800, 0x18AA),  # Mongolian
    (0x3041, 0x309F),  # Hiragana
    (0x30A0, 0x30FF),  # Katakana
    (0x4E00, 0x9FFF),  # Han
    (0xA000, 0xA4C6),  # Yi
    (0x0, 0x1F),  # controls
    (0x2000, 0x206F),  # punctuation
    (0x20A0, 0x20C0),  # currency
    (0x2190, 0x22FF),  # arrows
    (0x1F300, 0x1FAFF),  # emoji
    (0x10330, 0x1034A),  # Gothic
    (0x1D400, 0x1D7FF),  # mathematical
    (0xFE00, 0xFE0F),  # variation
    (0xFF01, 0xFFEE),  # wide
)


def texts_of(explored: Path) -> list[str]:
    """1,000 texts: of each script alone, of all mixed, runs of white space and digits, and texts of the corpus."""
    draw = random.Random(20261123)

    def signs(first: int, last: int, most: int) -> str:
        return "".join(chr(draw.randint(first, last)) for _ in range(draw.randint(0, most)))

    texts = [signs(*bounds, 120) for bounds in _SCRIPTS for _ in range(20)]
    for _ in range(160):
        texts.append("".join(signs(*draw.choice(_SCRIPTS), 12) for _ in range(12)))
    blanks = (" ", "\t", "\n", "\r\n", "\u00a0", "\u3000", "  ", "0", "12", "a", "The ", "$", "<|endoftext|>")
    texts += ["".join(draw.choice(blanks) for _ in range(draw.randint(0, 60))) for _ in range(150)]
    documents = [str(text) for text in open_documents(str(explored)).to_table()["text"].to_pylist()]
    while len(texts) < 1000:
        text = draw.choice(documents)
        start = draw.randrange(len(text))
        texts.append(text[start : start + draw.randint(1, 2000)])
    return texts


def test_ids_are_those_of_the_encoder_for_texts_of_all_scripts(browser: Browser, page: str, explored: Path) -> None:
    tokenizer, texts = UnigramTokenizer.load(explored / "tokenizer"), texts_of(explored)
    assert len(texts) == 1000
    browser.open(f"{page}#/tokenizer")
    browser.wait("document.querySelector('#text') !== null")
    found = browser.run(
        "(() => { const area = document.querySelector('#text'), ids = document.querySelector('.ids');"
        f"return {json.dumps(texts)}.map((text) => {{ area.value = text; area.dispatchEvent(new Event('input'));"
        "return ids.textContent; }); })()"
    )
    # A text area gives each line end as one line feed.
    expected = [tokenizer.encode(text.replace("\r\n", "\n").replace("\r", "\n")) for text in texts]
    assert [[int(name) for name in ids.split()] for ids in found] == expected


def test_shown_pieces_are_the_text(browser: Browser, page: str) -> None:
    browser.open(f"{page}#/tokenizer?text=Net%20income%20rose%2012%25")
    browser.wait("document.querySelector('.tokens .piece') !== null")
    assert browser.run("document.querySelector('.tokens').textContent") == "Net income rose 12%"


def test_counts_of_pieces_are_those_of_the_shards(explored: Path) -> None:
    data = read_data(explored, "vocabulary")
    tokens = np.concatenate(list(TokenStore.open(str(explored / "tokens" / "split=train")).tokens()))
    assert data["counts"] == np.bincount(tokens, minlength=data["eot_id"] + 1).tolist()
    assert sum(data["counts"]) == len(tokens)


def test_pieces_of_sources_are_those_of_their_documents(explored: Path) -> None:
    """Counted sequence by sequence with the provenance of each token, and ranked by the formula of Dunning."""
    data = read_data(explored, "vocabulary")
    provenance = TokenProvenance(str(explored))
    counts: defaultdict[tuple[str, str], Counter[int]] = defaultdict(Counter)
    for sequence in range(len(provenance.store)):
        ids = provenance.store[sequence]
        for span in provenance.spans(sequence):
            counts[row_of(span.location.file)].update(ids[span.begin : span.end].tolist())
    totals = sum(counts.values(), Counter[int]())
    num_all = sum(totals.values())
    assert [(row["dataset"], row["source"]) for row in data["by_source"]] == sorted(counts)
    for found in data["by_source"]:
        own = counts[found["dataset"], found["source"]]
        assert (found["tokens"], found["used"]) == (sum(own.values()), len(own))
        assert found["only"] == sum(totals[piece] == own[piece] for piece in own)
        ratios = {}
        for piece, number in own.items():
            others, expected = totals[piece] - number, totals[piece] * found["tokens"] / num_all
            if number > expected:
                rest = others * math.log(others / (totals[piece] - expected)) if others else 0.0
                ratios[piece] = number * math.log(number / expected) + rest
        best = sorted(ratios.values(), reverse=True)[: len(found["typical"])]
        assert [ratios[piece] for piece, _ in found["typical"]] == pytest.approx(best)
        assert all(own[piece] == number for piece, number in found["typical"])
        assert len(found["typical"]) == min(24, len(ratios))


def test_sources_and_the_sweep_are_shown(browser: Browser, copy_of_sample: Path, tmp_path: Path) -> None:
    sweep = [
        *("tokenizer", "sweep", str(copy_of_sample / "tokenizer"), "--on", str(copy_of_sample)),
        *("--sizes", "1000:4000:1000", "-o", str(tmp_path / "sweep")),
    ]
    assert CliRunner().invoke(finpile, sweep, catch_exceptions=False).exit_code == 0
    explore = ["explore", str(copy_of_sample), "--sweep", str(tmp_path / "sweep")]
    assert CliRunner().invoke(finpile, explore, catch_exceptions=False).exit_code == 0
    browser.open(f"{(copy_of_sample / 'explorer' / 'index.html').as_uri()}#/tokenizer")
    browser.wait("document.querySelector('.typical') !== null")
    rows = json.loads((tmp_path / "sweep" / "sweep.json").read_text())["rows"]
    assert browser.run("document.querySelector('polyline').points.length") == len(rows) == 4
    heights = browser.run("[...document.querySelector('polyline').points].map((point) => point.y)")
    sizes = [row["values"]["encoded_bytes"] for row in rows]
    assert [sizes[at] for at in np.argsort(heights)[::-1]] == sorted(sizes)
    shown = browser.run("[...document.querySelectorAll('main table')].map((table) => table.innerText)")
    assert all(any("\t".join(row["shown"]) in text for text in shown) for row in rows)
    for row in read_data(copy_of_sample, "vocabulary")["by_source"]:
        figures = "\t".join(f"{row[key]:,}" for key in ("tokens", "used", "only"))
        assert any(f"{row['source']} {row['dataset']}\t{figures}" in text for text in shown)
    assert violations(browser) == []


def test_folder_without_a_sweep_is_refused(copy_of_sample: Path, tmp_path: Path) -> None:
    with pytest.raises(InputError, match="is no sweep: name the --output"):
        write_explorer(str(copy_of_sample), sweep=str(tmp_path))


def test_tables_of_the_report_are_shown(browser: Browser, copy_of_sample: Path) -> None:
    """Those that `finpile report OUT --quality` measures, with the figures of the files."""
    done = CliRunner().invoke(finpile, ["report", str(copy_of_sample), "--quality"], catch_exceptions=False)
    assert done.exit_code == 0
    write_explorer(str(copy_of_sample))
    browser.open(f"{(copy_of_sample / 'explorer' / 'index.html').as_uri()}#/tokenizer")
    browser.wait("document.querySelector('#text') !== null")
    rows = json.loads((copy_of_sample / "reports" / "tokenizer_quality.json").read_text())["rows"]
    shown = browser.run(
        "[...document.querySelectorAll('main table')].find((table) => table.textContent.includes('Tok/word')).innerText"
    )
    for row in rows:
        assert "\t".join(row["shown"]) in shown
