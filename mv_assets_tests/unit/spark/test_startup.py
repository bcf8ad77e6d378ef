"""A Spark that does not start says why in one sentence, and what to do if it is Java's fault."""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

from mv_assets.cli.dev.spark import Address, spark_server
from mv_assets.config import Spark
from mv_assets.spark import startup
from mv_assets.spark.errors import EngineUnavailable, NoJava
from mv_assets.spark.startup import REMOTE, start, unstarted

INSTALL = "; install Java 17 or newer, or set JAVA_HOME"
TOO_OLD = (
    "\tjava.lang.UnsupportedClassVersionError: org/apache/spark/launcher/Main has been compiled by a more "
    "recent version of the Java Runtime (class file version 61.0), this version of the Java Runtime only "
    "recognizes class file versions up to {}.0"
)
# What Java 11 says of Spark 4.
JAVA_11 = f"""#!/bin/sh
cat >&2 <<'SAID'
Picked up JAVA_TOOL_OPTIONS: -Dfile.encoding=UTF-8
Error: LinkageError occurred while loading main class org.apache.spark.launcher.Main
{TOO_OLD.format(55)}
SAID
exit 1
"""
STARTS = """
import warnings
warnings.simplefilter("ignore")
from mv_assets.spark.startup import start
from mv_assets.spark.errors import EngineUnavailable
from mv_assets.config import Spark
try:
    start(Spark(conf={"spark.hadoop.fs.s3a.secret.key": "s3cr3t\\\\"}))
except EngineUnavailable as error:
    print(error)
"""
# Keeps what everybody may see of a process, and what of its settings is in a file.
LISTS = """#!/bin/sh
printf '%s\\n' "$@" "${PYSPARK_SUBMIT_ARGS}" > "$0.seen"
while [ "$1" != --properties-file ]; do shift; done
ls -l "$2" > "$0.mode"
cat "$2" > "$0.file"
exit 1
"""
# What Spark's scripts need besides.
TOOLS = ("bash", "sh", "cat", "dirname", "env", "head", "ls", "ps", "tty")


def said(tmp_path: Path, java: str | None) -> str:
    """What is said where this is all the Java there is; in a process of its own, as others have Spark."""
    tools = tmp_path / "bin"
    tools.mkdir()
    for name in TOOLS:
        if (found := shutil.which(name)) is not None:
            (tools / name).symlink_to(found)
    (tools / "python3").symlink_to(sys.executable)
    if java is not None:
        (tools / "java").write_text(java)
        (tools / "java").chmod(0o755)
    left_out = ("JAVA_HOME", "JAVA_TOOL_OPTIONS", "MV_ASSETS_SPARK_REMOTE", "SPARK_HOME")
    inherited = {name: value for name, value in os.environ.items() if name not in left_out}
    ran = subprocess.run(  # noqa: S603 - our own source
        [sys.executable, "-c", STARTS],
        env={**inherited, "PATH": str(tools)},
        capture_output=True,
        text=True,
        check=True,
        timeout=60,
    )
    return ran.stdout.removesuffix("\n")


def test_without_java_spark_says_to_install_one(tmp_path: Path) -> None:
    assert said(tmp_path, None) == f"Spark is not available: JAVA_HOME is not set{INSTALL}"


def test_with_java_11_spark_says_that_it_is_too_old(tmp_path: Path) -> None:
    assert said(tmp_path, JAVA_11) == f"Spark is not available: Java 11 is too old for it{INSTALL}"


def test_settings_are_in_a_file_for_their_owner_and_in_no_list_of_processes(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("PYSPARK_SUBMIT_ARGS", "--conf spark.their.own=1 pyspark-shell")
    said(tmp_path, LISTS)
    seen, mode, settings = (
        (tmp_path / "bin" / f"java.{name}").read_text() for name in ("seen", "mode", "file")
    )
    assert "s3cr3t" not in seen
    assert "--load-spark-defaults" in seen
    assert "spark.their.own=1" in seen
    assert "spark.hadoop.fs.s3a.secret.key=s3cr3t\\\\\n" in settings
    assert "spark.master=local[*]\n" in settings
    assert mode.startswith("-rw------- ")


@pytest.mark.parametrize(
    ("lines", "why"),
    [
        (["Picked up JAVA_TOOL_OPTIONS: -Xss1m", "JAVA_HOME is not set"], "JAVA_HOME is not set"),
        (
            ["/x/bin/spark-class: line 71: /nowhere/bin/java: No such file or directory"],
            "/nowhere/bin/java: No such file or directory",
        ),
        (["sh: 1: java: not found"], "sh: 1: java: not found"),
        (
            ["Error: A JNI error has occurred", f'Exception in thread "main" {TOO_OLD.format(52).strip()}'],
            "Java 8 is too old for it",
        ),
        (
            ["The operation couldn’t be completed. Unable to locate a Java Runtime."],  # noqa: RUF001 - a Mac's
            "The operation couldn’t be completed. Unable to locate a Java Runtime.",  # noqa: RUF001
        ),
    ],
)
def test_what_is_javas_fault_ends_with_what_to_do(lines: list[str], why: str) -> None:
    found = unstarted(lines)
    assert isinstance(found, NoJava)
    assert str(found) == f"Spark is not available: {why}{INSTALL}"


@pytest.mark.parametrize(
    ("lines", "why"),
    [
        (
            [
                "WARNING: Using incubator modules: jdk.incubator.vector",
                "2024-01-01 00:00:00 WARN Utils: Your hostname resolves to a loopback address",
                "",
                "Exception in thread main: java.net.BindException: Address already in use",
                "\tat java.base/sun.nio.ch.Net.bind0(Native Method)",
            ],
            "Exception in thread main: java.net.BindException: Address already in use",
        ),
        (["Picked up JAVA_TOOL_OPTIONS: -Xss1m"], "it ended at once"),
        ([], "it ended at once"),
    ],
)
def test_of_all_else_the_first_line_that_is_more_than_chatter_is_shown(lines: list[str], why: str) -> None:
    found = unstarted(lines, Path("spark.log"))
    assert not isinstance(found, NoJava)
    assert str(found) == str(EngineUnavailable(f"{why} (its log is spark.log)"))


def test_a_spark_of_our_own_is_not_taken_for_the_one_that_the_shell_names(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """pyspark would refuse to start one as soon as it finds another named."""
    names, found = {"SPARK_REMOTE", "SPARK_API_MODE"}, list[str]()
    monkeypatch.delenv(REMOTE, raising=False)
    for name in names:
        monkeypatch.setenv(name, "sc://elsewhere")
    monkeypatch.setattr(startup, "started", lambda *_: found.extend(names & os.environ.keys()))
    start(Spark())
    assert found == []
    assert [os.environ[name] for name in names] == ["sc://elsewhere"] * 2
    environment = spark_server(Spark(), Address(1), os.environ, tmp_path, ()).environment
    assert not names & environment.keys()


def test_a_warm_spark_with_a_wrong_address_is_named(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv(REMOTE, "localhost:15002")
    with pytest.raises(EngineUnavailable, match="MV_ASSETS_SPARK_REMOTE is not the URL of a Spark Connect"):
        start(Spark())
