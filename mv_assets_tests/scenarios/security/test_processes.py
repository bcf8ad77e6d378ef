"""A real `mv-assets dev` with keys of every kind: nobody who looks at the machine or the UI sees one."""

from __future__ import annotations

import re
import subprocess
import sys
import threading
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from datetime import UTC, datetime
from io import BytesIO
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
import yaml
from sqlalchemy import make_url

from mv_assets_tests.e2e.dagster import Dagster
from mv_assets_tests.support import engines
from mv_assets_tests.support.dev import UP, Dev, dev
from mv_assets_tests.support.iceberg_rest import RestCatalogServer, rest_catalog
from mv_assets_tests.support.object_store import ObjectStore, object_store
from mv_assets_tests.unit.state.faults import dump

pytestmark = [pytest.mark.slow, pytest.mark.processes, pytest.mark.e2e]
# In every secret here, and in nothing else that runs on the machine.
HUSH = "hu5h"
STORE_KEY, TOKEN = f"AKIA-{HUSH}-key", f"{HUSH}-token"
# What Spark is told, and the project as `dev` began with it.
FOR_THE_OWNER = {".mv_assets/logs/spark.properties", ".mv_assets/dev.project.yaml"}
ASKED = "SELECT count(*) AS n FROM stored"
ROWS = pa.table({"at": pa.array([datetime(2024, 1, day, tzinfo=UTC) for day in (1, 2, 3)])})
_EVENTS = """query($id: ID!) {
    logsForRun(runId: $id) { ... on EventConnection { events {
        __typename
        ... on MessageEvent { message }
        ... on DisplayableEvent { label description }
        ... on ErrorEvent { error { message stack causes { message stack } } }
        ... on ExecutionStepFailureEvent { failureMetadata { description } }
        ... on MaterializationEvent { metadataEntries { ...Metadata } }
    } } }
}
"""
_METADATA = """fragment Metadata on MetadataEntry {
    label
    description
    ... on TextMetadataEntry { text }
    ... on MarkdownMetadataEntry { mdStr }
    ... on UrlMetadataEntry { url }
    ... on PathMetadataEntry { path }
    ... on JsonMetadataEntry { jsonString }
}
"""
_INSTANCE = """{
    instance {
        info
        runLauncher { name }
        daemonHealth { allDaemonStatuses { lastHeartbeatErrors { message } } }
    }
    workspaceOrError { ... on Workspace { locationEntries { displayMetadata { key value } } } }
    runsOrError { ... on Runs { results { runConfigYaml tags { key value } } } }
}"""
_ASSETS = """{
    assetNodes { assetKey { path } description tags { key value } metadataEntries { ...Metadata } }
}
"""
_CODE = """{
    repositoriesOrError { ... on RepositoryConnection { nodes {
        allTopLevelResourceDetails {
            name description configFields { name defaultValueAsJson } configuredValues { key value }
        }
        sensors {
            name description metadata { assetKeys { path } }
            sensorState { ticks {
                status skipReason cursor error { message stack causes { message stack } }
            } }
        }
        jobs { name description }
    } } }
}"""


def parquet() -> bytes:
    out = BytesIO()
    pq.write_table(ROWS, out)
    return out.getvalue()


def table(name: str, **more: Any) -> dict[str, Any]:
    return {"name": name, "time_column": "at", "settle": "0s", **more}


def view(base: str) -> dict[str, Any]:
    sql = f"SELECT at AS day, count(*) AS n FROM {base} GROUP BY ALL"
    return {
        "name": f"of_{base}",
        "base": base,
        "sql": sql,
        "time_column": "day",
        "bucket": "1d",
        "start": "2024-01-01",
    }


def written(folder: Path, url: str, store: ObjectStore, catalog: RestCatalogServer) -> Path:
    """Tables by a store and by a catalog, one that Spark is refused and one that we are; all is published."""
    store.create("base", key=STORE_KEY)
    for name in ("stored", "refused"):
        store.put(f"base/{name}/a.parquet", parquet())
    with catalog.lock:
        catalog.catalog.create_namespace("db")
        catalog.catalog.create_table("db.listed", ROWS.schema).append(ROWS)
    catalog.token = TOKEN
    reached = {"type": "rest", "uri": f"http://127.0.0.1:{catalog.server_port}"}
    listed = {"format": "iceberg", "identifier": "db.listed"}
    bases = [
        table("stored", path="s3://base/stored"),
        table("refused", path="s3://base/refused"),
        table("listed", **listed, catalog={**reached, "token": TOKEN}),
        table("unlisted", **listed, catalog={**reached, "token": f"{HUSH}-wrong"}),
    ]
    project = {
        "state": make_url(url).set(password=f"{HUSH}-state").render_as_string(hide_password=False),
        "warehouse": "warehouse",
        "publish": {"catalog": {**reached, "token": TOKEN}, "namespace": "marts"},
        "spark": {
            "master": "local[2]",
            "conf": {
                **engines.SMALL,
                **engines.with_s3(),
                "spark.hadoop.fs.s3a.bucket.other.secret.key": f"{HUSH}-conf",
            },
        },
        "storage": {**store.storage(STORE_KEY, f"{HUSH}-secret"), "session_token": f"{HUSH}-session"},
        "tables": bases,
        "views": [view(each["name"]) for each in bases],
    }
    file = folder / "project.yaml"
    file.write_text(yaml.safe_dump(project))
    return file


