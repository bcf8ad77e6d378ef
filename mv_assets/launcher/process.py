"""The warm process: it loads what a run needs, then forks one for each line that it is given.

It has one thread, and leaves no connection open that forks would share: no channel of gRPC, no database, no
JVM. A run opens its own.
"""

from __future__ import annotations

import gc
import json
import os
import signal
import socket
import sys
import threading
import time
from collections.abc import Iterable
from contextlib import suppress
from importlib import import_module
from pathlib import Path
from typing import NoReturn

from dagster import DagsterInstance

from mv_assets.dagster_internals import (
    ConfigurableClassData,
    InstanceRef,
    RepositoryPythonOrigin,
    deserialize_value,
    execute_run,
    recon_repository_from_origin,
)
from mv_assets.launcher.files_read import FilesRead
from mv_assets.launcher.warm import LOADED, OUTDATED, READY

# What a run imports when it comes to need it.
_LATER = (
    "dagster._cli.api",
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
# Whoever is interrupted at the terminal, with all others, has that long before it is interrupted once more,
_END_WITHIN_S = 5.0
# and then that long, as what is stuck in a library does not notice.
_GONE_WITHIN_S = 30.0
_MOST = 1 << 20


def main(descriptor: int) -> None:
    """Serve until the launcher is gone; in a fork, one run."""
    # A Ctrl-C at the terminal is the runs' affair.
    signal.signal(signal.SIGINT, signal.SIG_IGN)
    with _received_socket(descriptor) as requests:
        repository, location, instance, since = json.loads(requests.recv(_MOST))
        files = _loaded(
            deserialize_value(repository, RepositoryPythonOrigin),
            location,
            deserialize_value(instance, InstanceRef),
            since,
        )
        line = _served(requests)
    if line is not None:
        _run(line, files)


def _received_socket(descriptor: int) -> socket.socket:
    """Processes that the code or a run starts would else hold it open."""
    os.set_inheritable(descriptor, False)  # noqa: FBT003 - the system has no names for arguments
    return socket.socket(fileno=descriptor)


def _loaded(
    repository: RepositoryPythonOrigin, location: str, instance: InstanceRef, since: int
) -> FilesRead:
    with FilesRead.noted(since) as files:
        for name in (*_LATER, *_storages(instance)):
            with suppress(ImportError):
                import_module(name)
        # NumPy's among them, which can be forked.
        before, connections = _threads(), _connections()
        # As Dagster's code server does it.
        with DagsterInstance.from_ref(instance) as opened:
            opened.inject_env_vars(location)
        recon_repository_from_origin(repository).get_definition().load_all_definitions()
    if more := _more_threads(before):
        _refuse(f"started threads: {', '.join(more)}")
    # What nobody holds is closed, or deleted, by that.
    gc.collect()
    if left := len(_connections() - connections):
        _refuse(f"left {left} sockets open, which all runs would write to")
    if made := files.left():
        _refuse(f"left {made[0]}, which would be gone after the first run")
    return files


def _refuse(why: str) -> NoReturn:
    sys.exit(f"mv_assets: runs can't be forked: loading the code has {why}")


def _connections() -> set[str]:
    found = set()
    for each in Path("/proc/self/fd").iterdir():
        with suppress(OSError):
            found.add(str(each.readlink()))
    return {name for name in found if name.startswith("socket:")}


def _threads() -> set[Path]:
    """Also those that Python does not know: a fork has none of them, and waits for them for ever."""
    return set(Path("/proc/self/task").iterdir())


def _more_threads(before: set[Path]) -> list[str]:
    """The names of those that have been started, and have not ended; the system takes a moment to notice."""
    for _ in range(20):
        more = _threads() - before
        if not more:
            return []
        time.sleep(0.05)
    names = set()
    for each in more:
        with suppress(OSError):
            names.add((each / "comm").read_text().strip())
    return sorted(names)


def _storages(instance: InstanceRef) -> Iterable[str]:
    """The modules of what an instance consists of."""
    parts = [getattr(instance, name, None) for name in instance._fields]
    return [part.module_name for part in parts if isinstance(part, ConfigurableClassData)]


def _served(requests: socket.socket) -> socket.socket | None:
    """The line of a run, in the process that was forked for it; None once the launcher is gone."""
    # The system takes the dead away.
    signal.signal(signal.SIGCHLD, signal.SIG_IGN)
    # What was printed meanwhile would else be printed by each run.
    sys.stdout.flush()
    sys.stderr.flush()
    gc.collect()
    # A collection in a run would copy the memory that it has in common with this.
    gc.freeze()
    with suppress(BrokenPipeError):
        requests.send(LOADED)
    while True:
        request, descriptors, _, _ = socket.recv_fds(requests, 1, 1)
        if not request:
            return None
        line = _received_socket(descriptors[0])
        if os.fork() == 0:
            requests.close()
            return line
        line.close()


def _run(line: socket.socket, files: FilesRead) -> None:
    signal.signal(signal.SIGCHLD, signal.SIG_DFL)
    signal.signal(signal.SIGINT, signal.default_int_handler)
    changed = files.changed()
    try:
        line.sendall(
            b"%s %d" % (READY, os.getpid())
            if changed is None
            else b"%s %s" % (OUTDATED, os.fsencode(changed))
        )
    except BrokenPipeError:
        # The launcher has not waited for it.
        return
    what = _received(line)
    if what is None:
        return
    _draw_lots_anew()
    threading.Thread(target=_end_with, args=(line,), name="end with the launcher", daemon=True).start()
    execute_run(what)


def _draw_lots_anew() -> None:
    """Random numbers of Python's differ from fork to fork by themselves; NumPy's would be the same in all."""
    if "numpy" in sys.modules:
        sys.modules["numpy"].random.seed()


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
    time.sleep(_GONE_WITHIN_S)
    os._exit(1)


if __name__ == "__main__":
    main(int(sys.argv[1]))
