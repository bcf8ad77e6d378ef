"""The keys of a base table's catalog or store are in nothing that is said or stored of it."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Any

import pytest
import yaml
from pydantic import ValidationError

from mv_assets.config import DeltaTable, IcebergTable, ParquetTable, Spark
from mv_assets_tests.scenarios.security.test_published import NOWHERE, UNREACHABLE, assert_silent
from mv_assets_tests.scenarios.security.test_secrets import said_by_commands
from mv_assets_tests.unit.state.faults import dump

_STORE = {
    "endpoint": f"http://{NOWHERE}",
    "allow_http": True,
    "access_key": "AKIA-s3cr3t",
    "secret_key": "s3cr3t",
    "session_token": "s3cr3t",
}
TABLES: dict[str, dict[str, Any]] = {
    **{
        f"catalog with {name}": {"format": "iceberg", "identifier": "a.b", "catalog": dict(catalog)}
        for name, catalog in UNREACHABLE.items()
    },
}
# Arrow tries again for seconds.
STORED: dict[str, dict[str, Any]] = {
    "files": {"path": "s3://b/t", "storage": _STORE},
    "metadata": {"format": "iceberg", "path": "s3://b/t", "storage": _STORE},
}


def written(folder: Path, table: Mapping[str, Any]) -> Path:
    view = {
        "name": "v",
        "base": "far",
        "sql": "SELECT at AS day, count(*) AS n FROM far GROUP BY ALL",
        "time_column": "day",
        "bucket": "1d",
        "start": "2024-01-01",
    }
    project = {"tables": [{"name": "far", "time_column": "at", **table}], "views": [view]}
    file = folder / "project.yaml"
    file.write_text(yaml.safe_dump({"state": "sqlite:///state.db", "warehouse": "warehouse", **project}))
    return file


@pytest.mark.parametrize(
    "table",
    [
        *(pytest.param(table, id=name) for name, table in TABLES.items()),
        *(pytest.param(table, id=name, marks=pytest.mark.slow) for name, table in STORED.items()),
    ],
)
def test_a_table_that_can_not_be_listed_keeps_its_keys(tmp_path: Path, table: Mapping[str, Any]) -> None:
    file = written(tmp_path, table)
    said = [*said_by_commands(file, ("project check", "refresh", "plan --json", "status"))]
    assert any("far" in each for each in said)
    assert_silent(*said)
    stored = dump(f"sqlite:///{tmp_path}/state.db")
    assert "far" in str(stored["mv_trouble"])
    assert_silent(repr(stored))


@pytest.mark.parametrize(
    "declared",
    [
        DeltaTable(name="a", format="delta", path="s3://b/t", storage_options={"key": "s3cr3t"}),
        IcebergTable(name="a", format="iceberg", identifier="a.b", catalog={"token": "s3cr3t"}),
        ParquetTable(name="a", path="s3://AKIA:s3cr3t@b/t"),
        Spark(conf={"spark.hadoop.fs.s3a.secret.key": "s3cr3t"}),
        Spark(remote="sc://host/;token=s3cr3t"),
    ],
    ids=["Delta", "Iceberg", "Parquet", "Spark", "Connect"],
)
def test_what_is_declared_is_not_repeated_with_its_keys(declared: object) -> None:
    assert_silent(repr(declared), str(declared))


@pytest.mark.parametrize(
    "path",
    ["https://me:s3cr3t@host/t", "gs://me:s3cr3t@b/t", "abfss://c@a.dfs.core.windows.net/t?sv=1&SIG=s3cr3t"],
)
def test_a_path_with_keys_in_it_is_refused_and_not_repeated(path: str) -> None:
    """A table's path is shown: in Dagster, and in messages."""
    with pytest.raises(ValidationError, match="path has credentials in it") as refused:
        ParquetTable(name="a", path=path)
    assert_silent(refused.value.errors()[0]["msg"])
