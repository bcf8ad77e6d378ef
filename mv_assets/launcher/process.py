"""The warm process: it loads what a run needs, then forks one for each line that it is given.

It has one thread, and leaves no connection open that forks would share: no channel of gRPC, no database, no
JVM. A run opens its own.
"""

from __future__ import annotations

import gc
import os
import signal
import socket
import sys
import threading
import time
from collections.abc import Iterable
from contextlib import suppress
from importlib import import_module

from dagster._cli.api import execute_run_command
from dagster._core.instance.ref import InstanceRef
from dagster._core.origin import RepositoryPythonOrigin
from dagster._serdes import ConfigurableClassData, deserialize_value
from dagster._utils.hosted_user_process import recon_repository_from_origin

from mv_assets.launcher.files_read import FilesRead
from mv_assets.launcher.warm import OUTDATED, READY

# What a run imports when it comes to need it.
_LATER = (
    "dagster._core.executor.in_process",
    "dagster._core.execution.plan.execute_plan",
    "dagster._core.storage.event_log.sqlite",
    "mv_assets.run.executor",
    "mv_assets.spark.session",
    "mv_assets.spark.merge",
    "mv_assets.spark.read.readers",
    "pyspark.sql.connect.session",
    "pyspark.sql.connect.dataframe",
    "pyspark.sql.connect.functions",
    "pyspark.sql.connect.client.retries",
)
# Whoever is interrupted at the terminal, with all others, has that long before it is interrupted once more.
_END_WITHIN_S = 5.0
_MOST = 1 << 20


def main(descriptor: int, repository: str, instance: str) -> None:
    """Serve until the launcher is gone; in a fork, one run."""
    requests = socket.socket(fileno=descriptor)
    # A Ctrl-C at the terminal is the runs' affair.
    signal.signal(signal.SIGINT, signal.SIG_IGN)
    files = _loaded(
        deserialize_value(repository, RepositoryPythonOrigin), deserialize_value(instance, InstanceRef)
    )
    if (threads := threading.active_count()) > 1:
        sys.exit(f"mv_assets: runs can't be forked: the code has started {threads - 1} threads")
    line = _served(requests)
    if line is not None:
        _run(line, files)


def _loaded(repository: RepositoryPythonOrigin, instance: InstanceRef) -> FilesRead:
    with FilesRead.noted() as files:
        recon_repository_from_origin(repository).get_definition().load_all_definitions()
        for name in (*_LATER, *_storages(instance)):
            with suppress(ImportError):
                import_module(name)
    return files


def _storages(instance: InstanceRef) -> Iterable[str]:
    """The modules of what an instance consists of."""
    parts = [getattr(instance, name, None) for name in instance._fields]
    return [part.module_name for part in parts if isinstance(part, ConfigurableClassData)]


def _served(requests: socket.socket) -> socket.socket | None:
    """The line of a run, in the process that was forked for it; None once the launcher is gone."""
    # The system takes the dead away.
    signal.signal(signal.SIGCHLD, signal.SIG_IGN)
    gc.collect()
    # A collection in a run would copy the memory that it has in common with this.
    gc.freeze()
    while True:
        request, descriptors, _, _ = socket.recv_fds(requests, 1, 1)
        if not request:
            return None
        line = socket.socket(fileno=descriptors[0])
        if os.fork() == 0:
            requests.close()
            return line
        line.close()


def _run(line: socket.socket, files: FilesRead) -> None:
    signal.signal(signal.SIGCHLD, signal.SIG_DFL)
    signal.signal(signal.SIGINT, signal.default_int_handler)
    changed = files.changed()
    line.sendall(b"%s %d" % (READY if changed is None else OUTDATED, os.getpid()))
    what = _received(line)
    if what is None:
        return
    threading.Thread(target=_end_with, args=(line,), name="end with the launcher", daemon=True).start()
    execute_run_command.main([what], "dagster api execute_run", standalone_mode=False)


def _received(line: socket.socket) -> str | None:
    """What is to be run; None if the launcher has given it up."""
    found = b""
    while not found.endswith(b"\n"):
        with suppress(ConnectionResetError):
            more = line.recv(_MOST)
            if more:
                found += more
                continue
        return None
    return found.decode()


def _end_with(line: socket.socket) -> None:
    """A run that nobody watches would hold its pool for ever, were it to hang."""
    with suppress(OSError):
        line.recv(1)
    time.sleep(_END_WITHIN_S)
    os.kill(os.getpid(), signal.SIGINT)


if __name__ == "__main__":
    main(int(sys.argv[1]), *sys.argv[2:])
