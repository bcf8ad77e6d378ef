"""What "Can it do my view?" says of each view is what the analysis says."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

from mv_assets.config.errors import ProjectError
from mv_assets.views.catalog import load
from mv_assets_tests.scenarios.docs.examples import EXAMPLES, PAGE, Example, project_file, with_its_base
from mv_assets_tests.scenarios.docs.pages import anchors, prose


@pytest.mark.parametrize("example", EXAMPLES, ids=lambda example: example.name)
def test_a_view_is_accepted_or_refused_with_the_words_shown(tmp_path: Path, example: Example) -> None:
    file = project_file(tmp_path, with_its_base(example.view))
    if not example.said:
        assert example.name in load(file, schemas=True).views
        return
    with pytest.raises(ProjectError) as refused:
        load(file, schemas=True)
    _, *said = str(refused.value).splitlines()
    assert [line.partition(f"views.{example.name}.")[2] for line in said] == list(example.said)


def test_the_table_has_a_line_for_each_section() -> None:
    lines = re.findall(r"^\| \[.*?\]\(#(.*?)\)", prose(PAGE), re.MULTILINE)
    assert sorted([*lines, "can-it-do-my-view", "anything-else"]) == sorted(anchors(PAGE))