@contextmanager
def watched() -> Iterator[set[str]]:
    """The command lines of all processes of the machine, as everybody may list them."""
    seen, over = set[str](), threading.Event()

    def watch() -> None:
        while not over.wait(0.1):
            for each in Path("/proc").glob("[0-9]*/cmdline"):
                with suppress(OSError):
                    seen.add(each.read_text(errors="replace").replace("\0", " "))

    thread = threading.Thread(target=watch)
    thread.start()
    try:
        yield seen
    finally:
        over.set()
        thread.join()


def said(folder: Path, *arguments: str) -> str:
    """What a command says beside it, right or wrong."""
    command = [str(Path(sys.executable).with_name("mv-assets")), *arguments]
    ran = subprocess.run(command, cwd=folder, capture_output=True, text=True, timeout=300, check=False)  # noqa: S603 - our own
    return ran.stdout + ran.stderr


def shown(dagster: Dagster) -> Iterator[str]:
    """What the UI can show of it."""
    for page in (_INSTANCE, _ASSETS + _METADATA, _CODE):
        yield repr(dagster.graphql.ask(page))
    for run in dagster.runs():
        yield repr(dagster.graphql.ask(_EVENTS + _METADATA, id=run.id))


def at_work(running: Dev, dagster: Dagster, catalog: RestCatalogServer) -> bool:
    """Whether what can be computed is computed and published, and what can't has failed."""
    done = {asset for run in dagster.runs() if run.status == "SUCCESS" for asset in run.assets}
    failed = {asset for run in dagster.runs() if run.status == "FAILURE" for asset in run.assets}
    with catalog.lock:
        known = {name for _, name in catalog.catalog.list_tables("marts")} if done else set()
    return (
        {"of_stored", "of_listed"} <= done & known and "of_refused" in failed and running.spark() is not None
    )


def test_no_key_is_among_processes_logs_pages_metrics_or_what_is_published(
    tmp_path: Path, empty_postgres: str
) -> None:
    with object_store() as store, rest_catalog(tmp_path / "rest") as catalog:
        file = written(tmp_path, empty_postgres, store, catalog)
        forbidden = store.refusing(403, "AccessDenied", r"/refused/a", agent="Hadoop")
        with forbidden, watched() as processes, dev(tmp_path, MV_ASSETS_SENSOR_INTERVAL="2") as running:
            running.until(lambda: UP in running.said())
            [address] = re.findall(r"http://127\.0\.0\.1:\d+", running.said())
            dagster = Dagster.at(address)
            running.until(lambda: at_work(running, dagster, catalog))
            texts = {
                "the metrics": said(tmp_path, "metrics"),
                "the status": said(tmp_path, "status", "--json"),
                "an answer": said(tmp_path, "query", ASKED, "--format", "csv", "--own-spark"),
                "the UI": "".join(shown(dagster)),
                "dev": running.said(),
            }
        texts["the list of processes"] = "\n".join(processes)
        texts["the state"] = repr(dump(empty_postgres))
        with catalog.lock:
            tables = [catalog.catalog.load_table(f"marts.of_{name}") for name in ("stored", "listed")]
            texts["what is published"] = repr([each.metadata for each in tables])
    # They are there, and say what they are for.
    for what, expected in {
        "the metrics": 'view="of_stored"',
        "the status": "unlisted",
        "an answer": "n\n3\n",
        "the UI": "AccessDenied",
        "the list of processes": "SparkConnectServer",
        "the state": "of_refused",
        "what is published": "mv-assets.version",
    }.items():
        assert expected in texts[what], f"{what}: {texts[what][:2_000]}"
    found = [
        f"{what}: {text[max(0, at - 300) : at + 60]}"
        for what, text in texts.items()
        if (at := text.find(HUSH)) >= 0
    ]
    assert not found, "\n".join(found)
    told = {path for path in tmp_path.rglob("*") if path.is_file() and HUSH.encode() in path.read_bytes()}
    assert {str(path.relative_to(tmp_path)) for path in told - {file}} == FOR_THE_OWNER
    assert all(path.stat().st_mode & 0o077 == 0 for path in told - {file})
