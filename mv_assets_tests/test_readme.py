"""What the README shows is there, and works as far as that can be told without waiting for it."""

from __future__ import annotations

import re
from pathlib import Path

import pytest
from click import Context, Group

from mv_assets.cli.main import main
from mv_assets.views.catalog import load

README = Path(__file__).parent.parent / "README.md"
TEXT = README.read_text(encoding="utf-8")


def test_its_links_lead_somewhere() -> None:
    headings = re.findall(r"^#+ (.+)$", TEXT, re.MULTILINE)
    anchors = {re.sub(r"[^\w -]", "", heading).lower().replace(" ", "-") for heading in headings}
    assert set(re.findall(r"\]\(#([^)]+)\)", TEXT)) <= anchors
    files = re.findall(r"\]\(([^#)][^)]*)\)", TEXT)
    assert files
    assert [file for file in files if not (README.parent / file).exists()] == []


def test_its_commands_exist() -> None:
    assert isinstance(main, Group)
    named = set(re.findall(r"(?:`|\$ |^)mv-assets ([a-z]+)", TEXT, re.MULTILINE))
    assert named == set(main.list_commands(Context(main)))


def test_its_first_view_has_no_mistakes(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    [project, *_] = re.findall(r"```yaml\n(.*?)```", TEXT, re.DOTALL)
    [data, *_] = re.findall(r"```python\n(.*?)```", TEXT, re.DOTALL)
    monkeypatch.chdir(tmp_path)
    (tmp_path / "project.yaml").write_text(project)
    exec(compile(data, "make_data.py", "exec"), {})  # noqa: S102 - the README's own lines
    catalog = load(tmp_path / "project.yaml", schemas=True)
    assert list(catalog.views) == ["orders_daily"]
