"""What a Delta log says of a file."""

from __future__ import annotations

import base64
import json
import math
import zlib
from collections.abc import Sequence
from dataclasses import dataclass
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from mv_assets.publish.delta.statistics import statistics
from mv_assets.publish.iceberg.files import _with_nan
from mv_assets.state.model import BUCKET


def of(folder: Path, **columns: Any) -> dict[str, Any]:
    rows = pa.table({**columns, BUCKET: [0] * len(next(iter(columns.values())))})
    pq.write_table(rows, folder / "f.parquet", row_group_size=1)
    found: dict[str, Any] = json.loads(statistics(pq.read_metadata(folder / "f.parquet")))
    return found


def test_rows_bounds_and_nulls_of_all_row_groups(tmp_path: Path) -> None:
    found = of(tmp_path, n=[3, None, 1], t=["b", "a", None])
    assert found == {
        "numRecords": 3,
        "minValues": {"n": 1, "t": "a"},
        "maxValues": {"n": 3, "t": "b"},
        "nullCount": {"n": 1, "t": 1},
    }


def test_bounds_of_times_hold_what_lies_between_two_milliseconds(tmp_path: Path) -> None:
    at = datetime(2024, 1, 1, 0, 0, 0, 1_500, UTC)
    found = of(tmp_path, at=pa.array([at], pa.timestamp("us", "UTC")))
    assert found["minValues"] == {"at": "2024-01-01T00:00:00.001Z"}
    assert found["maxValues"] == {"at": "2024-01-01T00:00:00.002Z"}


@pytest.mark.parametrize("microseconds", [datetime.max.replace(tzinfo=UTC), 50_000 * 365 * 86_400_000_000])
def test_times_that_python_can_not_name_are_left_out(tmp_path: Path, microseconds: object) -> None:
    found = of(tmp_path, at=pa.array([microseconds], pa.timestamp("us", "UTC")), n=[1])
    assert found["maxValues"] == {"n": 1}


def test_what_does_not_tell_for_sure_is_left_out(tmp_path: Path) -> None:
    found = of(tmp_path, long=["x" * 100], whole=[float("inf")], flag=[True], inside=[{"a": 1}])
    assert found["minValues"] == found["maxValues"] == {}


@dataclass(frozen=True)
class Joined:
    """The footer of a file with the row groups of several."""

    footers: Sequence[pq.FileMetaData]
    num_rows: int = 3

    @property
    def num_row_groups(self) -> int:
        return len(self.footers)

    def row_group(self, at: int) -> pq.RowGroupMetaData:
        return self.footers[at].row_group(0)


@pytest.mark.parametrize("turned", [True, False])
def test_what_spark_says_of_a_column_with_nan_is_not_lost_among_other_row_groups(*, turned: bool) -> None:
    written = zlib.decompress(base64.b85decode(BY_SPARK))
    nan, buffer = pq.read_metadata(pa.BufferReader(written)), pa.BufferOutputStream()
    assert math.isnan(nan.row_group(0).column(0).statistics.max)
    pq.write_table(pa.table({"x": [5.0], "n": [3], BUCKET: [0]}), buffer)
    plain = pq.read_metadata(pa.BufferReader(buffer.getvalue()))
    footer: Any = Joined([nan, plain] if turned else [plain, nan])
    assert json.loads(statistics(footer))["maxValues"] == {"n": 3}
    assert _with_nan(footer) == {"x"}
    assert _with_nan(plain) == set()


# What Spark 4 writes of the columns x (1.0, NaN), n (1, 2) and that of the bucket.
BY_SPARK = (
    b"c-oay&x_Mg5T3lo5{igI-y?w>O2DuSH8k6Hqb0cLNyNh<9z@qIFU{*(Hch+vu~uqX{{Ro(^ytZ>Ai@eBJb3dWBKQw@@Vv)Gd"
    b"hjJpHoNQ|Gz4be%s1c6e92qCao5Cv>$rhme0`&-SmdWNmH@~-1OTNHq|d?H!XEBr=<m;8ene-$g#`{!W;x;_uHyHvKm3$zjI"
    b"anGsgNfjO}_iH|LQ`*B`&xmHEUf`E+Ivha!&3Z(ISQLK$?ak4JXqok?;nA)N}D>=FJ6slPo}YZk-RuG}!Kjy~k`waT##sGLn"
    b"S}pF6Ss!dAM&-L4b&wpj#3R8+;*LB$oNU6y!PVS*76$$he+OLjiP;a=_?tPxl`Bg#j?i2?|0F5jmTu0p~p=B$3o`haZeu3ao"
    b"%sFARqj-F)w##zZ{gs<n+Vp&p-uaowO$TNK|=wAf2P_Xcd>5oT2siz+dCC$XF-LDcRWS+DmZ#l6pk$qH6pt3v)whTI^TxKIx"
    b"+}LG7I2ifzxt7s18Xzy9LWDb>!JVC$MMf}sVhmYCT^dpOhcMNmr(>pdv@i<dUZmBv{(yOIsC6DrHJ=WX)PzSflsk$YkMXk~d"
    b"mc^P4zFW%EvM8v)7h+kRO%O{-pJqj_rgNh|6_PG1NnBg>y=?p%fzXfhG`j%+L99wJh#@Ty++S!t+tyh%xpFt=3HC3O0E7XwO"
    b"HG7+GfLPSr#>y6`NnN#S6drKeEnm`CmDU!UO"
)
