"""Names of files that a file system allows and people would not choose, computed by Spark."""

from __future__ import annotations

import os
from collections.abc import Callable
from typing import Any, cast
from unicodedata import normalize

import pytest
from pyspark.sql.types import StructType

from mv_assets.spark.errors import Unreadable
from mv_assets.spark.read.files import Part, frame
from mv_assets_tests.unit.spark.unchecked_lake import UncheckedLake, daily, rows_at

Make = Callable[..., UncheckedLake]
NAMES = [
    "%", "%25", "%2F", "%00", "%41", "a..b", "-rf", "--", "=", "==", "=x", "x=", "~user", "${HOME}", "$$",
    "`", "``", "\\", "\\\\n", "\\u0041", "\\*", "[a", "a]", "{a", "*", "?", "#frag?x=1", "a;b|c&d<e>", "^@!",
    "x:", "file:", "s3:x", "day=2020-01-01.parquet", "twin", "TWIN", "d.parquet/x.parquet", "x.crc", "x.gz",
    "\x1b[31mred", "\r", "\t", "\x7f", "\x01", "\u2028", "\u202e", "\ufeff", "\u00a0", "\u3000x",
    "\U0001f600", "a\nb/c\nd", " ",
    "  /  ", "a" * 255, "ä" * 127, normalize("NFC", "é"), normalize("NFD", "é"),
]  # fmt: skip
BOTH = ["a:[b]", "*:*", "{a}:", "C:\\x", "[x]/a:b", "h=10:00/[a]"]


def test_a_file_is_computed_whatever_its_name(unchecked_lake: Make) -> None:
    lake = unchecked_lake(daily("x"))
    for number, name in enumerate(NAMES):
        lake.put(name, rows_at([number % 2], x=number))
    # What the patterns among the names would match.
    lake.put("a", rows_at([2], x=-1))
    assert lake.outcomes() == {0: "committed", 1: "committed", 2: "committed"}
    assert sorted(lake.rows("x")) == [-1, *range(len(NAMES))]


@pytest.mark.parametrize("name", BOTH)
def test_a_colon_beside_what_spark_takes_for_a_pattern_is_named_before_spark_is_asked(name: str) -> None:
    """It would say something of a relative path in an absolute URI."""
    for path in (f"/lake/{name}", f"s3://lake/{name}"):
        part = Part({}, (), {"/lake/good": (), path: ()})
        with pytest.raises(Unreadable) as raised:
            frame(cast("Any", None), [part], StructType())
        assert f"file {path} has a colon" in str(raised.value)


def test_a_name_that_is_no_text_holds_the_watermark_and_nothing_else(unchecked_lake: Make) -> None:
    lake = unchecked_lake(daily("x"))
    lake.put("good.parquet", rows_at([0, 1], x=1))
    good = lake.folder / "events/good.parquet"
    good.with_name(os.fsdecode(b"\xff\n\x1b[31m.parquet")).write_bytes(good.read_bytes())
    assert lake.outcomes() == {0: "committed", 1: "committed"}
    (broken,) = lake.tables["events"].current().listing().broken.values()
    assert str(broken) == (
        r"file '\udcff\n\x1b[31m.parquet': its name is not valid UTF-8, so Spark can't open it; rename it"
    )
