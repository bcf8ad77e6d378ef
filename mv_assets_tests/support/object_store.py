"""A real S3 server on loopback, and a doorkeeper before it who can refuse, and stop the clock."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from datetime import datetime
from html import unescape
from threading import Thread
from typing import Any
from urllib.parse import quote
from urllib.request import Request, urlopen

from moto.moto_server.werkzeug_app import DomainDispatcherApplication, create_backend_app
from werkzeug.http import http_date
from werkzeug.serving import WSGIRequestHandler, make_server
from werkzeug.wrappers import Request as Asked
from werkzeug.wrappers import Response

KEY, SECRET = "the-access-key", "the-s3cr3t-key"
# The test's own, for which the doorkeeper opens whatever others may.
_OWN = "the-test-itself"
# What the doorkeeper answers in place of the store; None lets a request pass.
Rule = Callable[[Asked], Response | None]


class _Quiet(WSGIRequestHandler):
    def log(self, *_: Any) -> None:
        """Nobody reads it."""


@dataclass
class ObjectStore:
    """The server. `keys` are the access keys that are let in, each to its buckets or, by None, to all."""

    keys: dict[str, frozenset[str] | None] = field(default_factory=lambda: {KEY: None})
    rules: list[Rule] = field(default_factory=list)
    asked: list[str] = field(default_factory=list)
    # When all that it holds was written, if its clock stands still; a listing adds the milliseconds.
    second: datetime | None = None
    millisecond: int = 0

    def __post_init__(self) -> None:
        self._moto = DomainDispatcherApplication(create_backend_app)
        self.server = make_server("127.0.0.1", 0, self, threaded=True, request_handler=_Quiet)

    def __call__(self, environ: dict[str, Any], start_response: Any) -> Iterable[bytes]:
        request = Asked(environ)
        self.asked.append(f"{request.method} {request.full_path.rstrip('?')}")
        for rule in (self._let_in, *self.rules):
            if (answer := rule(request)) is not None:
                return answer(environ, start_response)
        if self.second is None:
            passed: Iterable[bytes] = self._moto(environ, start_response)
            return passed
        return self._at(self.second, request)(environ, start_response)

    def _at(self, second: datetime, request: Asked) -> Response:
        found = Response.from_app(self._moto, request.environ)
        if "Last-Modified" in found.headers:
            found.headers["Last-Modified"] = http_date(second)
        if lists(request):
            listed = f"<LastModified>{second:%Y-%m-%dT%H:%M:%S}.{self.millisecond:03}Z</LastModified>"
            found.set_data(re.sub(rb"<LastModified>.*?</LastModified>", listed.encode(), found.get_data()))
        return found

    def _let_in(self, request: Asked) -> Response | None:
        signed = request.headers.get("Authorization", "")
        key = signed.partition("Credential=")[2].partition("/")[0]
        buckets = None if key == _OWN else self.keys.get(key, frozenset())
        bucket = request.path.lstrip("/").partition("/")[0]
        return None if buckets is None or bucket in buckets else refused(403, "AccessDenied")

    @property
    def endpoint(self) -> str:
        return f"http://127.0.0.1:{self.server.server_port}"

    def storage(self, key: str = KEY, secret: str = SECRET) -> dict[str, Any]:
        """How a project reaches it."""
        return {"endpoint": self.endpoint, "access_key": key, "secret_key": secret, "allow_http": True}

    def create(self, bucket: str) -> None:
        self._send("PUT", bucket)

    def put(self, path: str, content: bytes) -> None:
        """An object by bucket and key, whole or not at all."""
        self._send("PUT", path, content)

    def get(self, path: str) -> bytes:
        return self._send("GET", path)

    def names(self, bucket: str, prefix: str = "") -> list[str]:
        """The keys of a bucket that begin so."""
        listed = self._send("GET", bucket, query=f"?list-type=2&max-keys=100000&prefix={prefix}").decode()
        return [unescape(key) for key in re.findall("<Key>(.*?)</Key>", listed)]

    def delete(self, path: str) -> None:
        self._send("DELETE", path)

    def _send(self, method: str, path: str, content: bytes | None = None, query: str = "") -> bytes:
        signed = f"AWS4-HMAC-SHA256 Credential={_OWN}/20240101/us-east-1/s3/aws4_request"
        headers = {"Authorization": signed, "Content-Type": "application/octet-stream"}
        request = Request(f"{self.endpoint}/{quote(path)}{query}", content, headers, method=method)  # noqa: S310
        with urlopen(request) as answer:  # noqa: S310 - our own server
            said: bytes = answer.read()
        return said

    @contextmanager
    def ruled(self, rule: Rule) -> Iterator[None]:
        """The doorkeeper with one more rule for a while."""
        self.rules.append(rule)
        try:
            yield
        finally:
            self.rules.remove(rule)


def refused(status: int, code: str) -> Response:
    """An error as S3 writes it."""
    body = f"<?xml version='1.0'?><Error><Code>{code}</Code><Message>{code}</Message></Error>"
    return Response(body, status, content_type="application/xml")


def lists(request: Asked) -> bool:
    """Whether a request lists a bucket."""
    return request.args.get("list-type") == "2"


def later_page(request: Asked) -> bool:
    """Whether a request goes on with a listing."""
    return lists(request) and "continuation-token" in request.args


@contextmanager
def object_store() -> Iterator[ObjectStore]:
    """The server, while the block runs."""
    store = ObjectStore()
    thread = Thread(target=store.server.serve_forever, daemon=True)
    thread.start()
    try:
        yield store
    finally:
        store.server.shutdown()
        thread.join()
        store.server.server_close()
