"""A real Iceberg REST catalog on loopback: the protocol's answers, given by a SQL catalog behind it.

It may be told to ask for a token, or not to answer any more.
"""

from __future__ import annotations

import json
import threading
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import Any
from urllib.parse import unquote, urlsplit

from pyiceberg.catalog.rest import CreateTableRequest
from pyiceberg.catalog.sql import SqlCatalog
from pyiceberg.exceptions import (
    CommitFailedException,
    NamespaceAlreadyExistsError,
    NoSuchNamespaceError,
    NoSuchTableError,
    TableAlreadyExistsError,
)
from pyiceberg.partitioning import UNPARTITIONED_PARTITION_SPEC
from pyiceberg.table import CommitTableRequest, StagedTable, Table
from pyiceberg.table.sorting import UNSORTED_SORT_ORDER

_STATUS: dict[type[Exception], int] = {
    NoSuchTableError: 404,
    NoSuchNamespaceError: 404,
    TableAlreadyExistsError: 409,
    NamespaceAlreadyExistsError: 409,
    CommitFailedException: 409,
}


class RestCatalogServer(ThreadingHTTPServer):
    daemon_threads = True

    def __init__(self, folder: Path) -> None:
        super().__init__(("127.0.0.1", 0), _Handler)
        self.catalog = SqlCatalog(
            "behind", uri=f"sqlite:///{folder}/behind.db", warehouse=f"file://{folder}/tables"
        )
        # The SQL catalog is one of a process, and not of its threads.
        self.lock = threading.Lock()
        # The token that it asks for, and the one that those who ask have.
        self.token: str | None = None
        self.given: str | None = None
        self.may_create_namespaces = True
        # What it gives those who ask to reach a table's files with.
        self.lent: dict[str, str] = {}
        self.stalled = threading.Event()
        self.resumed = threading.Event()
        self.asked: list[str] = []

    @property
    def properties(self) -> dict[str, str]:
        found = {"type": "rest", "uri": f"http://127.0.0.1:{self.server_port}"}
        return found if self.given is None else {**found, "token": self.given}

    def handle_error(self, request: Any, client_address: Any) -> None:
        """Whoever lost patience has hung up."""


class _Handler(BaseHTTPRequestHandler):
    server: RestCatalogServer
    protocol_version = "HTTP/1.1"

    def log_message(self, *_given: Any) -> None:
        """Tests print what they want to be seen."""

    def do_GET(self) -> None:
        self._answer()

    do_POST = do_HEAD = do_DELETE = do_GET  # noqa: N815 - what the library calls

    def _answer(self) -> None:
        length = int(self.headers.get("Content-Length") or 0)
        body = json.loads(self.rfile.read(length) or b"{}")
        path = [unquote(part) for part in urlsplit(self.path).path.split("/")[2:]]
        self.server.asked.append(f"{self.command} {'/'.join(path)}")
        if self.server.stalled.is_set():
            self.server.resumed.wait()
            self.close_connection = True
            return
        if self.server.token is not None and self.headers["Authorization"] != f"Bearer {self.server.token}":
            said = f"{self.headers['Authorization']} is not known here"
            self._send(401, {"error": {"message": said, "type": "NotAuthorizedException", "code": 401}})
            return
        try:
            with self.server.lock:
                found = self._found(path, body)
        except Exception as error:  # noqa: BLE001 - said to who asked
            status = _STATUS.get(type(error), 500)
            self._send(
                status, {"error": {"message": str(error), "type": type(error).__name__, "code": status}}
            )
        else:
            self._send(200 if found is not None else 204, found)

    def _found(self, path: list[str], body: dict[str, Any]) -> Any:
        match (self.command, path):
            case ("GET", ["config"]):
                return {"defaults": {}, "overrides": {}}
            case ("POST", ["namespaces"]):
                if not self.server.may_create_namespaces:
                    raise CommitFailedException("nobody may create namespaces here")
                self.server.catalog.create_namespace(tuple(body["namespace"]))
                return {"namespace": body["namespace"], "properties": {}}
            case ("GET" | "HEAD", ["namespaces", namespace]):
                found = self.server.catalog.load_namespace_properties(namespace)
                return {"namespace": namespace.split("."), "properties": found}
            case ("POST", ["namespaces", namespace, "tables"]):
                return self._created(namespace, CreateTableRequest.model_validate({"location": None, **body}))
            case ("GET" | "HEAD", ["namespaces", namespace, "tables", name]):
                return _shown(self.server.catalog.load_table((namespace, name)), self.server.lent)
            case ("POST", ["namespaces", namespace, "tables", name]):
                return self._committed((namespace, name), CommitTableRequest.model_validate(body))
            case ("DELETE", ["namespaces", namespace, "tables", name]):
                return self.server.catalog.drop_table((namespace, name))
        raise NoSuchTableError(self.path)

    def _created(self, namespace: str, asked: CreateTableRequest) -> Any:
        make: Callable[..., Table] = self.server.catalog.create_table
        if asked.stage_create:
            make = self.server.catalog._create_staged_table
        self.server.catalog.load_namespace_properties(namespace)
        return _shown(
            make(
                (namespace, asked.name),
                asked.table_schema,
                asked.location,
                asked.partition_spec or UNPARTITIONED_PARTITION_SPEC,
                asked.write_order or UNSORTED_SORT_ORDER,
                asked.properties,
            ),
            self.server.lent,
        )

    def _committed(self, identifier: tuple[str, str], asked: CommitTableRequest) -> Any:
        try:
            table = self.server.catalog.load_table(identifier)
        except NoSuchTableError:
            table = StagedTable(identifier, None, "", None, self.server.catalog)  # type: ignore[arg-type]
        done = self.server.catalog.commit_table(table, asked.requirements, asked.updates)
        return json.loads(done.model_dump_json(by_alias=True))

    def _send(self, status: int, found: Any) -> None:
        body = b"" if found is None else json.dumps(found).encode()
        self.send_response(status)
        self.send_header("Content-Type", "application/json")
        self.send_header("Content-Length", str(len(body)))
        self.end_headers()
        if self.command != "HEAD":
            self.wfile.write(body)


def _shown(table: Table, lent: Mapping[str, str]) -> dict[str, Any]:
    location = None if isinstance(table, StagedTable) else table.metadata_location
    return {
        "metadata-location": location,
        "metadata": json.loads(table.metadata.model_dump_json()),
        "config": dict(lent),
    }


@contextmanager
def rest_catalog(folder: Path) -> Iterator[RestCatalogServer]:
    folder.mkdir(parents=True, exist_ok=True)
    with RestCatalogServer(folder) as server:
        thread = threading.Thread(target=server.serve_forever)
        thread.start()
        yield server
        server.resumed.set()
        server.shutdown()
        thread.join()
        server.catalog.close()
