"""The rules of Gopher and FineWeb: against slow references, and each threshold just below, at and just above it."""

from __future__ import annotations

import re
import unicodedata
from collections import Counter
from collections.abc import Iterator
from typing import Any

import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st

from finpile.clean.filters import fineweb, gopher_quality, gopher_repetition
from finpile.clean.filters.fineweb import FinewebParameters
from finpile.clean.filters.gopher_quality import GopherQualityParameters
from finpile.clean.filters.gopher_repetition import GopherRepetitionParameters
from finpile.clean.words.words import Grams, classes, words_of
from finpile.errors import ConfigError
from finpile.plugins.filter import FILTERS, Rejection

# --- references: the tables of the modules, word by word ----------------------------------------------------------


def is_word(character: str) -> bool:
    return unicodedata.category(character)[0] in "LNM"


def reference_words(text: str) -> list[str]:
    return [word for run in text.split() for word in words_of_run(run)]


def words_of_run(run: str) -> Iterator[str]:
    inside = [at for at, character in enumerate(run) if is_word(character)]
    if not inside:
        yield from signs(run)
        return
    first, last = inside[0], inside[-1] + 1
    initial = last - first == 1 or run[last - 2] == "."
    if initial and run[last - 1].isalpha() and run[last:].startswith(".") and not run[last:].startswith(".."):
        last += 1
    yield from signs(run[:first])
    middle = run[first:last]
    if "@" in middle or "://" in middle or re.match(r"www\..", middle):
        yield middle
    else:
        end = re.search(r"(?:(?<=.)['\u2019](?:[sdm]|ll|re|ve)|(?<=..)n['\u2019]t)\Z", middle, re.I | re.A | re.DOTALL)
        body, contraction = (middle[: end.start()], end[0]) if end else (middle, "")
        yield from divided(body, contraction)
    yield from signs(run[last:])


def signs(text: str) -> list[str]:
    return re.findall(r"\.+|-+|[^.-]", text, re.DOTALL)


def divided(body: str, contraction: str) -> Iterator[str]:
    whole, start = body + contraction, 0
    for sign in re.finditer(r"\.+|-+|[^.-]", body, re.DOTALL):
        if sign.start() > 0 and sign.end() < len(whole) and sign.end() <= len(body):
            before, after = whole[sign.start() - 1], whole[sign.end()]
            if not is_word(sign[0][0]) and divides(sign[0], before, after):
                yield body[start : sign.start()]
                yield sign[0]
                start = sign.end()
    if body[start:]:
        yield body[start:]
    if contraction:
        yield contraction


def divides(sign: str, before: str, after: str) -> bool:
    kinds = unicodedata.category(before), unicodedata.category(after)
    if sign == ".":
        return kinds[0] == "Ll" and kinds[1] in ("Lu", "Lt")
    if sign[0] in ".-\u2026\u2013\u2014~":
        return is_word(before) and is_word(after)
    if sign == ",":
        return kinds[0][0] == kinds[1][0] == "L"
    return sign in ":/<=>" and is_word(before) and kinds[1][0] == "L"


def reference_quality(text: str) -> str | None:
    words = reference_words(text)
    proper = [word for word in words if any(map(is_word, word))]
    lines = text.splitlines()
    if len(proper) < 50:
        return "gopher_short_document"
    if len(proper) > 100_000:
        return "gopher_long_document"
    if not 3 <= sum(map(len, proper)) / len(proper) <= 10:
        return "gopher_mean_word_length"
    if text.count("#") / len(words) > 0.1:
        return "gopher_hashes"
    if (text.count("...") + text.count("\u2026")) / len(words) > 0.1:
        return "gopher_ellipses"
    if sum(line.strip().startswith(("\u2022", "-")) for line in lines) / len(lines) > 0.9:
        return "gopher_bullet_lines"
    if sum(line.strip().endswith(("...", "\u2026")) for line in lines) / len(lines) > 0.3:
        return "gopher_ellipsis_lines"
    if sum(any(map(str.isalpha, word)) for word in words) / len(words) < 0.8:
        return "gopher_alphabetic_words"
    if len({"the", "be", "to", "of", "and", "that", "have", "with"} & set(words)) < 2:
        return "gopher_stop_words"
    return None


