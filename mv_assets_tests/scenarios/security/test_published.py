"""A target's keys are in nothing that is said, stored or published; what others wrote there is text."""

from __future__ import annotations

import traceback
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest
from pydantic import ValidationError

from mv_assets.config import DeltaTarget, IcebergTarget, Target
from mv_assets.publish.contents import DIGEST, VERSION
from mv_assets.publish.iceberg.leftovers import remove
from mv_assets.publish.iceberg.snapshots import Known
from mv_assets.publish.names import name_of
from mv_assets_tests.scenarios.security.test_secrets import SECRETS
from mv_assets_tests.support.lake import view
from mv_assets_tests.support.published_lake import PublishedLake
from mv_assets_tests.support.warehouse_lake import clocked_lakes
from mv_assets_tests.unit.state.faults import dump
from mv_assets_tests.unit.tables.delta import log

NOWHERE = "127.0.0.1:1"
UNREACHABLE: Mapping[str, Mapping[str, str]] = {
    "password": {"type": "sql", "uri": f"postgresql+psycopg://me:s3cr3t@{NOWHERE}/db"},
    "escaped": {"type": "sql", "uri": f"postgresql+psycopg://me:p%40s5@{NOWHERE}/db"},
    "slash": {"type": "sql", "uri": f"postgresql+psycopg://me:s3cr3t/s3cr3t@{NOWHERE}/db"},
    "query": {"type": "sql", "uri": f"postgresql+psycopg://me@{NOWHERE}/db?password=s3cr3t"},
    "token": {"type": "rest", "uri": f"http://{NOWHERE}", "token": "s3cr3t", "header.X-Key": "s3cr3t"},
    # As a variable has it that was read from a file: the library repeats it.
    "newline": {"type": "rest", "uri": f"http://{NOWHERE}", "header.X-Key": "Bearer s3cr3t\n"},
    "credential": {"type": "rest", "uri": f"http://me:s3cr3t@{NOWHERE}", "credential": "me:s3cr3t"},
}
HOSTILE = "\x1b[2J\x1b]0;x\x07\nv  is right"


@dataclass
class Lake(PublishedLake):
    """Its target is what a test says."""

    declared: Target | None = None

    @property
    def target(self) -> Target:
        return super().target if self.declared is None else self.declared


@pytest.fixture
def made(tmp_path: Path, request: pytest.FixtureRequest) -> Iterator[Lake]:
    with clocked_lakes(tmp_path, f"sqlite:///{tmp_path}/state.db", Lake, **request.param) as make:
        lake = make()
        lake.days(0, 1)
        lake.run()
        yield lake


def iceberg(catalog: Mapping[str, str]) -> IcebergTarget:
    return IcebergTarget(catalog=dict(catalog), namespace="marts")


def assert_silent(*texts: str) -> None:
    for text in texts:
        for secret in SECRETS:
            assert secret not in text, text[max(0, text.index(secret) - 300) : text.index(secret) + 50]


