"""`mv-assets query` as people and programs use it, on a warm Spark."""

from __future__ import annotations

import csv
import fcntl
import io
import json
import os
import pty
import re
import select
import subprocess
import sys
import termios
import time
from collections.abc import Callable, Iterator
from datetime import UTC, datetime, timedelta
from decimal import Decimal
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
import yaml
from click.testing import CliRunner

from mv_assets.cli import main
from mv_assets.cli.answers import rows as printed
from mv_assets.cli.answers.formats import FORMATS
from mv_assets.cli.answers.output import opened
from mv_assets.cli.answers.rows import Rows, values_of
from mv_assets.cli.errors import OutputUnwritable
from mv_assets.spark.errors import JobFailed
from mv_assets.spark.session import Engine
from mv_assets_tests.unit.cli.commands import Commands

FIRST = datetime(2024, 1, 1, tzinfo=UTC)
SQL = """
    SELECT date_trunc('hour', at) AS hour, zone, count(*) AS n, sum(fare) AS fare FROM trips GROUP BY ALL
"""
BY_ZONE = "SELECT zone, count(*) AS n, sum(fare) AS fare FROM trips GROUP BY zone ORDER BY zone NULLS LAST"
ZONES = [["north", 48, "120.00"], ["south", 48, "120.00"], [None, 4, "10.00"]]
EVERY = "SELECT at, zone, fare FROM trips ORDER BY at, zone"
COMMAND = [sys.executable, "-c", "from mv_assets.cli import main; main()"]


class Shell:
    """Somebody who asks one thing after the other."""

    def __init__(self, project: Path, commands: Commands) -> None:
        self.project = project
        self._commands = commands

    def ask(self, *arguments: str, **options: Any) -> tuple[str, str]:
        """What a query says on stdout and on stderr."""
        return self._commands.run(self.project, "query", *arguments, **options)

    def document(self, *arguments: str, **options: Any) -> dict[str, Any]:
        found: dict[str, Any] = json.loads(self.ask(*arguments, "--json", **options)[0])
        return found


