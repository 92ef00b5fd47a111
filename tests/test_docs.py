"""The documentation is true: its commands and snippets run and print the shown output, and its links resolve."""

from __future__ import annotations

import dataclasses
import os
import re
import shlex
import shutil
import subprocess
import sys
import tempfile
import typing
from collections.abc import Iterator
from contextlib import redirect_stderr, redirect_stdout
from dataclasses import dataclass
from pathlib import Path

import click
import pyarrow.parquet as pq
import pytest
from apache_beam.options.pipeline_options import PipelineOptions
from finpile_cli import main as command_module
from finpile_cli.main import finpile

from finpile import __version__
from finpile.config import CorpusConfig, FilterConfig, load_config
from finpile.config.strict_yaml import settings
from finpile.plugins.engine import ENGINES
from finpile.plugins.filter import FILTERS
from finpile.plugins.format import FORMATS
from finpile.plugins.stages import ledger_stages
from finpile.report.summary import source_rows, total_row
from finpile.storage import read_json
from tests.support.archive_server import ArchiveServer
from tests.support.command import SoftExit
from tests.support.sample_archives import sample_files

ROOT = Path(__file__).resolve().parents[1]
README = (ROOT / "README.md").read_text()
PAGES = ["README.md", "CONTRIBUTING.md", "tokenizer/README.md", *sorted(p.name for p in (ROOT / "docs").glob("*.md"))]
PAGES = [page if (ROOT / page).exists() else f"docs/{page}" for page in PAGES]
_FENCE = re.compile(
    r"(<!-- not run: (?P<why>[^>]+) -->\n)?^```(?P<kind>\w+)\n(?P<body>.*?)^```$", re.DOTALL | re.MULTILINE
)
_LINK = re.compile(r"\]\((?!https?:|mailto:)([^)#]+)(?:#[^)]*)?\)")
_PROGRESS = re.compile(r"\w+ \d+ % |\w+: [\d.]+ \w+, [\d.]+ \w+/s$")
_SECONDS = 240


# --- running what the pages show -------------------------------------------------------------------------------------


@dataclass(frozen=True)
class Step:
    """A command or script of a page, and the output that the page shows for it; None where it shows none."""

    command: list[str]
    expected: str | None = None


#: Ends a snippet that has run to its end. Threads of Arrow that scanned a dataset may still run when the interpreter is
#: taken down, which aborts it now and then: https://github.com/apache/arrow/issues/39862
_END = """
import atexit, os, sys
atexit._run_exitfuncs()
sys.stdout.flush()
os._exit(0)
"""


def steps(page: str) -> Iterator[Step]:
    for fence in _FENCE.finditer((ROOT / page).read_text()):
        kind, body = fence["kind"], fence["body"]
        if fence["why"]:
            continue
        if kind == "console":
            for entry in re.split(r"^\$ ", body, flags=re.MULTILINE)[1:]:
                command, _, expected = entry.partition("\n")
                yield Step(["bash", "-c", command], expected)
        elif kind == "bash":
            yield Step(["bash", "-euo", "pipefail", "-c", body])
        elif kind == "python":
            yield Step([sys.executable, "-c", body + _END])


