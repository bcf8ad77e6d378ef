"""What the pages tell to type is typed, and prints what they show."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import dagster as dg
import pytest

from mv_assets.spark.session import Engine
from mv_assets_tests.scenarios.docs.examples import ACCEPTED, QUERIES, project_file
from mv_assets_tests.scenarios.docs.pages import DOCS, README, blocks
from mv_assets_tests.scenarios.docs.reader import CommandProcess, Reader, comparable, steps
from mv_assets_tests.support.capabilities import has_qualify


@pytest.fixture
def reader(command_process: CommandProcess, tmp_path: Path) -> Reader:
    return Reader(command_process, tmp_path)


# What is about reading goes on where the tutorial ends.
_TOGETHER = {
    "readme": (README,),
    "shop": (DOCS / "shop.md",),
    "tutorial": tuple(DOCS / f"{name}.md" for name in ("tutorial", "reading", "queries", "python")),
}


@pytest.mark.parametrize("pages", _TOGETHER.values(), ids=_TOGETHER)
def test_what_is_typed_prints_what_is_shown(reader: Reader, pages: tuple[Path, ...]) -> None:
    printed = ""
    for page in pages:
        for block in blocks(page):
            if block.title:
                reader.save(block)
            elif block.language == "console":
                for step in steps(block.text):
                    code, seen = reader.type(step.command)
                    assert comparable(seen) == comparable(step.shown), f"{page.name}: {step.command}"
                    assert code == step.code, f"{page.name}: {step.command}"
            elif block.language == "python":
                printed = reader.python(block.text)
            elif block.language == "text" and printed:
                assert comparable(printed) == comparable(block.text), f"{page.name}, line {block.line}"
                printed = ""


@pytest.mark.slow
def test_what_can_be_declared_can_be_computed_and_asked(
    command_process: CommandProcess, engine: Engine, tmp_path: Path
) -> None:
    with engine.session() as spark:
        unknown = None if has_qualify(spark) else "QUALIFY"
    views = [view for view in ACCEPTED.values() if unknown is None or unknown not in view["sql"]]
    file = project_file(tmp_path, views)
    for arguments in (["refresh"], *(["query", query] for query in QUERIES)):
        code, said = command_process.ask(
            arguments=["--project", str(file), *arguments], folder=str(tmp_path), variables={}
        )
        assert code == 0, (arguments, said)


def test_what_is_shown_for_dagster_can_be_loaded(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    asset, project = (block.text for block in blocks(DOCS / "dagster.md") if block.language == "python")
    found: dict[str, Any] = {}
    exec(compile(asset, "dagster.md", "exec"), found)  # noqa: S102 - the page's own lines
    assert found["report"].keys == {dg.AssetKey("report")}
    exec(compile(project, "dagster.md", "exec"), found)  # noqa: S102
    names = {key.to_user_string() for key in found["defs"].resolve_all_asset_keys()}
    assert names == {"trips", "trips_hourly", "yours"}
