"""One grammar of the command line: OUT is first, `-o` is the place that is written, and a name has one meaning.

Texts that name a command or an option name one that exists.
"""

from __future__ import annotations

import re
import subprocess
from collections import defaultdict
from collections.abc import Iterator
from difflib import SequenceMatcher
from itertools import combinations
from pathlib import Path

import click
import pytest
from finpile_cli.main import _SECTIONS, finpile

from tests.support.command import leaves

ROOT = Path(__file__).resolve().parents[2]
#: Least similarity of two help texts of one option, in their first clauses.
_SIMILAR = 0.6
#: The sections of the help whose commands read or change a build.
_ABOUT_BUILDS = ("Inspect", "History")
#: Options that name a build beside that of the first argument, or of a command about a model.
_OTHER_BUILDS = {"--changes-from", "--contamination", "--tokenizer-of"}
#: Options of `dedup` about its input and about all its algorithms; each other one begins with that of its algorithm.
_OF_ALL_ALGORITHMS = {"--text-field", "--timestamp-field", "--date-format", "--order", "--annotate", "--takedowns-to"}
_ENGINE = {
    "--runner",
    "--workers",
    "--memory",
    "--shard-size",
    "--transport",
    "--fresh",
    "--replace",
    "--json",
    "--output",
}


COMMANDS = {" ".join(path): command for path, command in leaves(finpile)}
GROUPS = {name.split()[0] for name in COMMANDS if " " in name}


def _options() -> dict[str, dict[str, click.Option]]:
    """Each long name of an option: the commands that have it."""
    found: defaultdict[str, dict[str, click.Option]] = defaultdict(dict)
    for command, definition in COMMANDS.items():
        for parameter in definition.params:
            if isinstance(parameter, click.Option):
                for name in parameter.opts:
                    if name.startswith("--"):
                        found[name][command] = parameter
    return found


OPTIONS = _options()
SHARED = sorted(name for name, commands in OPTIONS.items() if len(commands) > 1)


def test_commands_are_those_of_the_sections() -> None:
    assert [name for commands in _SECTIONS.values() for name in commands] == list(COMMANDS)


def test_the_output_is_always_o_and_output() -> None:
    for command, definition in COMMANDS.items():
        for parameter in definition.params:
            if isinstance(parameter, click.Option) and ({"-o", "--output"} & set(parameter.opts)):
                assert parameter.opts == ["-o", "--output"], command
            else:
                assert not any(name.startswith("--out") for name in parameter.opts), command
                assert type(parameter.type).__name__ != "Output", (command, parameter.name)


def test_an_option_has_one_name() -> None:
    """No aliases: a long name, `--no-NAME` to turn it off, and the short ones `-o` and `-h` alone."""
    for command, definition in COMMANDS.items():
        for parameter in definition.params:
            if isinstance(parameter, click.Option):
                names = {*parameter.opts} - {"-o"}
                assert len(names) == 1, (command, names)
                assert set(parameter.secondary_opts) <= {f"--no-{name[2:]}" for name in names}, command


@pytest.mark.parametrize("command", COMMANDS)
def test_a_build_is_the_first_argument(command: str) -> None:
    arguments = [parameter for parameter in COMMANDS[command].params if isinstance(parameter, click.Argument)]
    names = [argument.human_readable_name for argument in arguments]
    is_about_builds = any(command in _SECTIONS[section] for section in _ABOUT_BUILDS)
    if is_about_builds or "OUT" in names:
        assert names[0] == "OUT"
        assert arguments[0].required
    for parameter in COMMANDS[command].params:
        if isinstance(parameter, click.Option) and (parameter.metavar or "").startswith("OUT"):
            assert parameter.opts[-1] in {"--output", *_OTHER_BUILDS}


def _kind(option: click.Option) -> tuple[str, bool]:
    """The type of the value, of which a path is a text: `NAME=PATH` names a tokenizer too."""
    is_text = isinstance(option.type, click.Path | click.types.StringParamType)
    return "text" if is_text else type(option.type).__name__, option.is_flag


