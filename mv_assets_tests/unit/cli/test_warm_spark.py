"""Whether a command takes the Spark that `dev` keeps warm, or one of its own."""

from __future__ import annotations

import json
import os
import socket
from collections.abc import Iterator
from contextlib import ExitStack
from pathlib import Path

import pytest

from mv_assets.cli import warm_spark
from mv_assets.cli.dev.lock import locked
from mv_assets.cli.warm_spark import SparkOfHome, told
from mv_assets.config import Spark
from mv_assets.spark import startup
from mv_assets.spark.errors import EngineUnavailable

DECLARED = Spark(conf={"spark.driver.memory": "1g"})
ADDRESS = "sc://127.0.0.1:9"
NOT_USED = ["not using the Spark that `mv-assets dev` keeps warm"]


@pytest.fixture(autouse=True)
def unnamed(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv(startup.REMOTE, raising=False)


@pytest.fixture
def dev(tmp_path: Path) -> Iterator[ExitStack]:
    """What `dev` holds while it runs."""
    with ExitStack() as runs:
        runs.enter_context(locked(tmp_path))
        runs.enter_context(told(tmp_path, ADDRESS, DECLARED))
        yield runs


def test_a_spark_is_found_that_is_as_ones_own_would_be(tmp_path: Path, dev: ExitStack) -> None:
    kept = warm_spark._kept(tmp_path)
    assert kept is not None
    assert (kept.address, kept.is_as(DECLARED)) == (ADDRESS, True)
    dev.close()
    assert warm_spark._kept(tmp_path) is None


@pytest.mark.usefixtures("dev")
@pytest.mark.parametrize(
    "other",
    [Spark(), Spark(conf={"spark.driver.memory": "2g"}), Spark(master="local[1]", conf=DECLARED.conf)],
)
def test_another_spark_than_is_declared_is_not_taken_and_that_is_said(
    tmp_path: Path, other: Spark, monkeypatch: pytest.MonkeyPatch
) -> None:
    assert _said(tmp_path, other, monkeypatch) == NOT_USED


@pytest.mark.usefixtures("dev")
@pytest.mark.parametrize("name", ["AWS_ACCESS_KEY_ID", "PYTHONPATH", "SPARK_CONF_DIR", "PYSPARK_PYTHON"])
def test_nor_one_of_another_environment(tmp_path: Path, name: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv(name, "/another")
    assert _said(tmp_path, DECLARED, monkeypatch) == NOT_USED


@pytest.mark.usefixtures("dev")
@pytest.mark.parametrize("name", ["PYTHONWARNINGS", "PYTHONDONTWRITEBYTECODE", "EDITOR"])
def test_what_changes_nothing_that_is_computed_does_not_matter(
    tmp_path: Path, name: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv(name, "another")
    kept = warm_spark._kept(tmp_path)
    assert kept is not None
    assert kept.is_as(DECLARED)


@pytest.mark.usefixtures("dev")
def test_what_others_could_have_written_is_not_believed(tmp_path: Path) -> None:
    file = tmp_path / "dev.spark.json"
    assert file.stat().st_mode & 0o777 == 0o600
    file.chmod(0o660)
    assert warm_spark._kept(tmp_path) is None
    file.chmod(0o600)
    for text in ("{", "[]", "null"):
        file.write_text(text)
        assert warm_spark._kept(tmp_path) is None


def test_what_a_killed_dev_has_left_behind_is_not_believed_once_nothing_of_it_runs(
    tmp_path: Path, dev: ExitStack
) -> None:
    left = (tmp_path / "dev.spark.json").read_bytes()
    dev.close()
    (tmp_path / "dev.spark.json").touch(mode=0o600)
    (tmp_path / "dev.spark.json").write_bytes(left)
    assert warm_spark._kept(tmp_path) is None


def test_no_secret_is_written(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("AWS_SECRET_ACCESS_KEY", "hunter2")
    with told(tmp_path, ADDRESS, Spark(conf={"spark.hadoop.fs.s3a.secret.key": "hunter3"})):
        text = (tmp_path / "dev.spark.json").read_text()
        assert "hunter" not in text
        assert json.loads(text)["address"] == ADDRESS


class Own(Exception):
    """One's own Spark would be started now."""


@pytest.mark.parametrize("answers", ["refused", "silent"])
def test_one_that_does_not_answer_is_said_and_replaced(
    tmp_path: Path, answers: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Also one that listens and says nothing, as a stopped process does."""
    monkeypatch.setattr(startup, "start", _own)
    monkeypatch.setattr(warm_spark, "_ANSWERS_WITHIN_S", 0.2)
    said = list[str]()
    with socket.create_server(("127.0.0.1", 0)) as server, ExitStack() as runs:
        address = f"sc://127.0.0.1:{server.getsockname()[1]}"
        if answers == "refused":
            server.close()
        runs.enter_context(locked(tmp_path))
        runs.enter_context(told(tmp_path, address, DECLARED))
        with pytest.raises(Own):
            SparkOfHome(tmp_path, said.append).start(DECLARED)
    [line] = said
    assert "starting one of our own" in line


@pytest.mark.parametrize("named", [Spark(remote="sc://127.0.0.1:9"), Spark(master="spark://127.0.0.1:9")])
def test_a_project_that_says_which_spark_keeps_it(
    tmp_path: Path, named: Spark, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(startup, "start", _own)
    said = list[str]()
    with locked(tmp_path), told(tmp_path, ADDRESS, named), pytest.raises(Own):
        SparkOfHome(tmp_path, said.append).start(named)
    assert said == []


def test_work_is_done_once_more_only_if_it_was_lost_with_the_warm_spark(tmp_path: Path) -> None:
    home = SparkOfHome(tmp_path, print)
    tries = list[int]()

    def work() -> int:
        tries.append(1)
        if len(tries) < 2:
            raise EngineUnavailable("its process ended")
        return len(tries)

    with pytest.raises(EngineUnavailable):
        home.again(work)
    tries.clear()
    home._used = ADDRESS
    assert home.again(work) == 2


def _own(_declared: Spark) -> None:
    raise Own


def _said(home: Path, declared: Spark, monkeypatch: pytest.MonkeyPatch) -> list[str]:
    """What is said where one's own is started; what follows a colon says why."""
    monkeypatch.setattr(startup, "start", _own)
    said = list[str]()
    with pytest.raises(Own):
        SparkOfHome(home, said.append).start(declared)
    return [line.partition(":")[0] for line in said]


def test_the_digest_is_of_the_environment_that_matters(monkeypatch: pytest.MonkeyPatch) -> None:
    before = warm_spark._digest(DECLARED)
    monkeypatch.setenv("EDITOR", os.environ.get("EDITOR", "") + "another")
    assert warm_spark._digest(DECLARED) == before