def repeats(parts: list[str]) -> tuple[int, int]:
    again = [part for index, part in enumerate(parts) if part in parts[:index]]
    return len(again), sum(map(len, again))


def reference_repetition(text: str) -> str | None:
    for kind, parts in (("paragraph", re.split(r"\n{2,}", text.strip())), ("line", re.split(r"\n+", text))):
        num_parts, num_chars = repeats(parts)
        if num_parts / len(parts) > 0.3:
            return f"gopher_repeated_{kind}s"
        if num_chars / len(text) > 0.2:
            return f"gopher_repeated_{kind}_text"
    words = reference_words(text)
    for n, most in ((2, 0.2), (3, 0.18), (4, 0.16)):
        grams = Counter(tuple(words[at : at + n]) for at in range(len(words) - n + 1))
        if grams:
            gram, count = grams.most_common(1)[0]
            if len(" ".join(gram)) * count / len(text) > most:
                return f"gopher_top_{n}_gram"
    for n, most in zip(range(5, 11), (0.15, 0.14, 0.13, 0.12, 0.11, 0.1), strict=True):
        seen, at, chars = set(), 0, 0
        while at + n <= len(words):
            gram = tuple(words[at : at + n])
            chars += len("".join(gram)) * (gram in seen)
            at += n if gram in seen else 1
            seen.add(gram)
        if chars / len(text) > most:
            return f"gopher_repeated_{n}_grams"
    return None


def reference_fineweb(text: str) -> str | None:
    lines = [line for line in text.split("\n") if line.strip()]
    if not lines:
        return "fineweb_line_ends"
    if sum(line[-1] in ".?!\u3002" for line in lines) / len(lines) < 0.12:
        return "fineweb_line_ends"
    if sum(len(line) <= 30 for line in lines) / len(lines) > 0.67:
        return "fineweb_short_lines"
    if repeats(lines)[1] / len(text.replace("\n", "")) > 0.01:
        return "fineweb_repeated_lines"
    if text.count("\n") / len(reference_words(text)) > 0.3:
        return "fineweb_line_per_word"
    return None


# --- the kernels agree with them -----------------------------------------------------------------------------------

SAMPLES = (
    "the", "be", "and", "Acme's", "don\u2019t", "U.S.", "J.", "well-known", "a--b", "5.3%", "$12", "(of", "it)", "...",
    "end.Start", "a,b", "1,000", "a:b", "5:6", "x/y", "1/2", "http://a-b.c/d", "www.a-b", "x@y-z", "#", "#tag",
    "na\u00efve", "e\u0301", "\u3053\u3093", "\u2022", "-", "--", "n't", "'s", "rock'n'roll", "U.S.'s", "we'll.",
    "\u2026", "\U0001f600",
)  # fmt: skip
SPACES = st.sampled_from([" ", " ", " ", "\n", "\n\n", "\t", "\u00a0", "\u2028", "\r\n", "\n\n\n"])
RUNS = st.text(alphabet="aB1.,-':/\u2019\u2026#@w s\u0301", max_size=12)
TEXTS = st.lists(st.tuples(st.sampled_from(SAMPLES) | RUNS, SPACES), max_size=40).map(
    lambda pairs: "".join(word + space for word, space in pairs)
)


@settings(max_examples=60)
@given(TEXTS)
@example("a'n't x'd' ...a.. --a--b- A.B.C.. 'S.' www.")
def test_words_equal_those_of_the_reference(text: str) -> None:
    assert words_of(text) == reference_words(text)


