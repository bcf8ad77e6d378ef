"""A password of the project is in nothing that is said, shown, logged or stored."""

from __future__ import annotations

import traceback
from collections.abc import Iterator, Sequence
from datetime import UTC, datetime
from pathlib import Path

import dagster as dg
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
import yaml
from click.testing import CliRunner
from dagster._core.remote_representation.external_data import RepositorySnap
from dagster_shared.serdes import serialize_value
from sqlalchemy import make_url

from mv_assets.cli import main
from mv_assets.config import StateDatabase, WarehouseFolder
from mv_assets.defs import Deployment, definitions_of
from mv_assets.defs.deployment import identity
from mv_assets.errors import MvError
from mv_assets.views.catalog import load
from mv_assets_tests.unit.state.faults import dump

# The second is how a URL spells a password with characters of its own.
SECRETS = ("s3cr3t", "p%40s5", "p@s5")
UNREACHABLE = [
    "postgresql+psycopg://me:s3cr3t@127.0.0.1:1/db",
    "postgresql+psycopg://me:p%40s5@127.0.0.1:1/db",
    "postgresql+psycopg://me@127.0.0.1:1/db?password=s3cr3t",
    "postgresql+psycopg://me:${MV_TEST_SECRET}@127.0.0.1:1/db",
]
COMMANDS = (
    "status --json",
    "plan --json",
    "plan",
    "explain v 2024-01-01",
    "mark v",
    "gc",
    "adopt v",
    "drop v --yes",
    "project check",
    "metrics",
    "publish v",
    "nonsense",
)


def written(folder: Path, state: str) -> Path:
    """A project whose every secret is one of ours."""

    (folder / "trips").mkdir()
    at = [datetime(2024, 1, day, tzinfo=UTC) for day in (1, 2, 3)]
    pq.write_table(pa.table({"at": at}), folder / "trips" / "a.parquet")
    project = {
        "state": state,
        "warehouse": "warehouse",
        "spark": {"conf": {"spark.hadoop.fs.s3a.secret.key": "s3cr3t"}},
        "storage": {"access_key": "AKIA-s3cr3t", "secret_key": "s3cr3t"},
        "tables": [
            {"name": "trips", "path": "trips", "time_column": "at", "settle": "0s"},
            {
                "name": "far",
                "path": "s3://me:s3cr3t@far/away",
                "storage": {"endpoint": "http://127.0.0.1:1", "allow_http": True},
            },
        ],
        "views": [
            {
                "name": "v",
                "base": "trips",
                "sql": "SELECT at AS hour, count(*) AS n FROM trips GROUP BY ALL",
                "time_column": "hour",
                "bucket": "1d",
                "start": "2024-01-01",
            }
        ],
    }
    file = folder / "project.yaml"
    file.write_text(yaml.safe_dump(project))
    return file


def said_by_commands(file: Path, commands: Sequence[str] = COMMANDS) -> Iterator[str]:
    """What each command says, with the whole chain of what it raised."""
    for command in commands:
        result = CliRunner().invoke(main, ["--project", str(file), *command.split()])
        yield result.output
        if result.exc_info is not None:
            yield "".join(traceback.format_exception(*result.exc_info))


def said_in_dagster(file: Path, home: Path) -> Iterator[str]:
    """What a tick and a job raise, log and store, and what the code location shows."""
    home.mkdir()
    with dg.instance_for_test(temp_dir=str(home)) as instance:
        repository = definitions_of(Deployment(load(file, schemas=False))).get_repository_def()
        yield serialize_value(RepositorySnap.from_def(repository))
        context = dg.build_sensor_context(instance=instance, repository_def=repository)
        try:
            yield repr(repository.get_sensor_def("watch_trips").evaluate_tick(context))
        except (MvError, dg.DagsterError, dg.Failure) as error:
            yield "".join(traceback.format_exception(error))
        job = repository.get_job("collect_garbage")
        result = job.execute_in_process(instance=instance, raise_on_error=False)
        yield repr(result.dagster_run)
        yield "".join(repr(entry) for entry in instance.all_logs(result.run_id))
    for path in (each for each in home.rglob("*") if each.is_file()):
        yield path.read_bytes().decode(errors="replace")


def assert_silent(said: Iterator[str], *, about: str) -> None:
    texts = list(said)
    assert any(about in text for text in texts)
    for text in texts:
        for secret in SECRETS:
            assert secret not in text, text[max(0, text.index(secret) - 300) : text.index(secret) + 50]


@pytest.mark.parametrize("state", UNREACHABLE)
def test_commands_keep_the_password_of_a_database_that_does_not_answer(
    tmp_path: Path, state: str, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    monkeypatch.setenv("MV_TEST_SECRET", "s3cr3t")
    assert_silent(said_by_commands(written(tmp_path, state)), about="127.0.0.1")
    assert_silent(iter([caplog.text, "127.0.0.1"]), about="127.0.0.1")


def test_dagster_keeps_the_password_of_a_database_that_does_not_answer(tmp_path: Path) -> None:
    assert_silent(said_in_dagster(written(tmp_path, UNREACHABLE[0]), tmp_path / "home"), about="127.0.0.1")


def test_the_password_of_a_database_that_is_used_is_nowhere(tmp_path: Path, empty_postgres: str) -> None:
    url = make_url(empty_postgres).set(password="s3cr3t").render_as_string(hide_password=False)  # noqa: S106
    assert "s3cr3t" in url
    file = written(tmp_path, url)
    assert_silent(said_in_dagster(file, tmp_path / "home"), about="collect_garbage")
    assert_silent(said_by_commands(file), about="2024-01-01")
    assert_silent(iter([repr(dump(empty_postgres))]), about="mv_view")
    left = [path for path in tmp_path.rglob("*") if path.is_file() and path != file]
    assert_silent((path.read_bytes().decode(errors="replace") for path in left), about="")


def test_a_projects_mark_on_its_runs_can_not_be_used_to_guess_its_password(tmp_path: Path) -> None:
    file = written(tmp_path, UNREACHABLE[0])
    project = load(file, schemas=False).project
    guessed = StateDatabase(url=project.state.url.replace("s3cr3t", "guess"))
    guess = project.model_copy(update={"state": guessed})
    assert "s3cr3t" not in f"{project.state!r} {project.state}"
    assert identity(guess) == identity(project)
    elsewhere = WarehouseFolder(path="elsewhere")
    assert identity(project) != identity(project.model_copy(update={"warehouse": elsewhere}))
