"""`mv-assets metrics`: what monitoring asks of the views, once or for a scraper."""

from __future__ import annotations

import signal
import threading
from collections.abc import Callable, Iterator
from typing import Any

import click
from prometheus_client import CollectorRegistry, start_http_server
from prometheus_client.core import Metric
from prometheus_client.registry import Collector

from mv_assets.cli.session import Session
from mv_assets.project import Project
from mv_assets.reports.metrics import Metrics

# A scraper gives up after ten seconds, and would then know nothing at all.
_PATIENCE_S = 8.0
_LOOPBACK = "127.0.0.1"
_HIGHEST_PORT = 65_535


@click.command(epilog="Example: mv-assets metrics --listen 127.0.0.1:9464")
@click.argument("views", nargs=-1, metavar="[VIEW]...")
@click.option(
    "--listen",
    metavar="HOST:PORT",
    help="Serve them at /metrics until Ctrl-C; with :PORT alone, to this machine only.",
)
@click.pass_context
def metrics(ctx: click.Context, views: tuple[str, ...], *, listen: str | None) -> None:
    """Print metrics of the views as OpenMetrics text, or serve them to a scraper.

    They are read from the state alone; what can't be read is `mv_assets_up 0`, and exit code 1.
    """
    session: Session = ctx.obj
    catalog = session.catalog(schemas=False)
    for name in views:
        catalog.view(name)

    def read() -> Metrics:
        with Project.of(catalog, who="mv-assets metrics") as project:
            return project.metrics(*views)

    scraped = _Scraped(read)
    if listen is not None:
        _serve(scraped, *_address(listen))
        return
    found = scraped.now()
    click.echo(found.text(), nl=False)
    if found.status is None:
        ctx.exit(1)


class _Scraped(Collector):
    """Reads the state when it is asked, and waits for it only so long. One at a time reads."""

    def __init__(self, read: Callable[[], Metrics], patience_s: float = _PATIENCE_S) -> None:
        self._read = read
        self._patience_s = patience_s
        self._lock = threading.Lock()
        self._reading: _Reading | None = None
        self._said: str | None = None

    def collect(self) -> Iterator[Metric]:
        yield from self.now().collect()

    def now(self) -> Metrics:
        """The metrics, or that they can't be had now."""
        with self._lock:
            # What was given up before may be on its way still: another one would only wait beside it.
            if self._reading is None or self._reading.ended.is_set():
                self._reading = _Reading(self._read)
            reading = self._reading
        ended = reading.ended.wait(self._patience_s)
        if ended and reading.error is not None:
            raise reading.error
        found = reading.found if ended and reading.found is not None else Metrics(None)
        self._tell(found)
        return found

    def _tell(self, found: Metrics) -> None:
        """Say why there are none, once."""
        said = None
        if found.status is None:
            why = "it does not answer" if found.error is None else str(found.error)
            said = f"the state can't be read: {why}"
        if said is not None and said != self._said:
            click.echo(said, err=True)
        self._said = said


class _Reading:
    """One reading of the state, in a thread that keeps nobody from ending."""

    def __init__(self, read: Callable[[], Metrics]) -> None:
        self.ended = threading.Event()
        self.found: Metrics | None = None
        self.error: BaseException | None = None
        threading.Thread(target=self._run, args=(read,), daemon=True).start()

    def _run(self, read: Callable[[], Metrics]) -> None:
        try:
            self.found = read()
        except BaseException as error:  # noqa: BLE001 - whoever waits for it raises it
            self.error = error
        finally:
            self.ended.set()


def _address(given: str) -> tuple[str, int]:
    host, colon, port = given.rpartition(":")
    if not colon or not port.isascii() or not port.isdigit() or int(port) > _HIGHEST_PORT:
        raise click.UsageError(f"--listen is HOST:PORT or :PORT, as {_LOOPBACK}:9464, not {given!r}")
    return host.removeprefix("[").removesuffix("]") or _LOOPBACK, int(port)


def _serve(scraped: _Scraped, host: str, port: int) -> None:
    """Serve until SIGINT or SIGTERM."""
    registry = CollectorRegistry(auto_describe=False)
    registry.register(scraped)
    try:
        server, thread = start_http_server(port, host, registry)
    except (OSError, UnicodeError) as error:
        why = getattr(error, "strerror", None) or str(error)
        raise click.UsageError(f"can't listen on {host}:{port}: {why}; choose another port") from None
    ended = threading.Event()

    def end(_signal: int, _frame: Any) -> None:
        ended.set()

    before = {each: signal.signal(each, end) for each in (signal.SIGINT, signal.SIGTERM)}
    try:
        shown = f"[{host}]" if ":" in host else host
        click.echo(f"metrics are at http://{shown}:{server.server_port}/metrics; Ctrl-C ends this", err=True)
        ended.wait()
    finally:
        server.shutdown()
        thread.join()
        server.server_close()
        for each, handler in before.items():
            signal.signal(each, handler)
