"""What a terminal shows while a command works."""

from __future__ import annotations

import io
from types import SimpleNamespace
from typing import Any

import pytest
from rich.console import Console

from mv_assets.cli import bars
from mv_assets.cli.bars import Bars
from mv_assets.config import Spark
from mv_assets.project import Project
from mv_assets.spark.errors import EngineUnavailable


@pytest.mark.parametrize(
    ("declared", "says"),
    [(Spark(), "starting Spark"), (Spark(remote="sc://127.0.0.1:1"), "connecting to Spark")],
)
@pytest.mark.parametrize("starts", [True, False])
def test_a_bar_says_that_spark_starts_while_it_does(
    monkeypatch: pytest.MonkeyPatch, declared: Spark, says: str, *, starts: bool
) -> None:
    screen = io.StringIO()
    monkeypatch.setattr(bars, "Console", lambda **_: Console(file=screen, force_terminal=True))
    seen: list[str] = []

    with Bars() as shown:

        def start(_declared: Spark) -> Any:
            shown._shown.refresh()
            seen.append(screen.getvalue())
            if not starts:
                raise EngineUnavailable("no Java")
            return "a session"

        catalog: Any = SimpleNamespace(project=SimpleNamespace(spark=declared))
        project = Project.of(catalog, who="test", start=start, progress=shown)
        engine = project._parts.spark(catalog)
        if starts:
            session: Any = engine.start(declared)
            assert session == "a session"
        else:
            with pytest.raises(EngineUnavailable):
                engine.start(declared)
        assert shown._shown.tasks == []
    assert says in seen[0]
    assert "0/?" not in seen[0]