def put(root: Path, number: int) -> None:
    """Trips through a whole day of January, one of them nowhere."""
    start = FIRST + timedelta(days=number - 1)
    times = [*(start + timedelta(hours=hour // 2) for hour in range(24)), start + timedelta(hours=24) - MS]
    zones = [*(["north", "south"] * 12), None]
    fares = [Decimal("2.50")] * 25
    columns = {"at": times, "zone": zones, "fare": pa.array(fares, pa.decimal128(10, 2))}
    pq.write_table(pa.table(columns), root / "trips" / f"{number:02}.parquet")


MS = timedelta(milliseconds=1)


@pytest.fixture(scope="module")
def shell(tmp_path_factory: pytest.TempPathFactory, connect_server: str, commands: Commands) -> Shell:
    """Three days in a view, and a fourth that only the base table has."""
    root = tmp_path_factory.mktemp("query")
    (root / "trips").mkdir()
    view = {"name": "hourly", "base": "trips", "sql": SQL, "time_column": "hour", "bucket": "1d"}
    declared = {
        "state": "sqlite:///state.db",
        "warehouse": "warehouse",
        "spark": {"remote": connect_server},
        "tables": [{"name": "trips", "path": "trips", "time_column": "at", "settle": "0s"}],
        "views": [{**view, "start": "2024-01-01"}],
    }
    (root / "project.yaml").write_text(yaml.safe_dump(declared))
    for number in (1, 2, 3):
        put(root, number)
    commands.run(root / "project.yaml", "refresh")
    put(root, 4)
    return Shell(root / "project.yaml", commands)


def test_a_table_for_people_and_on_stderr_what_served_it(shell: Shell) -> None:
    out, err = shell.ask(BY_ZONE)
    assert [line.split() for line in out.splitlines() if "─" not in line] == [
        ["zone", "n", "fare"],
        ["north", "48", "120.00"],
        ["south", "48", "120.00"],
        ["NULL", "4", "10.00"],
    ]
    assert re.fullmatch(
        r"3 buckets from hourly, 1 from trips \(1 file, [\d.]+ kB\): "
        r"the rest is in no VALID bucket of a view\n",
        err,
    )


def test_json_has_columns_types_rows_and_what_served_them(shell: Shell) -> None:
    found = shell.document(BY_ZONE)
    assert list(found) == ["columns", "types", "rows", "served"]
    assert found["columns"] == ["zone", "n", "fare"]
    assert found["types"] == ["string", "bigint", "decimal(20,2)"]
    assert found["rows"] == ZONES
    served = found["served"]
    assert (served["view"], served["buckets_from_view"], served["buckets_from_base"]) == ("hourly", 3, 1)
    assert served["files_from_base"] == 1
    assert served["bytes_from_base"] == (shell.project.parent / "trips" / "04.parquet").stat().st_size
    [part] = served["parts"]
    assert (part["view"], part["buckets"], part["rows"]) == ("hourly", 3, 75)
    assert part["bytes"] > 0
    assert "no VALID bucket" in served["reason"]


@pytest.mark.slow
def test_a_large_answer_comes_in_pieces_and_is_the_same(shell: Shell, tmp_path: Path) -> None:
    files: dict[str, list[Path]] = {}
    for small in (50_000, 7):
        for form in ("csv", "json", "parquet"):
            file = tmp_path / f"{small}.{form}"
            assert shell.ask(EVERY, "--format", form, "--output", str(file), small=small)[0] == ""
            files.setdefault(form, []).append(file)
        assert shell.document(EVERY, small=small)["rows"][-1] == ["2024-01-04T23:59:59.999000Z", None, "2.50"]
    for whole, pieces in files.values():
        if whole.suffix != ".parquet":
            assert whole.read_bytes() == pieces.read_bytes()
    table = pq.read_table(files["parquet"][1])
    assert table == pq.read_table(files["parquet"][0])
    fields = {"at": pa.timestamp("us", "UTC"), "zone": pa.string(), "fare": pa.decimal128(10, 2)}
    assert dict(zip(table.schema.names, table.schema.types, strict=True)) == fields
    stored = pa.concat_tables(
        pq.read_table(path) for path in sorted((shell.project.parent / "trips").iterdir())
    )
    ordered = stored.sort_by([("at", "ascending"), ("zone", "ascending")])
    assert table.to_pylist() == ordered.to_pylist()
    lines = list(csv.reader(io.StringIO(files["csv"][0].read_text())))
    assert lines[:2] == [["at", "zone", "fare"], ["2024-01-01T00:00:00Z", "north", "2.50"]]
    assert lines[-1] == ["2024-01-04T23:59:59.999000Z", "", "2.50"]
    objects = [json.loads(line) for line in files["json"][0].read_text().splitlines()]
    assert len(objects) == 100
    assert objects[1] == {"at": "2024-01-01T00:00:00Z", "zone": "south", "fare": "2.50"}
    assert sorted(path.name for path in tmp_path.iterdir()) == sorted(
        f"{small}.{form}" for small in (7, 50_000) for form in files
    )


def test_csv_tells_null_from_the_empty_text(shell: Shell) -> None:
    texts = "SELECT CAST(NULL AS STRING) AS a, '' AS b, 'x,\"y\"' AS c, 1 AS d FROM trips LIMIT 1"
    assert shell.ask(texts, "--format", "csv")[0] == 'a,b,c,d\n,"","x,""y""",1\n'
    alone = "SELECT CAST(NULL AS STRING) AS a FROM trips LIMIT 1"
    assert shell.ask(alone, "--format", "csv")[0] == 'a\n""\n'


def test_a_table_shows_the_first_rows_and_says_how_many_more_there_are(shell: Shell) -> None:
    many = "SELECT explode(sequence(1, 13)) AS i, at FROM trips ORDER BY i, at"
    for small in (50_000, 7):
        out = shell.ask(many, small=small)[0].splitlines()
        assert out[-1] == "and 300 more rows; `--format csv` has them all"
        assert len(out) == 1_003
        assert out[2].split() == ["1", "2024-01-01T00:00:00Z"]
        assert out[-2].split()[0] == "10"


def test_explain_says_of_each_view_why_it_fits_or_not(shell: Shell) -> None:
    out, _ = shell.ask("--explain", BY_ZONE)
    assert re.search(r"^hourly +used +3 buckets, 75 rows, ", out, re.MULTILINE)
    assert re.search(r"^trips +read +1 bucket, 1 file, .*: the rest", out, re.MULTILINE)
    middle = "SELECT percentile(fare, 0.5) FROM trips"
    found = json.loads(shell.ask("--explain", "--json", middle)[0])
    assert list(found) == ["served"]
    assert found["served"]["view"] is None
    assert found["served"]["files_from_base"] == 4
    why = found["served"]["considered"]["hourly"]
    out, _ = shell.ask("--explain", middle)
    assert f"hourly  not used  {why}" in out


def test_which_view_would_answer(shell: Shell) -> None:
    out, _ = shell.ask("--advise", "SELECT zone, max(fare) FROM trips GROUP BY zone")
    assert "view hourly would answer it, and be computed again: add max(fare) to the view" in out
    assert "MAX(fare) AS max_fare" in out
    found = shell.document("--advise", "SELECT percentile(fare, 0.5) FROM trips")
    assert found["proposals"] == []
    assert "only single rows can answer it" in found["reason"]
    refused = CliRunner().invoke(main, ["query", "--advise", "--explain", "SELECT 1"])
    assert refused.exit_code == 2
    assert "leave out --explain" in refused.output


def test_how_fresh_the_answer_has_to_be(shell: Shell) -> None:
    count = "SELECT count(*) AS n FROM trips"
    off = shell.document(count, "--freshness", "off")
    assert off["rows"] == [[100]]
    assert off["served"]["buckets_from_view"] == 0
    bounded = shell.document(
        "SELECT count(*) AS n FROM trips WHERE at < '2024-01-04'",
        "--freshness",
        "bounded",
        "--max-staleness",
        "3660d",
    )
    assert bounded["rows"] == [[75]]
    assert bounded["served"]["buckets_from_view"] == 3
    assert bounded["served"]["files_from_base"] == 0
    stored = shell.document("SELECT sum(n) AS n FROM hourly", "--freshness", "stored")
    assert stored["rows"] == [[75]]
    assert "nothing is stored" in shell.ask(count, "--freshness", "stored", code=2)[1]


def test_the_query_may_come_from_stdin_or_a_file(shell: Shell, tmp_path: Path) -> None:
    (tmp_path / "q.sql").write_text(f"-- by zone\n{BY_ZONE};\n")
    assert shell.document("--file", str(tmp_path / "q.sql"))["rows"] == ZONES
    assert shell.document("-", stdin=BY_ZONE)["rows"] == ZONES
    assert shell.document(stdin=BY_ZONE)["rows"] == ZONES


def test_what_fails_says_so_and_leaves_the_file_that_was_there(shell: Shell, tmp_path: Path) -> None:
    file = tmp_path / "out.csv"
    file.write_text("before")
    to_file = ("--format", "csv", "--output", str(file))
    assert "n" in shell.ask("SELECT raise_error('no ' || zone) FROM trips", *to_file, code=1)[1]
    assert "fares" in shell.ask("SELECT fares FROM trips", *to_file, code=1)[1]
    twice = "SELECT zone, fare AS Zone FROM trips"
    message = "two columns are called Zone; name them apart with AS\n"
    assert shell.ask(twice, "--format", "json", "--output", str(file), code=2)[1] == message
    assert file.read_text() == "before"
    assert list(tmp_path.iterdir()) == [file]
    assert shell.ask(twice + " LIMIT 1", *to_file)[0] == ""
    assert file.read_text() == "zone,Zone\nnorth,2.50\n"


def test_refusals_end_with_2_before_spark_starts(tmp_path: Path) -> None:
    (tmp_path / "trips").mkdir()
    file = tmp_path / "project.yaml"
    declared = {"tables": [{"name": "trips", "path": "trips", "time_column": "at"}], "views": []}
    file.write_text(yaml.safe_dump({**declared, "spark": {"remote": "sc://127.0.0.1:1"}}))

    def refused(*arguments: str, stdin: str = "") -> str:
        ended = CliRunner().invoke(main, ["--project", str(file), "query", *arguments], input=stdin)
        assert ended.exit_code == 2, ended.output
        assert ended.stdout == ""
        return ended.stderr.strip().splitlines()[-1]

    assert "is not a SELECT" in refused("DROP TABLE trips")
    assert "there is no table trip; did you mean trips?" in refused("SELECT 1 FROM trip")
    assert "statement" in refused("SELECT 1 FROM trips; SELECT 2 FROM trips")
    assert "the query" in refused(stdin="")
    good = "SELECT 1 FROM trips"
    assert "--format parquet needs --output" in refused(good, "--format", "parquet")
    assert "either --json or --format" in refused(good, "--json", "--format", "csv")
    assert "either a query or --file" in refused(good, "--file", str(file))
    assert "has no rows" in refused(good, "--explain", "--format", "csv")
    assert "goes with --freshness bounded" in refused(good, "--max-staleness", "2h")
    assert "'soon' is not a duration" in refused(good, "--freshness", "bounded", "--max-staleness", "soon")
    assert "--freshness strict" in refused(good, "--freshness", "bounded", "--max-staleness", "0s")
    assert "there is no folder" in refused(good, "--output", str(tmp_path / "no" / "out.csv"))
    assert "'old' is not one of" in refused(good, "--freshness", "old")


def test_a_reader_who_has_had_enough_ends_it_quietly(shell: Shell) -> None:
    many = "SELECT explode(sequence(1, 1000)) AS i, at FROM trips"
    command = [*COMMAND, "--project", str(shell.project), "query", many, "--format", "csv"]
    with subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.PIPE) as process:  # noqa: S603
        assert process.stdout is not None
        assert process.stderr is not None
        assert process.stdout.readline() == b"i,at\n"
        process.stdout.close()
        assert process.stderr.read() == b""


CTRL_C = "\x03"


class Terminal:
    """The prompt as a person sees it."""

    def __init__(self, project: Path) -> None:
        self._main, other = pty.openpty()
        environment = {**os.environ, "TERM": "dumb", "COLUMNS": "120"}
        command = [*COMMAND, "--project", str(project), "query"]
        self.process = subprocess.Popen(  # noqa: S603
            command,
            stdin=other,
            stdout=other,
            stderr=other,
            env=environment,
            start_new_session=True,
            # Its own terminal, whose Ctrl-C is a signal.
            preexec_fn=lambda: fcntl.ioctl(0, termios.TIOCSCTTY, 0),  # noqa: PLW1509
        )
        os.close(other)

    def types(self, text: str, until: str = "mv> ", within: float = 60) -> str:
        """What is shown from then on."""
        os.write(self._main, text.encode())
        shown, deadline = "", time.monotonic() + within
        while until not in shown.replace("\x1b[?2004h", "")[len(text) :]:
            assert time.monotonic() < deadline, shown
            if select.select([self._main], [], [], 2)[0]:
                shown += os.read(self._main, 65_536).decode()
            elif text == CTRL_C:
                # One that comes after the prompt and before readline waits for a key is lost: once more.
                os.write(self._main, text.encode())
        return shown

    def close(self) -> None:
        if self.process.poll() is None:
            self.process.kill()
        self.process.wait()
        os.close(self._main)


@pytest.fixture
def terminal(shell: Shell) -> Iterator[Callable[[], Terminal]]:
    made: list[Terminal] = []

    def start() -> Terminal:
        made.append(Terminal(shell.project))
        return made[-1]

    yield start
    for each in made:
        each.close()


def test_a_prompt_goes_on_until_it_is_left(shell: Shell, terminal: Callable[[], Terminal]) -> None:
    prompt = terminal()
    prompt.types("", "mv> ")
    assert re.search(r"hourly +view +on trips, by 1d: hour, zone, n, fare", prompt.types("\\d\n"))
    prompt.types("SELECT count(*) AS n,\n", "    > ")
    prompt.types("';' AS mark\n", "    > ")
    shown = prompt.types("FROM trips;\n")
    assert re.search(r"100 +;", shown)
    assert re.search(r"1 row, \d+\.\d\d s; 3 buckets from hourly, 1 from trips", shown)
    assert "there is no table nowhere" in prompt.types("SELECT 1 FROM nowhere;\n")
    assert re.search(r"hourly +used +3 buckets", prompt.types(f"\\explain {BY_ZONE};\n"))
    prompt.types("SELECT zone\n", "    > ")
    assert "abandoned" in prompt.types(CTRL_C)
    assert re.search(r"\b25\b", prompt.types("SELECT count(*) FROM trips WHERE at < '2024-01-02';\n"))
    os.write(prompt._main, b"\\q\n")
    assert prompt.process.wait(30) == 0
    history = (shell.project.parent / ".mv_assets" / "query_history").read_text()
    assert "FROM trips;" in history.splitlines()


def test_a_file_is_there_when_it_is_whole_and_devices_stay_devices(tmp_path: Path) -> None:
    file, link = tmp_path / "out", tmp_path / "link"
    file.write_bytes(b"before")
    file.chmod(0o640)
    link.symlink_to(file)
    with pytest.raises(ZeroDivisionError), opened(file) as out:
        out.write(b"half" * (1 // 0))
    assert file.read_bytes() == b"before"
    with opened(link) as out:
        out.write(b"whole")
        assert file.read_bytes() == b"before"
    assert (file.read_bytes(), file.stat().st_mode & 0o777) == (b"whole", 0o640)
    assert link.is_symlink()
    assert {path.name for path in tmp_path.iterdir()} == {"out", "link"}
    os.mkfifo(tmp_path / "pipe")
    reader = os.open(tmp_path / "pipe", os.O_RDONLY | os.O_NONBLOCK)
    with opened(tmp_path / "pipe") as out:
        out.write(b"through")
    assert os.read(reader, 10) == b"through"
    os.close(reader)
    with pytest.raises(OutputUnwritable, match="can't be written"), opened(tmp_path / "no" / "out"):
        pass


@pytest.mark.slow
def test_values_of_every_type_are_the_same_at_once_and_in_pieces(
    engine: Engine, monkeypatch: pytest.MonkeyPatch
) -> None:
    # An hour that New York has twice.
    monkeypatch.setenv("TZ", "America/New_York")
    time.tzset()
    text = """
        SELECT id, timestamp_seconds(1699163000 + id * 900) AS at,
          array(timestamp_seconds(1699163000)) AS ats,
          map('k', named_struct('at', timestamp_seconds(1699163000 + id * 900))) AS deep,
          TIMESTAMP_NTZ '2023-11-05 01:30:00' AS plain, DATE '0001-01-01' AS day, CAST(0.1 AS FLOAT) AS f,
          CAST('NaN' AS DOUBLE) AS nan, CAST(1 AS DECIMAL(38, 18)) AS d, X'00FF' AS raw,
          INTERVAL '1' DAY AS i,
          INTERVAL '2' MONTH AS m, parse_json('{"a": 1}') AS v, NULL AS nothing, id > 1 AS ok, 'é' AS ok
        FROM range(0, 12, 1, 3) ORDER BY id DESC
    """
    with engine.session() as spark:
        frame = spark.sql(text).localCheckpoint()
        whole = list(Rows(frame).values())
        monkeypatch.setattr(printed, "SMALL", 5)
        monkeypatch.setattr(printed, "_PIECE", 5)
        rows = Rows(frame)
        pieces, first = list(rows.values()), list(values_of(rows.first(7)))
    monkeypatch.undo()
    time.tzset()
    assert repr(pieces) == repr(whole)
    assert repr(first) == repr(whole[:7])
    assert [row[0] for row in whole] == list(range(11, -1, -1))
    assert [row[1] for row in whole] == [
        datetime.fromtimestamp(1_699_163_000 + at * 900, UTC) for at in range(11, -1, -1)
    ]
    assert whole[0][3]["k"]["at"] == whole[0][1]
    assert whole[0][6] == 0.1
    assert whole[0][8:14] == (
        Decimal(1),
        b"\x00\xff",
        "INTERVAL '1' DAY",
        "INTERVAL '2' MONTH",
        '{"a":1}',
        None,
    )


NULLABLE = """
    SELECT id, count(*) AS n, named_struct('a', 1, 'b', array(named_struct('c', id))) AS s, array(1, 2) AS l,
      array(1, NULL) AS some, map('k', 1) AS m, map('k', CAST(NULL AS INT)) AS none, array() AS void,
      map() AS voids, map(1, array(map(2, 3))) AS deep, NULL AS nothing, struct(NULL AS q) AS inside,
      struct(parse_json('[1]') AS v, INTERVAL '1' DAY AS i) AS texts, timestamp_seconds(id) AS at
    FROM range(0, 12, 1, 3) {} GROUP BY id ORDER BY id
"""


@pytest.mark.slow
@pytest.mark.parametrize("where", ["", "WHERE id < 0"])
def test_answers_have_the_same_types_whatever_spark_knows_of_their_nulls(
    engine: Engine, monkeypatch: pytest.MonkeyPatch, tmp_path: Path, where: str
) -> None:
    """At once and in pieces, with rows and without, in every format."""
    monkeypatch.setattr(printed, "_PIECE", 5)
    with engine.session() as spark:
        frame = spark.sql(NULLABLE.format(where)).localCheckpoint()
        for small in (50_000, 5):
            monkeypatch.setattr(printed, "SMALL", small)
            rows = Rows(frame)
            for form, write in FORMATS.items():
                with (tmp_path / f"{small}.{form}").open("wb") as out:
                    write(rows, out)
    whole, pieces = (pq.read_table(tmp_path / f"{small}.parquet") for small in (50_000, 5))
    assert whole.schema == pieces.schema
    assert whole == pieces
    assert whole.num_rows == (0 if where else 12)
    assert [field.name for field in whole.schema if not field.nullable] == []
    assert str(whole.schema.field("s").type) == ("struct<a: int32, b: list<element: struct<c: int64>>>")
    if not where:
        assert whole.column("texts")[0].as_py() == {"v": "[1]", "i": "INTERVAL '1' DAY"}
    for form in ("csv", "json", "table"):
        both = [(tmp_path / f"{small}.{form}").read_bytes() for small in (50_000, 5)]
        assert both[0] == both[1]


@pytest.mark.slow
@pytest.mark.parametrize(
    ("value", "forms"),
    [
        ("timestamp'12024-01-01 00:00:00'", "csv json table"),
        ("map(array(1), 'x')", "csv json table"),
        ("map(struct(1 AS a), 2)", "csv json table"),
        ("struct(1 AS a, 2 AS a)", "csv json table parquet"),
        ("named_struct()", "parquet"),
    ],
)
def test_what_a_format_has_no_word_for_is_said_in_one_sentence(
    engine: Engine, monkeypatch: pytest.MonkeyPatch, value: str, forms: str
) -> None:
    with engine.session() as spark:
        frame = spark.sql(f"SELECT {value} AS c FROM range(0, 12, 1, 3)").localCheckpoint()
        for small in (50_000, 5):
            monkeypatch.setattr(printed, "SMALL", small)
            for form in forms.split():
                if (small, form, value) == (5, "parquet", "struct(1 AS a, 2 AS a)"):
                    continue
                with pytest.raises(JobFailed, match=r"can't be printed|[Dd]uplicate"):
                    FORMATS[form](Rows(frame), io.BytesIO())