def _gist(option: click.Option) -> str:
    """The first clause of the help."""
    return re.split(r"\s+\[|[,:;.]", option.help or "")[0].lower()


@pytest.mark.parametrize("name", SHARED)
def test_an_option_means_the_same_in_all_commands(name: str) -> None:
    for (one, first), (other, second) in combinations(OPTIONS[name].items(), 2):
        assert _kind(first) == _kind(second), (one, other)
        mine, theirs = _gist(first), _gist(second)
        similarity = SequenceMatcher(None, mine, theirs, autojunk=False).ratio()
        assert mine.split()[0] == theirs.split()[0], (one, first.help, other, second.help)
        assert similarity >= _SIMILAR or mine.split()[:2] == theirs.split()[:2], (one, first.help, other, second.help)


def test_limit_is_a_maximum_of_all_commands() -> None:
    assert len(OPTIONS["--limit"]) >= 5
    assert {(option.help or "")[:10] for option in OPTIONS["--limit"].values()} == {"At most N "}
    assert {option.metavar for option in OPTIONS["--limit"].values()} == {"N"}


def test_options_of_one_algorithm_begin_with_its_name() -> None:
    names = {name for name, commands in OPTIONS.items() if "dedup" in commands} - _OF_ALL_ALGORITHMS - _ENGINE
    assert all(re.match(r"--(exact|near|substring)(-|$)", name) for name in names)
    assert {"--near", "--near-numbers", "--substring-min-length", "--substring-tokenizer", "--exact-fold"} <= names


def test_words_that_have_another_one_are_no_options() -> None:
    others = (
        "--row",
        "--domain",
        "--group",
        "--held-out",
        "--out",
        "--to-format",
        "--kind",
        "--name",
        "--ids",
        "--max",
    )
    assert [name for name in OPTIONS if name in others] == []


# --- texts that name commands ----------------------------------------------------------------------------------------

_TEXTS = (
    "*.md",
    "*.py",
    "*.js",
    "*.yaml",
    "*.yml",
    "*.json",
    "*.html",
    "*.toml",
    "*.properties",
    "Makefile",
    "Dockerfile",
)
_CALL = re.compile(r"(?:^|[`\"'(:$>|&]|\\n|\bexec|\brun|-m)[ ]?finpile(?:_cli)? (?! )(?P<words>[^`\n|]*)", re.MULTILINE)
_WORD = re.compile(r"[a-z][a-z-]*$")
_OPTION = re.compile(r"(?<![\w-])--[a-z][a-z-]*")


def _files() -> list[Path]:
    listed = subprocess.run(["git", "ls-files", *_TEXTS], cwd=ROOT, capture_output=True, text=True, check=True)
    return [ROOT / name for name in listed.stdout.split() if "golden" not in name and "axe.min" not in name]


def _calls(text: str) -> Iterator[tuple[str, str]]:
    """The command of each place that names one, and what follows it; a command that is unknown is as it is written."""
    for found in _CALL.finditer(text):
        words = found["words"].split()
        if not words or not _WORD.match(first := words[0].strip(".,;:)\"'")):
            continue
        second = words[1].strip(".,;:)\"'") if len(words) > 1 else ""
        if first in GROUPS and _WORD.match(second):
            yield f"{first} {second}", found["words"]
        elif first in GROUPS:
            continue  # the group itself
        else:
            yield first, found["words"]


@pytest.mark.skipif(not (ROOT / ".git").exists(), reason="lists the files of a checkout")
def test_every_command_and_option_in_a_text_exists() -> None:
    dead = []
    num_calls = 0
    for file in _files():
        for command, words in _calls(file.read_text(encoding="utf-8", errors="replace")):
            num_calls += 1
            place = f"{file.relative_to(ROOT)}: finpile {words[:80]}"
            if command not in COMMANDS:
                dead.append(place)
                continue
            options = COMMANDS[command].params
            known = {name for option in options for name in (*option.opts, *option.secondary_opts)} | {"--help"}
            given = _OPTION.findall(re.split(r" -- |`|;", words)[0])
            dead += [f"{place} ({name})" for name in given if name not in known]
    assert dead == []
    assert num_calls > 300, "texts name commands in another form"
