"""Commands beside a real `mv-assets dev`: on its Spark while that answers, and on one of their own else."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
import uuid
from pathlib import Path

import grpc  # type: ignore[import-untyped]
import pytest
from pyspark.sql.connect.proto import AnalyzePlanRequest, SparkConnectServiceStub

from mv_assets.config.values import connect_address
from mv_assets_tests.benchmarks.cases.b12_commands import Shop
from mv_assets_tests.support.dev import UP, dev

pytestmark = [pytest.mark.slow, pytest.mark.processes, pytest.mark.e2e]
ASKED = "SELECT count(*) AS orders FROM orders"
# One command under which the Spark dies: it asks, kills, and asks once more.
LOSES = f"""
import os, signal, sys
from pathlib import Path
from mv_assets.cli.session import Session
session = Session(Path("project.yaml"))
with session.project("query") as project:
    print(project.query({ASKED!r}).frame.collect()[0].orders)
    os.kill(int(sys.argv[1]), signal.SIGKILL)
    print(session.spark.again(lambda: project.query({ASKED!r}).frame.collect()[0].orders))
"""


def said(folder: Path, *options: str) -> tuple[str, str]:
    """A query's answer, and what is said beside it."""
    command = [str(Path(sys.executable).with_name("mv-assets")), "query", ASKED, "--format", "csv", *options]
    done = subprocess.run(command, cwd=folder, capture_output=True, text=True, check=True, timeout=300)  # noqa: S603 - our own
    return done.stdout, done.stderr


def who_is_refused(port: int, *tokens: str) -> list[str]:
    """Those of some tokens with which the server answers nothing."""
    refused = []
    for token in tokens:
        beside = [("authorization", f"Bearer {token}")] if token else []
        with grpc.insecure_channel(f"127.0.0.1:{port}") as channel:
            version = AnalyzePlanRequest(
                session_id=str(uuid.uuid4()), spark_version=AnalyzePlanRequest.SparkVersion()
            )
            try:
                stub = SparkConnectServiceStub(channel)  # type: ignore[no-untyped-call]
                stub.AnalyzePlan(version, timeout=30, metadata=beside)
            except grpc.RpcError as error:
                assert error.code() is grpc.StatusCode.UNAUTHENTICATED, error  # noqa: PT017
                refused.append(token)
    return refused


def test_commands_use_the_spark_of_dev_and_one_of_their_own_if_it_is_gone_or_not_wanted(
    tmp_path: Path,
) -> None:
    Shop(tmp_path).write()
    with dev(tmp_path, MV_ASSETS_SENSOR_INTERVAL="100000") as running:
        running.until(lambda: UP in running.said())
        rows, beside = said(tmp_path)
        assert "using the Spark that `mv-assets dev` keeps warm" in beside
        known = json.loads((running.home / "dev.spark.json").read_text())["address"]
        token = known.partition("token=")[2]
        assert len(token) > 30
        assert token not in beside + running.said()
        assert who_is_refused(connect_address(known)[1], "", "another", token) == ["", "another"]

        own, beside = said(tmp_path, "--own-spark")
        assert own == rows
        assert "keeps warm" not in beside

        # It listens, and never answers.
        spark = running.spark()
        assert spark is not None
        os.kill(spark, signal.SIGSTOP)
        instead, beside = said(tmp_path)
        os.kill(spark, signal.SIGCONT)
        assert instead == rows
        assert "starting one of our own" in beside

        command = [sys.executable, "-c", LOSES, str(spark)]
        lost = subprocess.run(command, cwd=tmp_path, capture_output=True, text=True, check=True, timeout=300)  # noqa: S603 - our own
        assert lost.stdout.split() == [rows.split()[1]] * 2

    ended, beside = said(tmp_path)
    assert ended == rows
    assert "mv-assets dev" not in beside
