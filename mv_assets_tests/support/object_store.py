"""A real S3 server on loopback, and a doorkeeper before it who can refuse, and stop the clock.

In a process of its own: not every library lets go of this one's interpreter while it waits for an answer.
"""

from __future__ import annotations

import json
import re
import subprocess
import sys
from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from dataclasses import asdict, dataclass, field
from datetime import UTC, datetime
from html import unescape
from typing import Any
from urllib.parse import quote
from urllib.request import Request, urlopen

from moto.moto_server.werkzeug_app import DomainDispatcherApplication, create_backend_app
from werkzeug.http import http_date
from werkzeug.serving import WSGIRequestHandler, make_server
from werkzeug.wrappers import Request as Asked
from werkzeug.wrappers import Response

KEY, SECRET = "the-access-key", "the-s3cr3t-key"
LISTING = r"list-type=2"
LATER_PAGE = r"continuation-token="
# The test's own, for which the doorkeeper opens whatever others may.
_OWN = "the-test-itself"
_CONTROL = "/-/doorkeeper"


@dataclass
class Rule:
    """What the doorkeeper refuses: requests that a pattern is found in, of an agent, so many times."""

    status: int
    code: str
    pattern: str = ""
    agent: str = ""
    times: int = 1_000_000

    def refuses(self, line: str, agent: str) -> bool:
        if self.times > 0 and re.search(self.pattern, line) and self.agent in agent:
            self.times -= 1
            return True
        return False


@dataclass
class _Orders:
    """What the doorkeeper was told. Without a bucket, a key opens all."""

    keys: dict[str, str | None] = field(default_factory=lambda: {KEY: None})
    rules: list[Rule] = field(default_factory=list)
    # When all that the store holds was written, if its clock stands still; a listing adds the milliseconds.
    second: float | None = None
    millisecond: int = 0


class Doorkeeper:
    """The server's process: moto, and who stands before it."""

    def __init__(self) -> None:
        self._moto = DomainDispatcherApplication(create_backend_app)
        self._orders = _Orders()
        self._asked: list[str] = []

    def __call__(self, environ: dict[str, Any], start_response: Any) -> Iterable[bytes]:
        request = Asked(environ)
        answer = self._told(request) if request.path == _CONTROL else self._passed(request)
        if answer is not None:
            return answer(environ, start_response)
        passed: Iterable[bytes] = self._moto(environ, start_response)
        return passed

    def _told(self, request: Asked) -> Response:
        if request.method == "PUT":
            given = json.loads(request.get_data())
            self._orders = _Orders(**{**given, "rules": [Rule(**rule) for rule in given["rules"]]})
            self._asked.clear()
        return Response(json.dumps(self._asked))

    def _passed(self, request: Asked) -> Response | None:
        line, agent = f"{request.method} {request.full_path.rstrip('?')}", str(request.user_agent)
        self._asked.append(line)
        signed = request.headers.get("Authorization", "")
        key = signed.partition("Credential=")[2].partition("/")[0]
        if key == _OWN:
            return None
        bucket = request.path.lstrip("/").partition("/")[0]
        if self._orders.keys.get(key, "") not in (None, bucket):
            return _refused(403, "AccessDenied")
        for rule in self._orders.rules:
            if rule.refuses(line, agent):
                return _refused(rule.status, rule.code)
        return None if self._orders.second is None else self._at(self._orders.second, request)

    def _at(self, second: float, request: Asked) -> Response:
        when, found = datetime.fromtimestamp(second, UTC), Response.from_app(self._moto, request.environ)
        if "Last-Modified" in found.headers:
            found.headers["Last-Modified"] = http_date(when)
        if LISTING in request.full_path:
            listed = f"<LastModified>{when:%Y-%m-%dT%H:%M:%S}.{self._orders.millisecond:03}Z</LastModified>"
            found.set_data(re.sub(rb"<LastModified>.*?</LastModified>", listed.encode(), found.get_data()))
        return found


