"""Writes the sample corpus: the same bytes on each run, with the same versions of zlib, zstd and pyarrow.

    python data_samples/make_samples.py [--into FOLDER]

Beside the corpus it writes `expected.json` (what a build of it has to count), `README.md` (its table; the prose is
kept) and `checksums.txt`.
"""

from __future__ import annotations

import argparse
import hashlib
import json
import zlib
from pathlib import Path
from typing import Any

import pyarrow as pa
import zstandard
from writing import private_rows, public_rows, web_rows
from writing.plan import Plan
from writing.press import FORWARD_LOOKING

_HERE = Path(__file__).resolve().parent
_STAGES = ("ingest", "clean", "exact", "near")
_BEGIN, _END = "<!-- table: begin -->\n", "<!-- table: end -->\n"


def make_plan() -> Plan:
    """All files, and what is expected of them; the rows in the order of `pipelines/configs/sample.yaml`."""
    plan = Plan()
    web_rows.web(plan)
    reprinted = private_rows.news(plan)
    private_rows.filings(plan)
    private_rows.press_releases(plan)
    private_rows.bloomberg(plan, private_rows.reprinted_news())
    public_rows.stack_exchange(plan)
    public_rows.irc(plan)
    public_rows.free_law(plan)
    public_rows.c4(plan, reprinted)
    return plan


def expected(plan: Plan) -> dict[str, Any]:
    rows = plan.expected()
    totals = {key: sum(row[key] for row in rows) for key in ("read", "kept_train", "kept_heldout", "cut_documents")}
    made_with = {
        "zlib": zlib.ZLIB_RUNTIME_VERSION,
        "zstd": ".".join(map(str, zstandard.ZSTD_VERSION)),
        "pyarrow": pa.__version__,
    }
    boilerplate = {"forward_looking_statements": FORWARD_LOOKING, "site_footer": web_rows.SITE_FOOTER}
    return {"made_with": made_with, "boilerplate": boilerplate, "sources": rows, "totals": totals}


def table(numbers: dict[str, Any]) -> str:
    """The expected numbers as the README shows them."""
    head = "| dataset | source | read | removed | kept, training | kept, held out | cut | first day | last day |"
    lines = [head, "|---|---|---:|---|---:|---:|---:|---|---|"]
    for row in numbers["sources"]:
        removed = "; ".join(
            f"{stage}: " + ", ".join(f"{count} {reason}" for reason, count in reasons.items())
            for stage, reasons in sorted(row["removed"].items(), key=lambda entry: _STAGES.index(entry[0]))
        )
        cells = [row[key] for key in ("dataset", "source", "read")] + [removed or "-"]
        cells += [row[key] for key in ("kept_train", "kept_heldout", "cut_documents", "first_day", "last_day")]
        lines.append(f"| {' | '.join(map(str, cells))} |")
    totals = numbers["totals"]
    removed_in_all = totals["read"] - totals["kept_train"] - totals["kept_heldout"]
    lines.append(
        f"| **all** | | {totals['read']} | {removed_in_all} | {totals['kept_train']} | {totals['kept_heldout']} | "
        f"{totals['cut_documents']} | | |"
    )
    return "\n".join([*lines, "", *_planted_table(numbers), "", *_year_table(numbers)]) + "\n"


def _planted_table(numbers: dict[str, Any]) -> list[str]:
    kinds = sorted({kind for row in numbers["sources"] for kind in row["planted"]})
    rows = [[row["source"], *(str(row["planted"].get(kind, "")) for kind in kinds)] for row in numbers["sources"]]
    return _markdown(["planted", *(kind.replace("_", " ") for kind in kinds)], rows)


def _year_table(numbers: dict[str, Any]) -> list[str]:
    years = sorted({year for row in numbers["sources"] for year in row["kept_by_year"]})
    rows = [[row["source"], *(str(row["kept_by_year"].get(year, "")) for year in years)] for row in numbers["sources"]]
    return _markdown(["kept, by year", *years], rows)


def _markdown(head: list[str], rows: list[list[str]]) -> list[str]:
    rule = ["---", *["---:"] * (len(head) - 1)]
    return [f"| {' | '.join(cells)} |" for cells in [head, rule, *rows]]


def write(into: Path) -> None:
    plan = make_plan()
    numbers = expected(plan)
    files = dict(plan.files)
    files["expected.json"] = (json.dumps(numbers, indent=1, ensure_ascii=False) + "\n").encode()
    lines = [f"{hashlib.sha256(data).hexdigest()}  {path}\n" for path, data in sorted(files.items())]
    files["checksums.txt"] = "".join(lines).encode()
    files["README.md"] = _readme(numbers).encode()
    for path, data in files.items():
        (into / path).parent.mkdir(parents=True, exist_ok=True)
        (into / path).write_bytes(data)


def _readme(numbers: dict[str, Any]) -> str:
    prose = (_HERE / "README.md").read_text(encoding="utf-8")
    before, rest = prose.split(_BEGIN)
    return before + _BEGIN + "\n" + table(numbers) + "\n" + _END + rest.split(_END)[1]


def main() -> None:
    parser = argparse.ArgumentParser(description="Writes the sample corpus.")
    parser.add_argument("--into", type=Path, default=_HERE, help="folder to write to (default: beside this script)")
    write(parser.parse_args().into)


if __name__ == "__main__":
    main()
