"""Columns in parts are as if they were one column, whatever the parts are."""

from __future__ import annotations

import random
from array import array

import numpy as np
import pytest

from mv_assets.tables import parts
from mv_assets.tables.parts import Joined, Merged, Part, pieces


@pytest.mark.parametrize("seed", range(20))
def test_columns_of_parts_are_as_one_column(seed: int, monkeypatch: pytest.MonkeyPatch) -> None:
    chance = random.Random(seed)
    monkeypatch.setattr(parts, "_TINY", chance.choice([1, 3, 4_096]))
    columns = [array("q", range(chance.randrange(5))) for _ in range(chance.randrange(5))]
    before = [column[:] for column in columns]
    joined, whole = Joined(columns, array("q")), [value for column in columns for value in column]
    for value in range(chance.randrange(4)):
        joined.append(value)
        whole.append(value)
    assert joined == whole
    assert (len(joined), bool(joined)) == (len(whole), bool(whole))
    assert [joined[at] for at in range(-len(whole), len(whole))] == whole * 2
    assert (joined[1:-1], joined[:]) == (whole[1:-1], whole)
    for at in (len(whole), -len(whole) - 1):
        with pytest.raises(IndexError):
            joined[at]
    for value in range(6):
        assert (value in joined) == (value in whole)
        if value in whole:
            assert joined.index(value) == whole.index(value)
        else:
            with pytest.raises(ValueError, match="not there"):
                joined.index(value)
    assert [value for piece in pieces(joined) for value in piece.tolist()] == whole
    # What is appended is in none of the parts.
    assert columns == before


def test_columns_of_one_listing_come_in_alike_pieces(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(parts, "_TINY", 3)
    columns = [array("q", range(size)) for size in (1, 0, 2, 5, 1, 1, 3)]
    assert [len(piece) for piece in pieces(Joined(columns, array("q")))] == [3, 5, 2, 3]


def test_what_parts_say_by_name_is_as_one() -> None:
    said: list[dict[str, int]] = [{"a": 1}, {}, {"b": 2, "c": 3}]
    merged = Merged(said)
    assert merged
    assert merged == {"a": 1, "b": 2, "c": 3}
    merged["d"] = 4
    assert (merged.get("d"), merged.get("e"), len(merged)) == (4, None, 4)
    assert said == [{"a": 1}, {}, {"b": 2, "c": 3}]
    assert not Merged([{}])
    assert Merged([]) == {}


@pytest.mark.parametrize("few", [0, 1_000])
def test_files_are_found_by_their_names_alone(few: int, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(parts, "_FEW", few)
    part = Part(["a", "b", "c"])
    assert part.among({"c", "a", "x"}) == [0, 2]
    assert part.among(set()) == []
    # As if the hash of a name were that of another.
    part._hashes = np.fromiter(map(hash, ("b", "b", "c")), np.int64, 3)
    assert part.among({"b"}) == [1]
    part.names.append("d")
    assert part.among({"d"}) == [3]