def test_every_character_outside_of_white_space_is_in_one_word() -> None:
    text = "".join(map(chr, [*range(0xD800), *range(0xE000, 0x40100)]))
    assert "".join(words_of(text)) == "".join(text.split())


@settings(max_examples=60)
@given(TEXTS, st.integers(2, 6))
def test_bounds_are_not_below_what_they_bound(text: str, n: int) -> None:
    grams = Grams(text * 2)
    grams.top_chars(max(1, n - 1))
    assert grams.top_bound(n) >= grams.top_chars(n)
    assert grams.covered_chars(n) >= max(map(grams.repeated_chars, range(n, n + 3)))


def test_character_classes_equal_those_of_python() -> None:
    for code in range(0, 0x30000, 7):
        bits = int(classes()[code])
        assert bool(bits & 1) == chr(code).isspace()
        assert bool(bits & 2) == chr(code).isalpha()


def reason(found: Any) -> str | None:
    return found.reason if isinstance(found, Rejection) else None


LONG = st.tuples(st.lists(TEXTS, min_size=1, max_size=3), st.integers(1, 8)).map(
    lambda made: " ".join(made[0]) * made[1]
)


@settings(max_examples=40)
@given(LONG)
def test_decisions_equal_those_of_the_references(text: str) -> None:
    if text.strip():
        assert reason(gopher_quality.apply(text)) == reference_quality(text)
        assert reason(gopher_repetition.apply(text)) == reference_repetition(text)
        assert reason(fineweb.apply(text)) == reference_fineweb(text)


# --- each threshold ------------------------------------------------------------------------------------------------

#: 100 different words of 5 letters, two of them stop words of 4.
PROSE = ["that", "have", *(f"w{chr(97 + n // 26)}{chr(97 + n % 26)}ly" for n in range(98))]


