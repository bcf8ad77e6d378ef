"""Every command ends soon after its last word, whatever it was asked, and whoever stopped listening.

In processes of their own: what is left open in one makes its end, and nothing before, wait for ever.
"""

from __future__ import annotations

import re
import time
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pyarrow.parquet as pq
import pytest
import yaml

from mv_assets.cli.main import _COMMANDS
from mv_assets.state.store import Store
from mv_assets_tests.support.engines import SMALL, connect_process
from mv_assets_tests.support.watched_process import COMMAND, Watched, script, watched
from mv_assets_tests.unit.cli.test_query import SQL, put

# Takes longer than anybody would wait.
SLOW = "count(sha2(repeat(string(fare), 20000000), 512))"
NOTHING = "SELECT count(*) FROM trips WHERE at >= '2030-01-01'"
# Of a day without files, which is VALID without rows.
EMPTY = "SELECT count(*) AS n FROM trips WHERE at >= '2024-01-02' AND at < '2024-01-03'"
MANY = "SELECT explode(sequence(1, 3000)) AS i, at FROM trips"
COUNT = "SELECT count(*) AS n FROM trips"
# By what it is about: the command, its exit code, and what it says, on stdout if anything.
ENDS: dict[str, tuple[list[str], int, str]] = {
    "refresh": (["refresh", "hourly"], 0, "hourly"),
    "status": (["status", "hourly"], 0, "hourly"),
    "plan": (["plan", "hourly"], 0, "hourly|nothing"),
    "explain": (["explain", "hourly", "2024-01-01"], 0, "VALID"),
    "audit": (["audit", "hourly", "--all"], 0, "3 equal"),
    "gc": (["gc"], 0, "nothing"),
    "publish": (["publish", "hourly"], 2, "hourly is published nowhere"),
    "project": (["project", "check"], 0, "no mistakes"),
    "demo": (["demo", "late"], 2, "the project is"),
    "query that reads nothing": (["query", NOTHING], 0, "0"),
    "query that reads nothing, explained": (["query", "--explain", NOTHING], 0, "nothing has to be read"),
    "query of an empty bucket": (["query", "--json", EMPTY], 0, r"\[0\]"),
    "query of an empty bucket, explained": (["query", "--explain", EMPTY], 0, "hourly"),
    "query of an empty bucket by name": (
        ["query", "SELECT * FROM hourly WHERE hour = '2024-01-02'", "--format", "csv"],
        0,
        "hour,zone,n,fare\n$",
    ),
    "query with one row": (["query", COUNT], 0, "50"),
    "query with rows": (["query", "SELECT at FROM trips", "--format", "json"], 0, "at"),
    "query that is wrong": (["query", "SELECT fares FROM trips"], 1, "fares"),
    "query that fails": (["query", "SELECT raise_error(zone) FROM trips"], 1, "north|south|NULL"),
    "query that is refused": (["query", "DROP TABLE trips"], 2, "not a SELECT"),
    "metrics": (["metrics"], 0, "mv_assets_up 1"),
    "mark": (["mark", "hourly", "--bucket", "2024-01-01"], 0, "marked"),
    "adopt": (["adopt", "hourly"], 0, "hourly"),
    "drop": (["drop", "hourly", "--yes"], 0, "hourly"),
}
# What it says to Ctrl-C is for its own tests.
APART = {"dev"}


@dataclass(frozen=True, slots=True)
class Site:
    """A project, and the Spark that it names."""

    root: Path

    @property
    def environment(self) -> dict[str, str]:
        return {
            "MV_ASSETS_PROJECT": str(self.root / "project.yaml"),
            "MV_ASSETS_HOME": str(self.root / "home"),
        }

    def run(self, *arguments: str) -> tuple[int, str, str]:
        with watched([*COMMAND, *arguments], self.environment) as process:
            return process.ended()

    def until_read(self, view: str, process: Watched) -> None:
        """Wait until somebody reads the view's map."""
        store = Store(f"sqlite:///{self.root}/state.db")
        reading = False
        while not reading:
            assert process.process.poll() is None, (process.out, process.err)
            with store.read(view) as reader:
                reading = bool(reader.leases())
        store.close()


