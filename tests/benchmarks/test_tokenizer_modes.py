"""The benchmark of the tokenizer's modes: its documents, and a row for each setting."""

from __future__ import annotations

from collections.abc import Callable
from importlib import import_module

Text = Callable[[int], str]
Tables = Callable[[str], dict[str, list[list[str]]]]


def test_every_twentieth_document_of_a_domain_is_held_out(modules: None) -> None:
    mix, compared = import_module("benchmarks.common.mix"), import_module("benchmarks.tokenizer.modes")
    ids = [f"{domain}-{number:05}" for domain in ("News", "IRC") for number in range(41)]
    training, held_out = compared.split(mix.Mix(ids=ids, texts=[f"text {name}" for name in ids]))
    assert {domain: part.ids for domain, part in held_out.items()} == {
        domain: [f"{domain}-00019", f"{domain}-00039"] for domain in ("News", "IRC")
    }
    assert sorted(name for part in (training, held_out) for each in part.values() for name in each.ids) == sorted(ids)


def test_longer_pieces_are_compared_by_domain(modules: None, text: Text, tables: Tables) -> None:
    mix, compared = import_module("benchmarks.common.mix"), import_module("benchmarks.tokenizer.modes")
    texts = [text(number) for number in range(30)]
    part = {"News": mix.Mix(ids=[f"News-{number:05}" for number in range(30)], texts=texts)}
    rows = tables(compared.compare_pieces(part, part, [(300, 2), (300, 16)], 1000))["vocabulary"]
    assert [row[:2] for row in rows] == [["300", "2"], ["300", "16"]]
    assert [row[2] for row in rows] == [row[3] for row in rows]
    assert 1 < float(rows[0][2]) < 2 < float(rows[1][2])


def test_each_mode_is_a_row(modules: None, tables: Tables) -> None:
    compared, measure = import_module("benchmarks.tokenizer.modes"), import_module("benchmarks.common.measure")
    cost = measure.TreeCost(wall_seconds=2.0, cpu_seconds=3.4, peak_mib=1234.5, largest_mib=900.0)
    result = {"held_out_total": {"bits_per_byte": 2.5, "bytes": 84, "tokens": 20}, "total": {"chunks": 5}}
    shown = compared.mode_table({"global": compared._fit(result, cost)})
    assert tables(shown)["mode"] == [["`global`", "2.500", "4.200", "5", "3", "1,234"]]