@pytest.fixture(scope="module")
def workplace(sample_build: Path, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A copy of what the pages' commands read, with the sample already built."""
    place = tmp_path_factory.mktemp("docs")
    for folder in ("data_samples", "pipelines/configs"):
        shutil.copytree(
            ROOT / folder, place / folder
        )  # times of files are copied too: a build knows its inputs by them
    shutil.copytree(sample_build, place / "out" / "sample")
    shim = place / "bin" / "finpile"
    shim.parent.mkdir()
    shim.write_text(f'#!/bin/sh\nexec {sys.executable} -m finpile_cli "$@"\n')
    shim.chmod(0o755)
    return place


@pytest.fixture(scope="module")
def publishers() -> Iterator[dict[str, str]]:
    """Variables that name a local server in place of those of EDGAR, Common Crawl and Wikipedia."""
    with ArchiveServer(sample_files()) as server:
        yield {f"FINPILE_{name}_SERVER": server.url for name in ("EDGAR", "COMMONCRAWL", "WIKIPEDIA")}


def arguments_of(step: Step) -> list[str]:
    """The arguments of a step that is one `finpile` command and needs no shell; of others none."""
    *shell, command = step.command
    words = shlex.split(command) if shell == ["bash", "-c"] and not re.search(r"[|&;<>$`*\n]", command) else []
    return words[1:] if words[:1] == ["finpile"] else []


#: Commands of `finpile` that have run as processes of their own. A start takes longer than most commands, so that they
#: run in this process from then on.
_STARTED: set[tuple[str, ...]] = set()


def run_here(arguments: list[str], place: Path, variables: dict[str, str]) -> subprocess.CompletedProcess[str]:
    with tempfile.TemporaryFile("w+", encoding="utf-8") as output, pytest.MonkeyPatch.context() as patch:
        patch.chdir(place)
        for name, value in variables.items():
            patch.setenv(name, value)
        patch.setattr(sys, "argv", ["finpile", *arguments])
        patch.setattr(command_module, "os", SoftExit())
        with redirect_stdout(output), redirect_stderr(output), pytest.raises(SystemExit) as end:
            command_module.main()
        output.seek(0)
        assert isinstance(end.value.code, int)
        return subprocess.CompletedProcess(arguments, end.value.code, output.read())


def run(step: Step, place: Path, variables: dict[str, str]) -> subprocess.CompletedProcess[str]:
    if arguments := arguments_of(step):
        name = tuple(arguments[: 1 + bool(commands()[arguments[0]])])
        if name in _STARTED:
            return run_here(arguments, place, variables)
        _STARTED.add(name)
    environment = {
        **os.environ,
        **variables,
        "PATH": f"{place / 'bin'}:{os.environ['PATH']}",
        "PYTHONPATH": ":".join(str(ROOT / folder) for folder in ("", "pipelines", "tokenizer", "cli", "trainer")),
    }
    return subprocess.run(
        step.command,
        cwd=place,
        env=environment,
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        text=True,
        timeout=_SECONDS,
        check=False,
    )


def shown(expected: str) -> re.Pattern[str]:
    """Matches what a page shows: a line `...` matches any lines, `...` in a line any text, blanks match blanks."""
    lines = [" ".join(line.split()) for line in expected.strip().splitlines()]
    parts = [
        r"(?:.*\n)*" if line == "..." else re.escape(line).replace(r"\.\.\.", ".*") + r"\n" for line in lines if line
    ]
    return re.compile("".join(parts))


def printed(output: str) -> str:
    """The output without blank lines and the lines of progress that a command prints every few seconds."""
    lines = (" ".join(line.split()) for line in output.splitlines())
    return "".join(f"{line}\n" for line in lines if line and not _PROGRESS.match(line))


@pytest.mark.parametrize("page", PAGES)
def test_commands_and_snippets_print_the_shown_output(workplace: Path, publishers: dict[str, str], page: str) -> None:
    if page == "docs/guide-training.md":
        pytest.importorskip("torch")
    for step in steps(page):
        done = run(step, workplace, publishers)
        source = step.command[-1]
        is_error = (step.expected or "").startswith("finpile: ")
        assert done.returncode == (2 if is_error else 0), f"{page}: {source}\n{done.stdout}"
        if step.expected is not None:
            assert shown(step.expected).fullmatch(printed(done.stdout)), f"{page}: {source}\nprints\n{done.stdout}"


def test_most_commands_of_the_pages_are_run() -> None:
    assert sum(1 for page in PAGES for _ in steps(page)) >= 15


def test_lines_of_progress_are_not_compared() -> None:
    assert printed("  select          0 %  5 s, 243.3 MB in memory\n\nkept   3\n") == "kept 3\n"


def test_shown_output_must_match() -> None:
    assert shown("a  b\n...\nlast ...").fullmatch(printed("a b\nx\ny\nlast one\n"))
    assert not shown("a  b\n...\nlast ...").fullmatch(printed("a b\nx\ny\n"))
    assert not shown("a 1").fullmatch(printed("a 2\n"))


# --- figures of the README -------------------------------------------------------------------------------------------


def test_readme_shows_the_counts_of_the_sample_build(sample_build: Path) -> None:
    names = ("dataset", "source")
    counts = ("read", "unreadable", "cleaned_out", "exact", "near", "train", "held_out", "removed_bytes", "tokens")
    counts += ("undated", "unreadable_dates")
    rows = source_rows(read_json(str(sample_build / "manifest.json")))
    counted = [(*(row[name] for name in names), *(f"{row[name]:,}" for name in counts)) for row in rows]
    total = total_row(rows)
    counted.append((total["dataset"], *(f"{total[name]:,}" for name in counts)))
    lines = [
        tuple(re.split(r"\s{2,}", line.strip())) for line in README.splitlines() if re.search(r"(\s+[\d,]+){11}$", line)
    ]
    assert lines == counted


def test_readme_shows_table_1_of_the_sample_build(sample_build: Path) -> None:
    built = [line for line in (sample_build / "reports" / "table1.md").read_text().splitlines() if line.startswith("|")]
    readme = [line for line in README.splitlines() if line.startswith(("| Dataset", "| **", "| &nbsp;"))]
    # Documents and characters; tokens depend on the last bits of logarithms, which are the system's.
    pick = [[cell.strip() for cell in line.split("|")][1:5] for line in built if not line.startswith("| :--")]
    assert sorted([cell.strip() for cell in line.split("|")][1:5] for line in readme) == sorted(pick)


def test_readme_describes_the_sample(sample_build: Path) -> None:
    formats = {source.format for source in load_config(ROOT / "pipelines" / "configs" / "sample.yaml").sources}
    stages = {stage["stage"]: stage["counts"] for stage in read_json(str(sample_build / "manifest.json"))["stages"]}
    text_bytes = sum(source["text_bytes"] for source in stages["clean"]["sources"])
    expected = f"{text_bytes / 1e6:.1f} MB of text in {len(formats)} of the {len(FORMATS.built_in)} formats"
    assert expected in README


def test_stages_are_those_of_the_code() -> None:
    """In the table of the README, in the figure, and in its description."""
    names = [*ledger_stages(), "split"]
    table = README[README.index("| stage | removes |") :].partition("\n\n")[0]
    assert re.findall(r"^\| `(\w+)` \|", table, re.MULTILINE) == names[:-1]
    figure = (ROOT / "docs" / "images" / "data-flow.svg").read_text()
    assert [name for name in re.findall(r'class="b"[^>]*>(\w+)<', figure) if name in names] == names
    listed = f"{', '.join(names[:-1])} and split"
    assert f"pass {listed};" in README and f"stages {listed}." in figure


def test_precision_and_recall_are_those_of_the_results() -> None:
    page = (ROOT / "benchmarks" / "results" / "2026-11-24_order_truth.md").read_text()
    measured = {
        (near, numbers): (f"{float(precision):.3f}", f"{float(recall):.3f}")
        for near, numbers, precision, recall in re.findall(
            r"^\| mix \| (\w+), numbers: (\w+) \|.*\| ([\d.]+) \| ([\d.]+) \|$", page, re.MULTILINE
        )
    }
    assert len(measured) == 4
    guide = (ROOT / "docs" / "guide-deduplication.md").read_text()
    corpus = (ROOT / "docs" / "guide-your-own-corpus.md").read_text()
    for (near, numbers), figures in measured.items():
        precision, recall = (figure.removeprefix("0") for figure in figures)
        row = rf"^\| `{near}` \| `{numbers}` \|.*\| {re.escape(precision)} \| {re.escape(recall)} \|$"
        assert re.search(row, guide, re.MULTILINE)
        setting = rf"`{near}`(, the default[^|]*)?" + (r" with `numbers: any`" if numbers == "any" else "")
        assert re.search(rf"^\| {setting} \| {re.escape(precision)} \| {re.escape(recall)} \|$", README, re.MULTILINE)
        assert recall in corpus


# --- commands, keys, versions ----------------------------------------------------------------------------------------


def commands() -> dict[str, list[str]]:
    """Every command, and the commands below it."""
    context = click.Context(finpile)
    found = {name: finpile.get_command(context, name) for name in finpile.list_commands(context)}
    return {
        name: command.list_commands(context) if isinstance(command, click.Group) else []
        for name, command in found.items()
    }


def test_readme_names_every_command_and_no_other() -> None:
    table = README[README.rindex("| command | does |") :]
    for name, below in commands().items():
        assert f"`finpile {name} " in table
        for command in below:
            assert f"`{command}`" in table or re.search(f"`finpile {name} {command}[ `]", table)
    texts = [README, *((ROOT / page).read_text() for page in PAGES)]
    quoted = re.compile(r"(?:`|^\$ |\| )finpile ([a-z]+(?:-[a-z]+)*)", re.MULTILINE)
    assert {word for text in texts for word in quoted.findall(text)} == set(commands())


def keys(kind: type) -> Iterator[str]:
    """Every key of a configuration and of the mappings in it; a filter is a name or a mapping of that name."""
    hints = typing.get_type_hints(kind)
    for entry in settings(kind):
        yield entry.name
        options = [hints[entry.name]]
        for option in options:
            options += typing.get_args(option)
            if isinstance(option, type) and dataclasses.is_dataclass(option) and option is not FilterConfig:
                yield from keys(option)


def test_reference_has_every_key_of_a_corpus_file() -> None:
    guide = (ROOT / "docs" / "guide-your-own-corpus.md").read_text()
    reference = guide.partition("<!-- reference: begin -->")[2].partition("<!-- reference: end -->")[0]
    rows = re.findall(r"^\| `(\w+)` \|", reference, re.MULTILINE)
    parameters = [name for found in FILTERS.built_in for name in keys(FILTERS.get(found).parameters)]
    assert sorted(rows) == sorted([*keys(CorpusConfig), *parameters])


def test_changelog_begins_with_the_version() -> None:
    versions = re.findall(r"^## \[([^\]]+)\]", (ROOT / "CHANGELOG.md").read_text(), re.MULTILINE)
    assert versions[0] == __version__


def test_map_has_every_folder() -> None:
    drawn = set(re.findall(r"^([a-z_]+)/\s", README[README.index("## Map") :], re.MULTILINE))
    hidden_or_made = {"data", "out", "work", "dist", "site"}
    there = {path.name for path in ROOT.iterdir() if path.is_dir() and path.name[0] not in "._"} - hidden_or_made
    assert drawn == there


def test_pages_speak_of_the_project_in_its_own_terms() -> None:
    """No working names, and no paths of the machine on which a page was written."""
    words = re.compile(
        r"\brooms\b|\bcarriers?\b|\bin (its|their) stead\b|\btwins?\b|\.\./shared|(?<![\w.])/(work|tmp)/", re.I
    )
    pages = [*markdown(), *sorted((ROOT / "benchmarks" / "results").glob("*.md"))]
    found = [(page.relative_to(ROOT), match[0]) for page in pages for match in words.finditer(page.read_text())]
    assert found == []


# --- links and decisions ---------------------------------------------------------------------------------------------


def markdown() -> list[Path]:
    folders = ("", "benchmarks", "docs", "docs/decisions", "pipelines/runners", "tokenizer", "data_samples")
    return [path for folder in folders for path in sorted((ROOT / folder).glob("*.md"))]


def test_links_lead_to_files() -> None:
    links = [(page, link) for page in markdown() for link in _LINK.findall(page.read_text())]
    assert len(links) > 20
    assert [f"{page.relative_to(ROOT)}: {link}" for page, link in links if not (page.parent / link).exists()] == []


def test_benchmarks_lists_each_page_of_results_and_commands_that_exist() -> None:
    folder = ROOT / "benchmarks"
    index = (folder / "README.md").read_text()
    listed = set(re.findall(r"\(results/(\S+?\.md)\)", index))
    assert listed == {path.name for path in (folder / "results").glob("*.md")}
    modules = re.findall(r"`(benchmarks\.[a-z0-9_.]+)", index)
    assert len(modules) > 40
    missing = [name for name in modules if not (ROOT / f"{name.replace('.', '/')}.py").is_file()]
    assert [name for name in missing if not (ROOT / name.replace(".", "/") / "__main__.py").is_file()] == []


def test_decisions_are_numbered_listed_and_have_three_parts() -> None:
    folder = ROOT / "docs" / "decisions"
    pages = sorted(path for path in folder.glob("*.md") if path.name != "README.md")
    assert [int(path.name[:4]) for path in pages] == list(range(1, len(pages) + 1))
    listed = re.findall(
        r"^\d+\. \[(.+?)\]\((\S+?)\)(?: \((?:in part )?replaced by \d+(?: and \d+)?\))?$",
        (folder / "README.md").read_text(),
        re.MULTILINE,
    )
    assert [name for _, name in listed] == [path.name for path in pages]
    for path, (title, _) in zip(pages, listed, strict=True):
        text = path.read_text()
        assert text.startswith(f"# {int(path.name[:4])}. {title}\n")
        parts = [text.index(f"**{part}.**") for part in ("Context", "Decision", "Consequences")]
        assert parts == sorted(parts)


def test_code_cites_decisions_that_exist() -> None:
    folders = ("finpile", "pipelines", "cli", "tokenizer", "schemas", "benchmarks")
    cited = {
        (str(path.relative_to(ROOT)), name)
        for folder in folders
        for path in (ROOT / folder).rglob("*.py")
        for name in re.findall(r"docs/decisions/(\S+?\.md)", path.read_text())
    }
    assert cited
    assert [(path, name) for path, name in sorted(cited) if not (ROOT / "docs/decisions" / name).is_file()] == []


# --- engines ---------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("runner", ENGINES.built_in)
def test_option_files_hold_options_that_beam_knows(runner: str, caplog: pytest.LogCaptureFixture) -> None:
    folder = ROOT / "pipelines" / "runners"
    assert f"({runner}.args)" in (folder / f"{runner}.md").read_text()
    options = [line for line in (folder / f"{runner}.args").read_text().splitlines() if not line.startswith("#")]
    known = PipelineOptions(options).get_all_options(drop_default=True)
    assert sorted(known) == sorted(option[2:].partition("=")[0] for option in options)
    assert "Discarding" not in caplog.text


def test_worker_image_fits_the_package() -> None:
    lines = (ROOT / "Dockerfile").read_text()
    (beam,) = re.findall(r"^apache-beam==(.+)$", (ROOT / "constraints.txt").read_text(), re.MULTILINE)
    assert f"ARG BEAM_VERSION={beam}" in lines
    bases = re.findall(r"^ARG (\w+)=(\S+)", lines[: lines.index("FROM")], re.MULTILINE)
    assert dict(bases)["BASE"] == "docker.io/apache/beam_python3.11_sdk:${BEAM_VERSION}"
    assert set(re.findall(r"^FROM (\S+)", lines, re.MULTILINE)) == {"${BASE}", "${LAUNCHER}", "worker"}
    for sources in re.findall(r"^COPY (?!--from)(.+) \S+$", lines, re.MULTILINE):
        assert [source for source in sources.split() if not (ROOT / source).exists()] == []
    order = ["USER ${RUN_AS}", "module.compile_kernels() for module in", 'ENTRYPOINT ["/opt/apache/beam/boot"]']
    places = [lines.index(part) for part in order]
    assert places == sorted(places)
    assert "NUMBA_CPU_NAME=generic" in lines[: places[1]]


def test_documents_of_the_guides_are_in_the_sample(sample_build: Path) -> None:
    named = {
        word
        for page in PAGES
        for word in re.findall(r"finpile show out/sample ([0-9a-f]{4,})\s", (ROOT / page).read_text())
    }
    ids = [
        identifier
        for folder in ("documents", "removed")
        for file in (sample_build / folder).rglob("*.parquet")
        for identifier in pq.read_table(file, columns=["id"])["id"].to_pylist()
    ]
    assert named
    assert all(len({found for found in ids if found.startswith(prefix)}) == 1 for prefix in named)
