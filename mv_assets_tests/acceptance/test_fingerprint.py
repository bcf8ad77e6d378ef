from __future__ import annotations

import base64
import random
import subprocess
from pathlib import Path

import pyspark
import pytest
from hypothesis import given
from hypothesis import strategies as st

from mv_assets.buckets import Buckets
from mv_assets.state.model import EMPTY, Fingerprint, Segment
from mv_assets.tables.fingerprint import fingerprint
from mv_assets.tables.listing import Listing
from mv_assets.tables.reach import sweep
from mv_assets_tests.support.harness import Deployment
from mv_assets_tests.support.memory_table import DAY

SEGMENTS = st.lists(
    st.builds(
        Segment,
        name=st.text(st.characters(codec="utf-8", exclude_characters="\x00"), min_size=1, max_size=20),
        crc=st.integers(-(2**63), 2**63 - 1),
        start_ms=st.just(0),
        end_ms=st.just(0),
    ),
    max_size=8,
    unique_by=lambda segment: segment.name,
)

# Hashes one segment list a line: "name crc name crc ...", the names in base64 of their UTF-8.
ORACLE = """
import com.google.common.hash.*;
import java.io.*;
import java.nio.*;
import java.nio.charset.*;
import java.util.*;

public class Oracle {
  public static void main(String[] args) throws IOException {
    BufferedReader in = new BufferedReader(new InputStreamReader(System.in));
    for (String line; (line = in.readLine()) != null; ) {
      String[] words = line.isEmpty() ? new String[0] : line.split(" ");
      TreeMap<String, Long> segments = new TreeMap<>();
      for (int i = 0; i < words.length; i += 2) {
        String name = new String(Base64.getDecoder().decode(words[i]), StandardCharsets.UTF_8);
        segments.put(name, Long.parseLong(words[i + 1]));
      }
      ByteArrayOutputStream content = new ByteArrayOutputStream();
      for (Map.Entry<String, Long> segment : segments.entrySet()) {
        content.write(segment.getKey().getBytes(StandardCharsets.UTF_8));
        content.write(0);
        content.write(ByteBuffer.allocate(8).order(ByteOrder.LITTLE_ENDIAN).putLong(segment.getValue()).array());
        content.write(10);
      }
      System.out.println(Hashing.farmHashFingerprint64().hashBytes(content.toByteArray()).asLong());
    }
  }
}
"""


@given(SEGMENTS, st.randoms(use_true_random=False))
def test_21_listing_order_does_not_matter(segments: list[Segment], order: random.Random) -> None:
    shuffled = order.sample(segments, len(segments))
    assert fingerprint(shuffled) == fingerprint(segments)


@pytest.mark.parametrize(
    ("first", "second"),
    [
        # The order of UTF-8, and of Python's strings, would be the other way round.
        ("\U0001f600", "\uff61"),
        ("a/\U0010ffff", "a/\ue000"),
        ("\ud7ff", "\U00010000"),
        ("a", "é"),
        # A byte that is no UTF-8, in the name of a file.
        ("é", "\udce9"),
    ],
)
def test_21_names_are_sorted_by_their_utf16_units(first: str, second: str) -> None:
    one, two = Segment(first, 1, 0, 0), Segment(second, 2, 0, 0)
    content = b"".join(
        each.name.encode("utf-8", "surrogateescape") + b"\0" + each.crc.to_bytes(8, "little") + b"\n"
        for each in (one, two)
    )
    whole = Segment(content[: -(1 + 8 + 1)].decode("utf-8", "surrogateescape"), 2, 0, 0)
    assert fingerprint([two, one]).crc == fingerprint([one, two]).crc == fingerprint([whole]).crc


def test_22_same_count_but_another_segment_differs() -> None:
    kept, name, crc = Segment("a", 1, 0, 0), Segment("b", 1, 0, 0), Segment("a", 2, 0, 0)
    prints = {fingerprint([kept]), fingerprint([name]), fingerprint([crc])}
    assert len(prints) == 3
    assert {found.segment_count for found in prints} == {1}


def test_23_a_segment_overlaps_up_to_its_inclusive_end() -> None:
    listing = Listing("t", "1", 0)
    for segment in (
        touches := Segment("a", 1, 0, 1 * DAY),
        Segment("before", 1, 0, 1 * DAY - 1),
        last := Segment("c", 1, 2 * DAY - 1, 3 * DAY),
        Segment("after", 1, 2 * DAY, 3 * DAY),
        around := Segment("e", 1, 0, 3 * DAY),
    ):
        listing.add(segment)
    (reach,) = sweep(listing, Buckets.of("1d"), 1 * DAY, 2 * DAY)
    assert {listing.segment(at) for at in reach.members} == {touches, last, around}
    assert reach.fingerprint == fingerprint([touches, last, around])


def test_24_empty_is_the_constant_and_round_trips(deployment: Deployment) -> None:
    assert fingerprint([]) == EMPTY == Fingerprint(0, -7286425919675154353)
    assert Fingerprint(0, 0) != EMPTY
    deployment.fill(0)
    deployment.table.remove("f0")
    deployment.converge()
    row = deployment.row(0)
    assert row is not None
    assert row.inputs is not None
    assert row.inputs.base == EMPTY
    deployment.table.day("later", 1, 3)
    assert deployment.look() == []


@pytest.mark.spark
def test_25_equal_to_guavas_farmhash_fingerprint64(tmp_path: Path) -> None:
    random_ = random.Random(25)
    lists = [[], *(_random_segments(random_) for _ in range(400))]
    source = tmp_path / "Oracle.java"
    source.write_text(ORACLE, encoding="utf-8")
    jars = Path(pyspark.__file__).parent / "jars"
    path = ":".join(str(jar) for name in ("guava-*.jar", "failureaccess-*.jar") for jar in jars.glob(name))
    lines = [
        " ".join(f"{base64.b64encode(s.name.encode()).decode()} {s.crc}" for s in segments)
        for segments in lists
    ]
    done = subprocess.run(  # noqa: S603 - our own source
        ["java", "-cp", path, str(source)],  # noqa: S607 - the java that Spark runs on
        input="\n".join(lines) + "\n",
        capture_output=True,
        text=True,
        check=True,
    )
    assert [int(line) for line in done.stdout.split()] == [fingerprint(s).crc for s in lists]


def _random_segments(random_: random.Random) -> list[Segment]:
    """From none to some dozens, so that all of the hash's length classes occur."""
    alphabet = "abz/=-_.0189 äßñ漢字\ud7ff\ue000\uff61\U00010000\U0001f600"
    names = {
        "".join(random_.choices(alphabet, k=random_.randint(1, 60))) for _ in range(random_.randint(0, 30))
    }
    listed = [Segment(name, random_.randint(-(2**63), 2**63 - 1), 0, 0) for name in sorted(names)]
    random_.shuffle(listed)
    return listed
