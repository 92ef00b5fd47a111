"""Views of `Options` are those of Beam's own options, made once."""

from __future__ import annotations

import pickle

import pytest
from apache_beam.options.pipeline_options import (
    DebugOptions,
    DirectOptions,
    GoogleCloudOptions,
    PipelineOptions,
    StandardOptions,
    TypeOptions,
    WorkerOptions,
)
from finpile_pipelines.runner.beam_options import Options

ARGUMENTS = ["--direct_num_workers=3", "--streaming", "--experiments=a", "--no_pipeline_type_check"]
VIEWS = (DebugOptions, DirectOptions, GoogleCloudOptions, StandardOptions, TypeOptions, WorkerOptions)


@pytest.mark.parametrize("view", VIEWS)
def test_a_view_has_the_values_of_that_of_beam(view: type) -> None:
    ours, theirs = (kind(ARGUMENTS, job_name="a", num_workers=2) for kind in (Options, PipelineOptions))
    assert type(ours.view_as(view)) is view
    assert str(ours.view_as(view)) == str(theirs.view_as(view))
    assert ours.get_all_options() == theirs.get_all_options()


def test_a_view_that_was_made_before_has_later_changes() -> None:
    options = Options(ARGUMENTS)
    before = options.view_as(DebugOptions)
    assert options.view_as(DebugOptions) is before
    options.view_as(StandardOptions).view_as(DebugOptions).experiments = ["b"]
    assert before.experiments == options.view_as(DebugOptions).experiments == ["b"]


def test_options_share_no_views() -> None:
    first, second = Options(ARGUMENTS), Options(ARGUMENTS)
    first.view_as(DirectOptions).direct_num_workers = 9
    assert second.view_as(DirectOptions).direct_num_workers == 3
    copy = pickle.loads(pickle.dumps(first))
    assert copy.view_as(DirectOptions).direct_num_workers == 9
    assert copy.view_as(DirectOptions) is not first.view_as(DirectOptions)