@pytest.mark.parametrize(
    "made",
    [{"declared": iceberg(each)} for each in UNREACHABLE.values()],
    ids=UNREACHABLE,
    indirect=True,
)
def test_a_catalog_that_does_not_answer_keeps_its_credentials(
    made: Lake, tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    caplog.set_level("DEBUG")
    error = made.publish().error
    assert error is not None
    assert_silent(caplog.text, "".join(traceback.format_exception(error)))
    assert_silent(repr(made.publisher), name_of(made.target, "v"), repr(made.target))
    stored = dump(f"sqlite:///{tmp_path}/state.db")
    assert "v" in str(stored["mv_trouble"])
    assert_silent(repr(stored))


def with_keys(folder: Path) -> dict[str, str]:
    keys = ("token", "credential", "header.X-Key", "s3.secret-access-key", "adls.account-key")
    return {"type": "sql", "uri": f"sqlite:///{folder}/catalog.db", **dict.fromkeys(keys, "s3cr3t")}


def test_nothing_of_what_is_published_has_a_key_in_it(tmp_path: Path) -> None:
    target, url = iceberg(with_keys(tmp_path)), f"sqlite:///{tmp_path}/state.db"
    with clocked_lakes(tmp_path, url, Lake, declared=target) as make:
        made = make()
        made.days(0, 1)
        made.run()
        made.published()
        made.check_published()
        assert_silent(repr(dump(url)), str(made.known()))
    files = [path for path in tmp_path.rglob("*") if path.is_file()]
    assert any(path.name.endswith(".metadata.json") for path in files)
    assert_silent(*(path.read_bytes().decode(errors="replace") for path in files))


@pytest.mark.parametrize("folder", ["s3://AKIA-s3cr3t:s3cr3t@bucket/marts", "s3a://s3cr3t@b/m"])
def test_a_folder_with_keys_in_it_is_refused_and_not_repeated(folder: str) -> None:
    with pytest.raises(ValidationError) as refused:
        DeltaTarget(format="delta", folder=folder)
    [problem] = refused.value.errors()
    assert "storage_options" in problem["msg"]
    assert_silent(problem["msg"])


def test_two_containers_of_one_account_are_two_targets() -> None:
    first, second = (
        name_of(DeltaTarget(format="delta", folder=f"abfss://{name}@a.dfs.core.windows.net/m"), "v")
        for name in ("one", "two")
    )
    assert first != second


@pytest.mark.parametrize("made", [{"format": "delta"}], ids=["delta"], indirect=True)
def test_what_somebody_wrote_into_a_delta_log_is_one_line(
    made: Lake, caplog: pytest.LogCaptureFixture
) -> None:
    made.published()
    commit: dict[str, Any] = {"timestamp": 1, "operation": HOSTILE, "operationParameters": {}}
    log.commit(made.folder / "warehouse" / "v", {"commitInfo": commit})
    check_replaced(made, caplog)


@pytest.mark.parametrize("made", [{"format": "iceberg"}], ids=["iceberg"], indirect=True)
def test_what_somebody_wrote_into_an_iceberg_summary_is_one_line(
    made: Lake, caplog: pytest.LogCaptureFixture
) -> None:
    made.published()
    table = made.reader.table()  # type: ignore[attr-defined]
    rows = made.reader.rows().slice(0, 1)
    table.append(rows, snapshot_properties={VERSION: HOSTILE, DIGEST: HOSTILE, HOSTILE: HOSTILE})
    check_replaced(made, caplog)


def check_replaced(made: Lake, caplog: pytest.LogCaptureFixture) -> None:
    found = made.publish(look=True)
    assert found.error is None, found.error
    assert found.publication is not None
    assert found.publication.replaced is not None
    for said in (found.publication.replaced, *(record.getMessage() for record in caplog.records)):
        assert said.isprintable(), repr(said)
    made.check_published()


@pytest.mark.parametrize("namespace", ["../x", "a/b", "a\\b", "a..b", ".a", " ", "a\x1b[2J", "a\nb"])
def test_a_namespace_is_no_way_out_of_a_folder(namespace: str) -> None:
    with pytest.raises(ValidationError) as refused:
        IcebergTarget(catalog={"type": "sql"}, namespace=namespace)
    assert refused.value.errors()[0]["msg"].isprintable()


@pytest.mark.parametrize("namespace", ["it's", 'say "x"', "ü", "; DROP TABLE iceberg_tables; --"])
def test_odd_namespaces_are_names(tmp_path: Path, namespace: str) -> None:
    catalog = {"type": "sql", "uri": f"sqlite:///{tmp_path}/catalog.db"}
    target = IcebergTarget(catalog=catalog, namespace=namespace)
    with clocked_lakes(tmp_path, f"sqlite:///{tmp_path}/state.db", Lake, declared=target) as make:
        made = make()
        made.days(0, 1)
        made.run()
        made.published()
        made.check_published()
        made.overwrite(0)
        made.published()
        made.check_published()
        assert made.publisher.withdraw("v") is None
        assert not made.reader.exists()


@pytest.mark.parametrize("way", ["another table", "a way out"])
def test_files_that_somebody_names_in_a_table_are_not_deleted_with_its_snapshots(
    tmp_path: Path, way: str
) -> None:
    with clocked_lakes(tmp_path, f"sqlite:///{tmp_path}/state.db", Lake) as make:
        made = make(view("v"), view("w"))
        made.days(0, 1)
        made.run()
        made.published("v")
        made.published("w")
        table, other = (made.reader.table(name) for name in ("v", "w"))  # type: ignore[attr-defined]
        snapshot, expected = other.current_snapshot(), made.reader.rows("w")
        if way == "a way out":
            place = snapshot.manifest_list.replace(other.location(), f"{table.location()}/../w")
            snapshot = snapshot.model_copy(update={"manifest_list": place})
        remove(table, [Known(snapshot, None, 0, own=False)], [], data_files=True)
        assert made.reader.rows("w").equals(expected)
