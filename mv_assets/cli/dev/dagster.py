"""Dagster's webserver and daemon: their home, how they are started, and how they are doing."""

from __future__ import annotations

import json
import signal
import sys
from collections.abc import Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass
from importlib.resources import files
from pathlib import Path
from typing import Any
from urllib.error import URLError
from urllib.request import ProxyHandler, Request, build_opener

from mv_assets.cli.dev.children import Child
from mv_assets.cli.dev.home import writing
from mv_assets.cli.dev.ports import LOOPBACK
from mv_assets.cli.errors import RunsUnreadable
from mv_assets.errors import SettingRefused

# It ends its runs, its code servers and then itself.
_WISHES = ((signal.SIGINT, 12.0), (signal.SIGTERM, 3.0))
_ANSWERS_WITHIN_S = 5.0
# To import all and to analyse ten thousand views.
_LOADS_WITHIN_S = 180.0
_MODULE = "mv_assets.definitions"
# A run over a range has an event a bucket; one by one each would be a transaction.
SETTINGS = {"DAGSTER_EVENT_BATCH_SIZE": "100"}
_ENTRY = """name loadStatus
    locationOrLoadError { ... on PythonError { className message causes { message } } }"""
_QUERY = f"{{ workspaceOrError {{ ... on Workspace {{ locationEntries {{ {_ENTRY} }} }} }} }}"
# Runs that go on keep the process they were started by.
_RELOAD = f"""mutation {{ reloadRepositoryLocation(repositoryLocationName: "{_MODULE}") {{
    ... on WorkspaceLocationEntry {{ {_ENTRY} }}
    ... on PythonError {{ message }}
    ... on UnauthorizedError {{ message }}
    ... on ReloadNotSupported {{ message }}
    ... on RepositoryLocationNotFound {{ message }} }} }}"""
_UNREACHABLE = "DagsterUserCodeUnreachableError"


def home(given: str | None, ours: Path) -> Path:
    """DAGSTER_HOME: the user's own as it is, else ours with our settings.

    Raises:
        SettingRefused: the user's own is none that Dagster would take.
        HomeUnwritable: ours can't be written.

    """
    if given:
        return _existing(given)
    text = files("mv_assets.cli.dev").joinpath("dagster.yaml").read_text(encoding="utf-8")
    with writing(ours):
        ours.mkdir(parents=True, exist_ok=True)
        (ours / "dagster.yaml").write_text(text, encoding="utf-8")
    return ours


def _existing(given: str) -> Path:
    path = Path(given)
    with suppress(RuntimeError):
        # Dagster knows ~ as well.
        path = path.expanduser()
    if not path.is_absolute():
        raise SettingRefused(
            "DAGSTER_HOME", given, "which is not an absolute path", "unset it, or write it from / on"
        )
    if not path.is_dir():
        raise SettingRefused(
            "DAGSTER_HOME", given, "and there is no such folder", "unset it, or make the folder"
        )
    return path


def dagster_dev(port: int, environment: Mapping[str, str], folder: Path, keep: Sequence[int]) -> Child:
    """`dagster dev`; `folder` is that of its log."""
    what, at = ["-m", _MODULE], ["-h", LOOPBACK, "-p", str(port)]
    return Child(
        "Dagster",
        [sys.executable, "-m", "dagster", "dev", *what, *at],
        {**SETTINGS, **environment},
        folder / "dagster.log",
        _WISHES,
        keep,
    )


@dataclass(frozen=True, slots=True)
class Loaded:
    """What the webserver says of the code it loads: the errors, of those that are not right.

    `lost` says that the process of the code is gone, so that nothing is wrong with the code.
    """

    errors: Mapping[str, str]
    lost: bool = False


def loaded_by(child: Child, port: int) -> Loaded | None:
    """As `loaded`; what another process, which was sooner to take the port, says there is not ours."""
    return loaded(port) if child.listens(port) else None


def loaded(port: int) -> Loaded | None:
    """How loading went; None while nobody answers or it goes on."""
    with suppress(URLError, OSError, ValueError, KeyError, TypeError):
        found = _asked(port, _QUERY, _ANSWERS_WITHIN_S)
        return _loaded(found["workspaceOrError"]["locationEntries"])
    return None


def reloaded(child: Child, port: int) -> Loaded | None:
    """Have the code loaded anew, and how that went; None while there is nobody who could."""
    if loaded_by(child, port) is None:
        return None
    with suppress(URLError, OSError, ValueError, KeyError, TypeError):
        found = _asked(port, _RELOAD, _LOADS_WITHIN_S)["reloadRepositoryLocation"]
        return Loaded({_MODULE: found["message"]}) if "message" in found else _loaded([found])
    return None


def _asked(port: int, query: str, within_s: float) -> Any:
    asked = Request(
        f"http://{LOOPBACK}:{port}/graphql",
        json.dumps({"query": query}).encode(),
        {"Content-Type": "application/json"},
    )
    # No proxy could reach it.
    with build_opener(ProxyHandler({})).open(asked, timeout=within_s) as answer:
        return json.load(answer)["data"]


def _loaded(entries: Sequence[Mapping[str, Any]]) -> Loaded | None:
    if any(entry["loadStatus"] != "LOADED" for entry in entries):
        return None
    found = {entry["name"]: entry["locationOrLoadError"] or {} for entry in entries}
    wrong = {name: said for name, said in found.items() if "message" in said}
    return Loaded({name: _root(said) for name, said in wrong.items()}, any(map(_lost, wrong.values())))


def _lost(error: Mapping[str, Any]) -> bool:
    """Whether nobody listens there; one that only takes long says otherwise."""
    said = [error["message"], *(cause["message"] for cause in error["causes"] or [])]
    return error["className"] == _UNREACHABLE and any("UNAVAILABLE" in each for each in said)


def _root(error: Mapping[str, Any]) -> str:
    """What went wrong in the user's code; the rest is how Dagster came there."""
    chain: list[Mapping[str, str]] = [error, *(error["causes"] or [])]
    return chain[-1]["message"]


def fail_leftovers(home: Path) -> int:
    """Fail the runs that an earlier Dagster was killed in the middle of; how many there were.

    Nobody else would ever end them, and with them the pool that they hold. Only for a home that is locked.

    Raises:
        RunsUnreadable: Dagster's database there is damaged, or not of this version.

    """
    if not (home / "history" / "runs.db").is_file():
        return 0
    from dagster import DagsterInstance, DagsterRunStatus, RunsFilter  # noqa: PLC0415 - two seconds, mostly beside Spark's

    going = [DagsterRunStatus.STARTING, DagsterRunStatus.STARTED, DagsterRunStatus.CANCELING]
    try:
        with DagsterInstance.from_config(str(home)) as instance:
            runs = instance.get_runs(RunsFilter(statuses=going))
            for run in runs:
                instance.report_run_failed(run, "mv-assets dev was stopped while this ran")
    except Exception as error:
        # Dagster's own errors, its database's, or those of what it finds in there.
        said = str(getattr(error, "orig", None) or error) or type(error).__name__
        raise RunsUnreadable(str(home), said.splitlines()[0]) from error
    return len(runs)