def prose(num_words: int) -> str:
    return " ".join((PROSE * (1 + num_words // 100))[:num_words])


def lines_with(mark: str, num_marked: int, num_lines: int, *, at_end: bool = False) -> str:
    plain = [" ".join(PROSE[:12]) for _ in range(num_lines)]
    marked = [f"{line} {mark}" if at_end else f"{mark} {line}" for line in plain]
    return "\n".join(marked[:num_marked] + plain[num_marked:])


def mean_length(letters: int) -> str:
    """100 words with `letters` letters in all, stop words included."""
    return " ".join(
        ["that", "have", *["x" * ((letters - 8) // 98)] * 97, "x" * (letters - 8 - (letters - 8) // 98 * 97)]
    )


@pytest.mark.parametrize(
    ("rule", "kept", "removed"),
    [
        ("gopher_short_document", [prose(50), prose(51)], [prose(49), prose(49) + " , . -"]),
        ("gopher_long_document", [prose(99_999), prose(100_000)], [prose(100_001)]),
        ("gopher_mean_word_length", [mean_length(300), mean_length(301)], [mean_length(299)]),
        ("gopher_mean_word_length", [mean_length(999), mean_length(1000)], [mean_length(1001)]),
        ("gopher_hashes", [prose(90) + " #" * 9, prose(90) + " #" * 10], [prose(90) + " #" * 11]),
        (
            "gopher_ellipses",
            [prose(90) + " \u2026" * 9 + " x", prose(89) + " ..." * 10 + " x"],
            [prose(88) + " \u2026" * 11 + " x"],
        ),
        ("gopher_bullet_lines", [lines_with("-", 8, 10), lines_with("\u2022", 9, 10)], [lines_with("-", 10, 10)]),
        (
            "gopher_ellipsis_lines",
            [lines_with("...", 2, 10, at_end=True), lines_with("\u2026", 3, 10, at_end=True)],
            [lines_with("...", 4, 10, at_end=True)],
        ),
        ("gopher_alphabetic_words", [prose(81) + " 1234" * 19, prose(80) + " 1234" * 20], [prose(79) + " 1234" * 21]),
        ("gopher_stop_words", [prose(60), prose(60) + " the"], [prose(60).replace("have ", "gave ")]),
    ],
)
def test_gopher_quality_at_its_thresholds(rule: str, kept: list[str], removed: list[str]) -> None:
    assert [reason(gopher_quality.apply(text)) for text in kept] == [None] * len(kept)
    assert [reason(gopher_quality.apply(text)) for text in removed] == [rule] * len(removed)


def only(parameters: type[Any], **settings: Any) -> Any:
    """Parameters with one rule on."""
    names = {name: None for name in parameters.__dataclass_fields__ if name.startswith(("max_", "min_"))}
    return parameters(**{**names, **settings})


def distinct(num_parts: int, num_repeated: int, separator: str) -> str:
    """Parts of equal length, some of which repeat the first."""
    parts = [f"{index:04}" for index in range(num_parts - num_repeated)]
    return separator.join(parts + parts[:1] * num_repeated)


@pytest.mark.parametrize(("rule", "separator"), [("repeated_paragraphs", "\n\n"), ("repeated_lines", "\n")])
def test_repeated_parts_at_their_threshold(rule: str, separator: str) -> None:
    parameters = only(GopherRepetitionParameters, **{f"max_{rule}": 0.3})
    found = [reason(gopher_repetition.apply(distinct(10, n, separator), parameters)) for n in (2, 3, 4)]
    assert found == [None, None, f"gopher_{rule}"]


@pytest.mark.parametrize(("rule", "separator"), [("repeated_paragraph_text", "\n\n"), ("repeated_line_text", "\n")])
def test_repeated_text_at_its_threshold(rule: str, separator: str) -> None:
    parameters = only(GopherRepetitionParameters, **{f"max_{rule}": 0.2})
    for filler, expected in ((21, None), (20, None), (19, f"gopher_{rule}")):  # 10 of 50 characters are repeated
        text = separator.join(["x" * 10, "x" * 10, "y" * (30 + filler - 20 - 2 * len(separator))])
        assert len(text) == 30 + filler
        assert reason(gopher_repetition.apply(text, parameters)) == expected


@pytest.mark.parametrize(("n", "most"), [(2, 0.2), (3, 0.18), (4, 0.16)])
def test_top_grams_at_their_threshold(n: int, most: float) -> None:
    parameters = only(GopherRepetitionParameters, **{f"max_top_{n}_gram": most})
    gram = " ".join(["x" * (27 if n == 2 else 16 if n == 3 else 11)] + ["y" * 8] * (n - 1))  # 36, 34, 38 characters
    length = round(2 * len(gram) / most * 100) / 100
    for size in (int(length) + 1, int(length), int(length) - 1):
        words = [f"{index:05}" for index in range(size)]
        text = f"{gram} {gram} {' '.join(words)}"[:size]
        expected = f"gopher_top_{n}_gram" if 2 * len(gram) / size > most else None
        assert reason(gopher_repetition.apply(text, parameters)) == expected
    assert 2 * len(gram) / (int(length) - 1) > most >= 2 * len(gram) / (int(length) + 1)


@pytest.mark.parametrize(("n", "most"), list(zip(range(5, 11), (0.15, 0.14, 0.13, 0.12, 0.11, 0.1), strict=True)))
def test_repeated_grams_at_their_threshold(n: int, most: float) -> None:
    parameters = only(GopherRepetitionParameters, **{f"max_repeated_{n}_grams": most})
    percent = round(most * 100)
    run = " ".join(["x" * (percent * 10 - n + 1), *(f"{chr(97 + index)}" for index in range(n - 1))])  # 10 per percent
    again = percent * 10
    assert len(run.replace(" ", "")) == again
    for size, expected in ((1001, None), (1000, None), (999, f"gopher_repeated_{n}_grams")):
        rest = " ".join(f"{index:04}" for index in range(size))
        text = f"{run} {run} {rest}"[:size]
        assert reason(gopher_repetition.apply(text, parameters)) == expected


def web(num_lines: int, *, full: int = 0, short: int = 0) -> str:
    """Lines of 40 characters, of which some end as a sentence does and some are short."""
    lines = [f"{index:05} " + "word " * 6 + ("ends." if index < full else "endsx") for index in range(num_lines)]
    return "\n".join([line[:30] if index >= num_lines - short else line for index, line in enumerate(lines)])


def test_fineweb_at_its_thresholds() -> None:
    ends = only(FinewebParameters, min_line_ends=0.12)
    assert [reason(fineweb.apply(web(100, full=n), ends)) for n in (13, 12, 11)] == [None, None, "fineweb_line_ends"]
    short = only(FinewebParameters, max_short_lines=0.67)
    found = [reason(fineweb.apply(web(100, short=n), short)) for n in (66, 67, 68)]
    assert found == [None, None, "fineweb_short_lines"]
    again = only(FinewebParameters, max_repeated_lines=0.01)
    found = [reason(fineweb.apply("\n".join(["x" * 5, "x" * 5, "y" * size]), again)) for size in (491, 490, 489)]
    assert found == [None, None, "fineweb_repeated_lines"]
    per_word = only(FinewebParameters, max_line_per_word=0.3)
    words = [f"w{index}" for index in range(10)]
    texts = ["\n".join([*words[:n], " ".join(words[n:])]) for n in (2, 3, 4)]
    assert [reason(fineweb.apply(text, per_word)) for text in texts] == [None, None, "fineweb_line_per_word"]


def test_short_line_has_up_to_30_characters() -> None:
    parameters = only(FinewebParameters, max_short_lines=0.0)
    assert reason(fineweb.apply("x" * 31, parameters)) is None
    assert reason(fineweb.apply("x" * 30, parameters)) == "fineweb_short_lines"


def test_details_have_the_measured_value_and_the_bound() -> None:
    assert gopher_quality.apply("two words") == Rejection("gopher_short_document", "2 words < 50")
    assert fineweb.apply("no sentence\nends here") == Rejection("fineweb_line_ends", "0 of lines < 0.12")
    assert fineweb.apply(" \n\u2003\n") == Rejection("fineweb_line_ends", "0 of lines < 0.12")


@pytest.mark.parametrize("name", ["gopher_quality", "gopher_repetition", "fineweb"])
def test_rules_can_be_turned_off_and_no_bound_is_negative(name: str) -> None:
    rules = FILTERS.get(name)
    assert rules.apply("\u00a0", only(rules.parameters)) == []
    assert rules.apply("- a\n" * 20, only(rules.parameters)) == []
    bound = next(iter(rules.parameters.__dataclass_fields__))
    for value in (-1, float("nan")):
        with pytest.raises(ConfigError, match=f"{bound} is .*: expected at least 0, or null for no bound"):
            rules.parameters(**{bound: value})


def test_measuring_takes_linear_time() -> None:
    """The counting tests above bound the steps; these texts would take hours if a run were read once per sign."""
    for text in ("x" * 170_000, "'" * 170_000, "a-" * 85_000, "a.b@" * 40_000, "\n" * 170_000 + "x", "... " * 42_500):
        assert sum(map(len, words_of(text))) == len("".join(text.split()))
        assert isinstance(gopher_quality.apply(text), Rejection)


def test_parameters_of_stop_words() -> None:
    german = GopherQualityParameters(stop_words=("der", "und"), min_words=1, min_mean_word_length=1)
    assert reason(gopher_quality.apply("der Hund und die Katze", german)) is None
    assert reason(gopher_quality.apply("Der Hund, und die Katze", german)) == "gopher_stop_words"


def test_white_space_is_a_short_document() -> None:
    """As for datatrove, in which the rule on the number of words comes first."""
    assert gopher_quality.apply(" \n") == Rejection("gopher_short_document", "0 words < 50")
    assert gopher_quality.apply(" \n", GopherQualityParameters(min_words=None)) == []
