"""What runs on this machine is asked directly, whatever proxy the environment names."""

from __future__ import annotations

import os
import subprocess
import sys

import pytest

from mv_assets.spark.proxies import direct

LOCAL = "127.0.0.1,localhost"
NOBODY = "http://127.0.0.1:9"
# In Spark's place stands what only tells that it was asked; in a process of its own, as others have Spark.
ASKS = """
import os, sys, warnings
from concurrent.futures import ThreadPoolExecutor
import grpc
warnings.simplefilter("ignore")
from mv_assets.spark.startup import attached

class Told(grpc.GenericRpcHandler):
    def service(self, details):
        print("asked", flush=True)

server = grpc.server(ThreadPoolExecutor(1), handlers=[Told()])
port = server.add_insecure_port("127.0.0.1:0")
server.start()
try:
    attached(f"sc://127.0.0.1:{port}").version
except Exception as error:
    print(type(error).__name__, flush=True)
os._exit(0)
"""


@pytest.mark.parametrize(
    ("given", "usual", "grpc"),
    [
        ({}, (LOCAL, LOCAL), LOCAL),
        ({"no_proxy": "a.com, b.com"}, (f"a.com,b.com,{LOCAL}",) * 2, f"a.com,b.com,{LOCAL}"),
        ({"NO_PROXY": "a.com"}, (f"a.com,{LOCAL}",) * 2, f"a.com,{LOCAL}"),
        ({"no_proxy": "", "NO_PROXY": "localhost"}, ("localhost,127.0.0.1",) * 2, "localhost,127.0.0.1"),
        ({"no_proxy": "a", "NO_PROXY": "b"}, (f"a,{LOCAL}", f"b,{LOCAL}"), f"a,{LOCAL}"),
        ({"no_proxy": "a", "no_grpc_proxy": "b"}, (f"a,{LOCAL}",) * 2, f"b,{LOCAL}"),
        ({"no_proxy": "*"}, ("*", "*"), f"*,{LOCAL}"),
    ],
)
def test_what_is_local_joins_what_is_excepted_already(
    given: dict[str, str], usual: tuple[str, str], grpc: str
) -> None:
    found = direct({"http_proxy": NOBODY, **given})
    assert found == {"no_proxy": usual[0], "NO_PROXY": usual[1], "no_grpc_proxy": grpc}
    assert direct(found) == found


@pytest.mark.parametrize("excepted", ["", "*"])
@pytest.mark.processes
def test_a_warm_spark_is_asked_without_the_proxy(excepted: str) -> None:
    ran = subprocess.run(  # noqa: S603 - our own source
        [sys.executable, "-c", ASKS],
        env={**os.environ, "http_proxy": NOBODY, "https_proxy": NOBODY, "no_proxy": excepted},
        capture_output=True,
        text=True,
        check=True,
        timeout=60,
    )
    assert ran.stdout.splitlines() == ["asked", "SparkConnectGrpcException"]
