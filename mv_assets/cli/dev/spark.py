"""A Spark that stays warm: a Connect server on this machine, which runs and commands share."""

from __future__ import annotations

import secrets
import signal
import sys
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from importlib.resources import as_file, files
from importlib.util import find_spec
from pathlib import Path

from mv_assets.cli.dev.children import Child
from mv_assets.cli.dev.home import writing
from mv_assets.cli.dev.kept import Kept
from mv_assets.cli.dev.ports import LOOPBACK
from mv_assets.cli.warm_spark import without_parameters
from mv_assets.config import Spark
from mv_assets.spark.errors import EngineUnavailable
from mv_assets.spark.startup import OTHERS, WORKERS, unstarted, write_properties

_SERVER = "org.apache.spark.sql.connect.service.SparkConnectServer"
_JAVA_OPTIONS = "spark.driver.extraJavaOptions"
_DEFAULTS = {"spark.ui.enabled": "false", "spark.ui.showConsoleProgress": "false"}
# A client takes it for granted that a server of that name needs no encryption to be told a secret.
_HOST = "localhost"
_OF_OTHERS = frozenset({*OTHERS, "SPARK_CONNECT_AUTHENTICATE_TOKEN"})
_WISHES = ((signal.SIGTERM, 4.0),)


@dataclass(frozen=True, slots=True)
class Address:
    """Where the server is, and the word without which it does nothing for anybody.

    Whoever may ask a Spark may run code as its owner, and every user of a machine reaches its ports.
    """

    port: int
    token: str = field(default_factory=secrets.token_hex, repr=False)

    @property
    def url(self) -> str:
        return f"sc://{_HOST}:{self.port}/;token={self.token}"

    def __str__(self) -> str:
        return without_parameters(self.url)


def spark_server(
    declared: Spark, at: Address, environment: Mapping[str, str], folder: Path, keep: Sequence[int]
) -> Child:
    """The server, with the project's settings; `folder` is that of its log."""
    with as_file(files("mv_assets.cli.dev").joinpath("log4j2.properties")) as logging:
        quiet = f"-Dlog4j2.configurationFile={logging.as_uri()}"
    settings = {
        _JAVA_OPTIONS: quiet,
        **_DEFAULTS,
        **declared.conf,
        "spark.connect.grpc.binding.address": LOOPBACK,
        "spark.connect.grpc.binding.port": str(at.port),
        "spark.connect.authenticate.token": at.token,
        "spark.driver.bindAddress": LOOPBACK,
        "spark.driver.host": LOOPBACK,
        # At another port nobody would find it.
        "spark.port.maxRetries": "0",
    }
    home = _spark_home()
    submit = [str(home / "bin" / "spark-submit"), "--master", declared.master or "local[*]"]
    options = ["--properties-file", str(_written(folder / "spark.properties", settings))]
    named = ["--name", "mv_assets", "--class", _SERVER, "spark-internal"]
    ours = {name: value for name, value in environment.items() if name not in _OF_OTHERS}
    return Child(
        "Spark",
        [*submit, *options, *named],
        {WORKERS: sys.executable, **ours, "SPARK_HOME": str(home), "SPARK_LOCAL_IP": LOOPBACK},
        folder / "spark.log",
        _WISHES,
        keep,
    )


def _written(file: Path, settings: Mapping[str, str]) -> Path:
    with writing(file.parent):
        file.parent.mkdir(parents=True, exist_ok=True)
        return write_properties(file, settings)


def _spark_home() -> Path:
    """The Spark inside the installed pyspark, found without importing it."""
    found = find_spec("pyspark")
    if found is None or found.origin is None:
        raise EngineUnavailable("pyspark is not installed")
    return Path(found.origin).parent


class WarmSpark:
    """The server, kept running, at the same port."""

    def __init__(self, server: Child, at: Address, say: Callable[[str], None]) -> None:
        self.at = at
        self.kept = Kept(server, lambda: server.listens(at.port), say)

    def check(self) -> None:
        """See how it is doing, and start it again if it is time to.

        Raises:
            EngineUnavailable: it can't even be started.

        """
        if self.kept.check() is not None:
            raise unstarted(self.kept.child.last_lines(200), self.kept.child.log)
