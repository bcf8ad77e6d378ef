"""Spark here, or a client of a Connect server, whose sessions have to be closed."""

from __future__ import annotations

import weakref
from collections.abc import Callable, Mapping
from contextlib import suppress
from functools import partial
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession

# How long a server may take to let go of what nobody waits for any more; and what asks it to.
_PATIENCE_S = 5.0
_LETTING_GO = ("Interrupt", "ReleaseExecute", "ReleaseSession")


def is_client(of: SparkSession | DataFrame) -> bool:
    """Whether a session, or a frame's, is on a Connect server. Nothing of Connect is loaded to find out."""
    return type(of).__module__.startswith("pyspark.sql.connect")


def new_session(spark: SparkSession) -> SparkSession:
    """Another session of the same Spark, for whoever asks to close.

    The frames of one may be anybody's: it is closed when the last of them is gone, and before the process
    ends. A client that the interpreter finds open when it ends waits for its connection for ever.
    """
    own = _another(spark)
    if is_client(own):
        let_go_soon(own.client)
        weakref.finalize(own, _close, own.client)
    return own


def _another(spark: SparkSession) -> SparkSession:
    if not is_client(spark) or hasattr(type(spark), "newSession"):
        return spark.newSession()
    # Older clients have no word for it, but can be made on the same connection.
    made: SparkSession = type(spark)(connection=spark.client._builder)  # type: ignore[call-arg]  # noqa: SLF001
    return made


def set_all(spark: SparkSession, settings: Mapping[str, str]) -> None:
    """Change a client's settings, in one request.

    That one of them is deprecated is nothing to tell a user of: it is set to be sure of it.
    """
    from pyspark.sql.connect.proto import ConfigRequest, KeyValue  # noqa: PLC0415

    pairs = [KeyValue(key=key, value=value) for key, value in settings.items()]
    spark.client.config(ConfigRequest.Operation(set=ConfigRequest.Set(pairs=pairs)))


def close(spark: SparkSession) -> None:
    """Have the server forget a session. One of a Spark in this process takes nothing with it."""
    if is_client(spark):
        _close(spark.client)


def _close(client: Any) -> None:
    from pyspark.errors import PySparkException  # noqa: PLC0415

    if client.is_closed:
        return
    # A server that is gone, or does not answer, forgets by itself.
    client.set_retry_policies([])
    let_go_soon(client)
    with suppress(PySparkException):
        client.release_session()
    client.close()


def let_go_soon(client: Any) -> None:
    """Have a client wait for a while only, and not for ever, until its server has let go of something.

    Not every client can be told a deadline, but all of them send their requests by a stub.
    """
    stub = client._stub  # noqa: SLF001 - there is no other way to say it
    for name in _LETTING_GO:
        send = getattr(stub, name)
        if not isinstance(send, partial):
            setattr(stub, name, partial(_soon, send))


def _soon(send: Callable[..., Any], request: Any, **options: Any) -> Any:
    return send(request, **{**options, "timeout": _PATIENCE_S})
