"""What the map's values are stored as: read back the same, and stored as ever where nothing is new."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from mv_assets.state.model import AttemptRecord, Fingerprint, Inputs, LookRecord, Segment
from mv_assets.state.store import codec

INT64 = st.integers(-(2**63), 2**63 - 1)
TEXT = st.text(max_size=20)
PRINTS = st.builds(Fingerprint, st.integers(0, 2**40), INT64)
NAMED = st.lists(st.tuples(TEXT, PRINTS), max_size=3).map(tuple)


def stored(inputs: Inputs | None) -> str | None:
    text: str | None = codec.attempt_columns(AttemptRecord(1, inputs=inputs))["inputs"]
    return text


@given(st.none() | st.builds(Inputs, PRINTS, TEXT, NAMED, NAMED))
def test_inputs_are_read_as_they_were_written(inputs: Inputs | None) -> None:
    assert codec.inputs(stored(inputs)) == inputs


@given(st.lists(st.builds(Segment, TEXT, INT64, INT64, INT64, st.none() | TEXT), max_size=5).map(tuple))
def test_segments_are_read_as_they_were_written(segments: tuple[Segment, ...]) -> None:
    assert codec.segments(codec.segments_text(segments)) == segments


@pytest.mark.parametrize(
    ("dimensions", "text"),
    [
        ((), '[[2,-7],"d1",[]]'),
        ((("zones", Fingerprint(1, 5)),), '[[2,-7],"d1",[["zones",[1,5]]]]'),
    ],
)
def test_inputs_of_one_table_are_stored_as_before_there_could_be_more(
    dimensions: tuple[tuple[str, Fingerprint], ...], text: str
) -> None:
    inputs = Inputs(Fingerprint(2, -7), "d1", dimensions)
    assert stored(inputs) == text
    assert codec.inputs(text) == inputs


def test_segments_of_one_table_are_stored_as_before_there_could_be_more() -> None:
    segment, text = Segment("a.parquet", -7, 0, 9), '[["a.parquet",-7,0,9]]'
    assert codec.segments_text([segment]) == text
    assert codec.segments(text) == (segment,)


def test_what_is_of_a_further_table_is_told_from_what_is_of_a_dimension_or_of_the_base() -> None:
    print_ = Fingerprint(1, 5)
    further = Inputs(print_, "d1", further=(("payments", print_),))
    dimension = Inputs(print_, "d1", dimensions=(("payments", print_),))
    assert codec.inputs(stored(further)) == further != dimension == codec.inputs(stored(dimension))
    own, other = Segment("a", 1, 0, 9), Segment("a", 1, 0, 9, "payments")
    assert codec.segments(codec.segments_text([own, other])) == (own, other)


@pytest.mark.parametrize("ends_first", [None, "payments"])
def test_a_look_tells_which_table_ends_first(ends_first: str | None) -> None:
    look = LookRecord("1", 2, 3, None, ("a: broken",), 4, None, ends_first)
    assert codec.look(codec.look_columns(look)) == look
