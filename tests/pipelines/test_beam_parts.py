"""Private parts of Beam: the installed ones are tested, and without them Beam's own are used."""

from __future__ import annotations

from collections.abc import Callable, Iterator

import pytest
from finpile_pipelines.runner import beam_parts
from finpile_pipelines.runner.beam_parts import Part, changed, is_tested
from finpile_pipelines.runner.portable import PortableEngine

from finpile.plugins.engine import ENGINES

_ALL = sorted({part for name in ENGINES.built_in for part in ENGINES.get(name).parts}, key=lambda part: part.place)


@pytest.fixture
def without(monkeypatch: pytest.MonkeyPatch) -> Iterator[Callable[..., None]]:
    """Makes parts look changed."""

    def hide(*parts: Part) -> None:
        monkeypatch.setattr(Part, "digest", property(lambda part: "other" if part in parts else part.source))
        is_tested.cache_clear()

    yield hide
    monkeypatch.undo()
    is_tested.cache_clear()


@pytest.mark.parametrize("part", _ALL, ids=lambda part: part.place)
def test_the_installed_part_is_the_tested_one(part: Part) -> None:
    """If it is not, read what has changed, run the tests that it names, and write the new digest."""
    if "dataflow" in part.place:
        pytest.importorskip("google.cloud.dataflow_v1beta3", reason="needs apache-beam[gcp] (0.6 GB)")
    assert part.digest == part.source


@pytest.mark.parametrize("place", ["apache_beam.no:module", "apache_beam.pvalue:Nothing", "apache_beam.pvalue:logging"])
def test_a_missing_part_is_not_used(place: str) -> None:
    part = Part(place=place, source="ab", use="", without="it is slower")
    assert not is_tested(part)
    (message,) = changed([part])
    assert message.startswith("apache-beam 2.77") and message.endswith("so it is slower")


@pytest.mark.parametrize("runner", ["spark", "flink"])
def test_job_servers_are_those_of_beam_if_a_part_has_changed(runner: str, without: Callable[..., None]) -> None:
    engine = ENGINES.get(runner)
    assert isinstance(engine, PortableEngine)
    assert type(engine.runner_here()).__module__ == f"finpile_pipelines.engines.{runner}"
    without(beam_parts.JAVA_COMMAND)
    assert type(engine.runner_here()).__module__.startswith("apache_beam.")