def _site(root: Path, spark: dict[str, Any]) -> Site:
    (root / "trips").mkdir()
    for day in (1, 3):
        put(root, day)
    view = {"base": "trips", "time_column": "hour", "bucket": "1d", "start": "2024-01-01"}
    slow = SQL.replace("count(*)", SLOW)
    declared = {
        "state": f"sqlite:///{root}/state.db",
        "warehouse": str(root / "warehouse"),
        "spark": spark,
        "tables": [{"name": "trips", "path": "trips", "time_column": "at", "settle": "0s"}],
        "views": [{"name": "hourly", "sql": SQL, **view}, {"name": "slow", "sql": slow, **view}],
    }
    (root / "project.yaml").write_text(yaml.safe_dump(declared))
    return Site(root)


@pytest.fixture(scope="module", params=["connect", pytest.param("local", marks=pytest.mark.slow)])
def site(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> Site:
    if request.param == "connect":
        spark: dict[str, Any] = {"remote": request.getfixturevalue("connect_server")}
    else:
        spark = {"master": "local[2]", "conf": SMALL}
    made = _site(tmp_path_factory.mktemp("ending"), spark)
    code, out, err = made.run("refresh", "hourly")
    assert (code, "3 buckets, 50 rows" in out) == (0, True), out + err
    return made


def test_every_command_is_watched() -> None:
    assert {arguments[0] for arguments, _, _ in ENDS.values()} | APART == set(_COMMANDS)


@pytest.mark.parametrize("what", [what for what in ENDS if what not in ("mark", "adopt", "drop")])
def test_a_command_ends_after_its_last_word(site: Site, what: str) -> None:
    arguments, wanted, said = ENDS[what]
    code, out, err = site.run(*arguments)
    assert code == wanted, out + err
    assert re.search(said, out or err), out + err
    assert "Traceback" not in err


def test_a_reader_who_leaves_ends_it(site: Site) -> None:
    with watched([*COMMAND, "query", MANY, "--format", "csv"], site.environment) as process:
        while b"\n" not in process.out:
            assert process.process.poll() is None, process.err
            time.sleep(0.01)
        process.left = True
        code, _, err = process.ended()
    assert (code, err) == (1, "")


@pytest.mark.parametrize("form", ["csv", "parquet", "json"])
def test_an_answer_goes_to_a_file_and_that_is_it(site: Site, tmp_path: Path, form: str) -> None:
    file = tmp_path / f"out.{form}"
    code, out, err = site.run("query", COUNT, "--format", form, "--output", str(file))
    assert (code, out) == (0, ""), err
    if form == "parquet":
        assert pq.read_table(file).to_pylist() == [{"n": 50}]
    else:
        assert file.read_text() == {"csv": "n\n50\n", "json": '{"n": 50}\n'}[form]


def _writing(site: Site, _process: Watched) -> bool:
    return bool(list((site.root / "warehouse").glob("slow/*/_temporary")))


INTERRUPTED: dict[str, tuple[list[str], str]] = {
    "refresh": (
        ["refresh", "slow"],
        "interrupted; what was committed stays, and another refresh goes on from there\n",
    ),
    "query": (
        ["query", f"SELECT {SLOW} FROM hourly"],
        "interrupted\n",
    ),
    "audit": (["audit", "hourly", "--all"], "interrupted; another audit begins anew\n"),
}


@pytest.mark.parametrize("times", [1, 3])
@pytest.mark.parametrize("what", list(INTERRUPTED))
def test_ctrl_c_while_spark_works_is_one_sentence(site: Site, what: str, times: int) -> None:
    arguments, said = INTERRUPTED[what]
    with watched([*COMMAND, *arguments], site.environment) as process:
        if what == "refresh":
            while not _writing(site, process):
                assert process.process.poll() is None, (process.out, process.err)
                time.sleep(0.01)
        else:
            site.until_read("hourly", process)
        process.interrupt(times)
        assert process.ended() == (1, "", said)
    store = Store(f"sqlite:///{site.root}/state.db")
    assert store.snapshot("slow").attempts == {}
    store.close()


@pytest.mark.parametrize("times", [1, 3])
def test_ctrl_c_while_spark_starts_leaves_no_java_behind(tmp_path: Path, times: int) -> None:
    """Java holds the other end of what is read here, and has to be gone too."""
    own = _site(tmp_path, {"master": "local[1]", "conf": SMALL})
    with watched([*COMMAND, "query", COUNT], own.environment) as process:
        while "java" not in process.programs():
            assert process.process.poll() is None, (process.out, process.err)
            time.sleep(0.01)
        process.interrupt(times)
        assert process.ended() == (1, "", "interrupted\n")


def test_commands_that_change_the_map_end_too(site: Site) -> None:
    for what in ("mark", "adopt", "drop"):
        arguments, wanted, said = ENDS[what]
        code, out, err = site.run(*arguments)
        assert (code, bool(re.search(said, out))) == (wanted, True), out + err


CALLER = """
import sys
import mv_assets
from pyspark.sql import SparkSession
spark = SparkSession.builder.remote({remote!r}).getOrCreate()
# Not every client has a word for another one.
another = getattr(spark, "newSession", SparkSession.builder.remote({remote!r}).create)
mine = spark if {own!r} == "default" else another()
mine.conf.set("spark.sql.session.timeZone", "UTC")
kept = [mv_assets.sql(mine, text, {project!r}) for text in {texts!r}]
mine.conf.set("spark.sql.session.timeZone", "Asia/Kolkata")
kept.append(mv_assets.sql(mine, {texts!r}[0], {project!r}))
print([frame.collect()[0][0] for frame in kept], mine.sql("SELECT 1 AS one").collect()[0].one)
if {own!r} != "default":
    mine.stop()
"""


@pytest.mark.parametrize("own", ["default", "another"])
def test_a_program_that_asks_on_a_server_ends_and_keeps_its_session(
    connect_server: str, tmp_path: Path, own: str
) -> None:
    made = _site(tmp_path, {"remote": connect_server})
    source = CALLER.format(
        remote=connect_server, own=own, project=str(tmp_path / "project.yaml"), texts=[COUNT, NOTHING]
    )
    with watched(script(source), made.environment) as process:
        code, out, err = process.ended()
    assert (code, out) == (0, "[50, 0, 50] 1\n"), err


RUN = """
import dagster as dg
from mv_assets.definitions import defs

@dg.asset(partitions_def=dg.DailyPartitionsDefinition("2024-01-01", timezone="UTC"))
def below(hourly) -> None:
    print(hourly.count())

both = dg.Definitions.merge(defs, dg.Definitions(assets=[below]))
ran = both.get_implicit_global_asset_job_def().execute_in_process(
    instance=dg.DagsterInstance.ephemeral(),
    partition_key="2024-01-01",
    asset_selection=[dg.AssetKey("hourly"), dg.AssetKey("below")],
)
print(ran.success)
"""


def test_a_run_of_dagsters_ends(connect_server: str, tmp_path: Path) -> None:
    made = _site(tmp_path, {"remote": connect_server})
    with watched(script(RUN), made.environment) as process:
        code, out, err = process.ended()
    assert (code, out) == (0, "25\nTrue\n"), err


SESSIONS = """
from pyspark.sql import SparkSession
from mv_assets.spark.session import Engine
from mv_assets.config import Spark
given = SparkSession.builder.remote({remote!r}).getOrCreate()
engine = Engine(Spark(remote={remote!r}), start=lambda _: given)
with engine.session() as one, engine.session() as other:
    pass
with engine.session() as again:
    print(again in (one, other), one.is_stopped, other.is_stopped)
engine.close()
print(one.is_stopped, other.is_stopped, given.is_stopped, given.sql("SELECT 1").collect()[0][0])
with engine.session() as fresh:
    print(fresh.sql("SELECT 2").collect()[0][0])
engine.stop()
print(fresh.is_stopped, given.is_stopped)
"""


def test_an_engine_closes_what_it_made_and_stops_what_is_its_own(connect_server: str) -> None:
    with watched(script(SESSIONS.format(remote=connect_server)), {}) as process:
        code, out, err = process.ended()
    said = ["True False False", "True True False 1", "2", "True True"]
    assert (code, out.splitlines()) == (0, said), err


GONE = """
import os, signal
from mv_assets.spark.session import Engine
from mv_assets.config import Spark
engine = Engine(Spark(remote={remote!r}))
with engine.session() as spark:
    print(spark.sql("SELECT 1").collect()[0][0])
os.killpg({group}, signal.{signal})
engine.stop()
print("stopped")
"""


@pytest.mark.slow
@pytest.mark.parametrize("how", ["SIGKILL", "SIGSTOP"])
def test_a_server_that_is_gone_or_does_not_answer_holds_nobody(how: str) -> None:
    with (
        connect_process() as (remote, group),
        watched(script(GONE.format(remote=remote, group=group, signal=how)), {}) as process,
    ):
        code, out, err = process.ended()
    assert (code, out) == (0, "1\nstopped\n"), err
