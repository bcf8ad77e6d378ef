"""How a project says where object stores are, and that it keeps their keys to itself."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import jsonschema
import pytest
import yaml
from pydantic import ValidationError

from mv_assets.config import DeclaredProject, ParquetTable, Storage, WarehouseFolder, declare, read
from mv_assets.config.errors import ProjectError
from mv_assets.config.storage import as_s3, as_s3a, bucket_of
from mv_assets.errors import MvError
from mv_assets.tables.files.stores import for_deltalake, for_pyiceberg

KEYS = {"access_key": "AKIA1", "secret_key": "s3cr3t"}
MINIO = {"endpoint": "http://minio:9000", "allow_http": True, **KEYS}


def project(folder: Path, **content: Any) -> DeclaredProject:
    file = folder / "project.yaml"
    file.write_text(yaml.safe_dump(content))
    jsonschema.validate(content, DeclaredProject.model_json_schema())
    return read(file, {}).finished()


def mistakes(folder: Path, text: str) -> list[str]:
    file = folder / "project.yaml"
    file.write_text(text)
    with pytest.raises(ProjectError) as refused:
        read(file, {"SECRET": "s3cr3t"}).finished()
    assert "s3cr3t" not in str(refused.value)
    return [str(mistake) for mistake in refused.value.mistakes]


def test_the_storage_of_the_project_is_that_of_what_says_nothing_itself(tmp_path: Path) -> None:
    own = {"region": "eu-central-1"}
    found = project(
        tmp_path,
        storage=MINIO,
        warehouse="s3a://views/wh",
        tables=[
            {"name": "near", "path": "near", "format": "parquet"},
            {"name": "far", "path": "s3://lake/far", "format": "parquet"},
            {"name": "own", "path": "s3://other/own", "format": "delta", "storage": own},
            {"name": "named", "format": "iceberg", "identifier": "a.b", "catalog": {"type": "rest"}},
        ],
    )
    default = Storage.model_validate(MINIO)
    assert found.warehouse == WarehouseFolder(path="s3://views/wh", storage=default)
    assert [table.storage for table in found.tables] == [None, default, Storage.model_validate(own), default]
    in_python = declare(
        [ParquetTable(name="far", path="s3://lake/far")], [], warehouse="s3://views/wh", storage=MINIO
    )
    assert in_python.finished().tables[0].storage == default


def test_a_warehouse_may_have_a_storage_of_its_own(tmp_path: Path) -> None:
    found = project(tmp_path, warehouse={"path": "s3://views/wh", "storage": KEYS})
    assert found.warehouse.storage is not None
    assert found.warehouse.storage.credentials() == KEYS


@pytest.mark.parametrize(
    ("storage", "said"),
    [
        ("{endpiont: x}", "line 1, storage.endpiont: not a known key; did you mean endpoint?"),
        ("{endpoint: minio}", "line 1, storage.endpoint: not the address of a store; write https://HOST"),
        ("{endpoint: 'http://me:s3cr3t@minio'}", "line 1, storage.endpoint: not the address of a store"),
        ("{endpoint: 'http://minio'}", "line 1, storage: its endpoint is not encrypted"),
        ("{access_key: '${SECRET}'}", "line 1, storage: access_key and secret_key belong together"),
        ("{session_token: s3cr3t}", "line 1, storage: session_token belongs to an access_key"),
        ("{secret_key: '', access_key: a}", "line 1, storage.secret_key: empty"),
        ("{access_key: [s3cr3t], secret_key: s3cr3t}", "line 1, storage.access_key: "),
        ("{anonymous: true, access_key: a, secret_key: s3cr3t}", "line 1, storage: anonymous asks without"),
        ("s3cr3t", "line 1, storage: not a mapping"),
    ],
)
def test_a_storage_that_is_wrong_is_refused_with_its_line(tmp_path: Path, storage: str, said: str) -> None:
    [found] = mistakes(tmp_path, f"storage: {storage}\n")
    assert found.startswith(said)


@pytest.mark.parametrize(
    ("table", "said"),
    [
        ("{name: t, path: here, storage: {region: a}}", "storage says how s3:// is reached"),
        ("{name: t, path: 's3://a:s3cr3t/x@b/t'}", "path names no bucket of a store"),
        ("{name: t, path: 's3://b/t?access_key=s3cr3t'}", "path names no bucket of a store"),
        (
            "{name: t, path: 's3://a:s3cr3t@b/t', storage: {access_key: a, secret_key: s3cr3t}}",
            "path has",
        ),
        (
            "{name: t, path: 's3://b/t', storage: {secretkey: s3cr3t}}",
            "did you mean secret_key?",
        ),
    ],
)
def test_a_table_that_is_wrong_about_its_store_is_refused(tmp_path: Path, table: str, said: str) -> None:
    [found] = mistakes(tmp_path, f"tables:\n  - {table}\n")
    assert found.startswith("line 2, tables.t")
    assert said in found


def test_two_ways_to_one_bucket_are_a_mistake(tmp_path: Path) -> None:
    text = "warehouse: s3://b/wh\ntables:\n  - {name: t, path: 's3a://b/t', storage: {region: a}}\n"
    [found] = mistakes(tmp_path, text)
    assert found.startswith("line 3, tables.t.storage: table t and the warehouse reach bucket b in two ways")


def test_keys_in_a_path_go_where_nobody_shows_them() -> None:
    table = ParquetTable(name="t", path="s3://AKIA1:s3cr%2Fet%2B@lake/trips/day=1")
    assert table.path == "s3://lake/trips/day=1"
    assert table.storage is not None
    assert table.storage.credentials() == {"access_key": "AKIA1", "secret_key": "s3cr/et+"}


def test_keys_are_in_no_text_of_a_project(tmp_path: Path) -> None:
    keys = {**KEYS, "session_token": "t0k3n"}
    far = {"name": "far", "format": "parquet", "path": "s3://lake/far", "storage": keys}
    found = project(tmp_path, tables=[far])
    for text in (repr(found), str(found), found.model_dump_json(), str(found.model_dump())):
        assert not any(secret in text for secret in ("AKIA1", "s3cr3t", "t0k3n"))
    with pytest.raises(ValidationError) as refused:
        Storage.model_validate({**keys, "anonymous": "s3cr3t"})
    assert "s3cr3t" not in str(refused.value)


def test_no_error_shows_how_a_uri_signs_in() -> None:
    said = str(MvError("sftp://me:s3cr3t@host/x can't be listed, nor s3://key:a%2Fb@bucket"))
    assert said == "sftp://***@host/x can't be listed, nor s3://***@bucket"
    assert str(MvError("sc://host:15002 and me@example.com")) == "sc://host:15002 and me@example.com"


def test_the_store_has_one_name_to_us_and_another_to_hadoop() -> None:
    assert [as_s3(f"s3{kind}://b/k/s3a://x") for kind in ("", "a", "n")] == ["s3://b/k/s3a://x"] * 3
    assert (as_s3a("s3://b/k"), as_s3a("gs://b/k"), as_s3("/s3a/k")) == ("s3a://b/k", "gs://b/k", "/s3a/k")
    assert (bucket_of("s3a://b/k"), bucket_of("gs://b/k")) == ("b", None)


def test_each_library_is_told_in_its_own_words() -> None:
    storage = Storage.model_validate({**MINIO, "session_token": "t0k3n"})
    assert for_deltalake(storage) == {
        "AWS_ACCESS_KEY_ID": "AKIA1",
        "AWS_SECRET_ACCESS_KEY": "s3cr3t",
        "AWS_SESSION_TOKEN": "t0k3n",
        "AWS_ENDPOINT_URL": "http://minio:9000",
        "AWS_REGION": "us-east-1",
        "AWS_VIRTUAL_HOSTED_STYLE_REQUEST": "false",
        "AWS_ALLOW_HTTP": "true",
    }
    assert for_pyiceberg(storage) == {
        "s3.access-key-id": "AKIA1",
        "s3.secret-access-key": "s3cr3t",
        "s3.session-token": "t0k3n",
        "s3.endpoint": "http://minio:9000",
        "s3.region": "us-east-1",
        "s3.force-virtual-addressing": "false",
    }
    assert for_deltalake(Storage()) == for_pyiceberg(Storage()) == for_deltalake(None) == {}