def _refused(status: int, code: str) -> Response:
    """An error as S3 writes it."""
    body = f"<?xml version='1.0'?><Error><Code>{code}</Code><Message>{code}</Message></Error>"
    return Response(body, status, content_type="application/xml")


class ObjectStore:
    """The server, to the tests."""

    def __init__(self, port: int) -> None:
        self.endpoint = f"http://127.0.0.1:{port}"
        self._orders = _Orders()

    def storage(self, key: str = KEY, secret: str = SECRET) -> dict[str, Any]:
        """How a project reaches it."""
        return {"endpoint": self.endpoint, "access_key": key, "secret_key": secret, "allow_http": True}

    def create(self, bucket: str, key: str | None = None) -> None:
        """A bucket, and a key that opens it and no other."""
        self._send("PUT", bucket)
        if key is not None:
            self._orders.keys[key] = bucket
        self._tell()

    def put(self, path: str, content: bytes) -> None:
        """An object by bucket and key, whole or not at all."""
        self._send("PUT", path, content)

    def get(self, path: str) -> bytes:
        return self._send("GET", path)

    def delete(self, path: str) -> None:
        self._send("DELETE", path)

    def names(self, bucket: str, prefix: str = "") -> list[str]:
        """The keys of a bucket that begin so."""
        listed = self._send("GET", bucket, query=f"?list-type=2&max-keys=100000&prefix={prefix}").decode()
        return [unescape(key) for key in re.findall("<Key>(.*?)</Key>", listed)]

    def asked(self) -> list[str]:
        """What was asked since it was last told something."""
        found: list[str] = json.loads(self._send("GET", _CONTROL.lstrip("/")))
        return found

    def forget(self) -> None:
        """Begin anew with what was asked."""
        self._tell()

    @contextmanager
    def refusing(self, status: int, code: str, pattern: str = "", **more: Any) -> Iterator[None]:
        """The doorkeeper with a rule for a while."""
        self._orders.rules.append(Rule(status, code, pattern, **more))
        self._tell()
        try:
            yield
        finally:
            self._orders.rules.pop()
            self._tell()

    @contextmanager
    def standing_still(self, second: datetime, millisecond: int = 0) -> Iterator[None]:
        """The store, whose clock stands still for a while."""
        self._orders.second, self._orders.millisecond = second.timestamp(), millisecond
        self._tell()
        try:
            yield
        finally:
            self._orders.second = None
            self._tell()

    def _tell(self) -> None:
        self._send("PUT", _CONTROL.lstrip("/"), json.dumps(asdict(self._orders)).encode())

    def _send(self, method: str, path: str, content: bytes | None = None, query: str = "") -> bytes:
        signed = f"AWS4-HMAC-SHA256 Credential={_OWN}/20240101/us-east-1/s3/aws4_request"
        headers = {"Authorization": signed, "Content-Type": "application/octet-stream"}
        request = Request(f"{self.endpoint}/{quote(path)}{query}", content, headers, method=method)  # noqa: S310
        with urlopen(request) as answer:  # noqa: S310 - our own server
            said: bytes = answer.read()
        return said


@contextmanager
def object_store() -> Iterator[ObjectStore]:
    """The server, while the block runs."""
    command = [sys.executable, "-m", __name__]
    with subprocess.Popen(command, stdout=subprocess.PIPE, text=True) as process:  # noqa: S603 - ourselves
        try:
            yield ObjectStore(int(process.stdout.readline() if process.stdout else ""))
        finally:
            process.kill()


class _Quiet(WSGIRequestHandler):
    def log(self, *_: Any) -> None:
        """Nobody reads it."""


if __name__ == "__main__":
    server = make_server("127.0.0.1", 0, Doorkeeper(), threaded=True, request_handler=_Quiet)
    sys.stdout.write(f"{server.server_port}\n")
    sys.stdout.flush()
    server.serve_forever()
