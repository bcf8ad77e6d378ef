"""Whatever texts hold, they are texts: nothing of them is run by the state database or by Spark."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest
from markdown_it import MarkdownIt
from rich.console import Console
from sqlalchemy import inspect

from mv_assets.buckets import Buckets
from mv_assets.cli.dev.children import Child
from mv_assets.config.errors import Mistake, ProjectError
from mv_assets.errors import BucketError, MvError
from mv_assets.reports.show import plain
from mv_assets.reports.shown import Line, Shown
from mv_assets.spark.read.files import quoted
from mv_assets.state.manager import PartitionManager
from mv_assets.state.model import Declaration
from mv_assets.state.store import Store
from mv_assets.text import code_block, in_markdown
from mv_assets_tests.support.harness import Clock

HOSTILE = [
    "'; DROP TABLE mv_view; --",
    '"; DROP TABLE mv_view; --',
    "`; DROP TABLE mv_view; --",
    "$(touch /tmp/x)",
    "{}{0}{view}",
    "%s %(view)s :view ?",
    "a\nb\r\tc",
    "\\' OR 1=1 /*",
]


MARKDOWN = [
    "![x](http://elsewhere/x.png)",
    "<img src=x onerror=alert(1)>",
    "a`b``c```",
    "` </code><script>alert(1)</script>",
    "[x](javascript:alert(1))",
    "*a* _b_ **c** # d",
    "`",
    "a\n\n# b\n- c",
]


@pytest.fixture
def manager(store: Store, clock: Clock) -> Iterator[Callable[[str], PartitionManager]]:
    yield lambda who: PartitionManager(store, clock=clock, who=who)
    with store.database.read() as connection:
        assert "mv_view" in inspect(connection).get_table_names()


def test_names_reasons_and_authors_are_kept_as_they_are(
    store: Store, manager: Callable[[str], PartitionManager]
) -> None:
    for hostile in HOSTILE:
        made = manager(hostile)
        made.declare(Declaration(hostile, definition=hostile, width="1d", start=0))
        made.drop(hostile, hostile)
        (event,) = [event for event in store.events(hostile) if event.operation.value == "DROP"]
        assert (event.who, event.why) == (hostile, hostile)
    assert sorted(store.views()) == sorted(HOSTILE)


def test_a_text_with_a_nul_harms_nothing(manager: Callable[[str], PartitionManager], store: Store) -> None:
    made = manager("who")
    try:
        made.declare(Declaration("a\0b", definition="d", width="1d", start=0))
    except MvError:
        assert store.views() == []
    else:
        assert store.views() == ["a\0b"]


@pytest.mark.parametrize("key", [*HOSTILE, "a\0b", "2024-01-01'; --", "2024-01-01 OR 1=1"])
def test_a_bucket_is_named_by_a_time_and_nothing_else(key: str) -> None:
    with pytest.raises(BucketError):
        Buckets.of("1d").parse(key)


@pytest.mark.parametrize("hostile", [*HOSTILE, *MARKDOWN, "\x1b[2Jgone", "\u202egnp.exe"])
def test_an_error_is_one_line_without_escape_codes(hostile: str) -> None:
    said = str(MvError(f"file {hostile} is broken"))
    assert said.isprintable()
    assert str(ProjectError(hostile, [Mistake(hostile, hostile)] * 2)).count("\n") == 2


@pytest.mark.parametrize("hostile", [*HOSTILE, *MARKDOWN])
def test_a_text_in_markdown_is_code_and_nothing_else(hostile: str) -> None:
    """By another reader of Markdown, as Dagster's UI has one; HTML would be taken for such."""
    [_, bullet, *_] = found = MarkdownIt().parse(f"- {in_markdown(hostile)}")
    assert [each.type for each in found if each.type == "inline"] == ["inline"], bullet
    [inline] = [each.children or [] for each in found if each.type == "inline"]
    assert [each.type for each in inline] == ["code_inline"]
    [block] = MarkdownIt().parse(code_block(hostile, "sql"))
    assert (block.type, block.content) == ("fence", f"{hostile}\n".replace("\r\n", "\n").replace("\r", "\n"))


def test_a_text_in_a_notebook_is_neither_html_nor_markup() -> None:
    class Said(Shown):
        def lines(self, _out: Console) -> Iterator[Line]:
            yield from (f"[red]{plain(each)}[/]" for each in [*HOSTILE, *MARKDOWN, "[link=x]a[/link]", "[/]"])

    page = Said()._repr_html_()
    assert set(re.findall("<[^ >]+", page)) == {"<pre", "</pre", "<span", "</span"}
    assert "href" not in page
    assert "&lt;script&gt;" in page
    assert "[link=x]a[/link]" in page


def test_the_end_of_a_log_is_lines_without_escape_codes(tmp_path: Path) -> None:
    log = tmp_path / "log"
    log.write_text("\x1b[31mred\x1b[0m\n\tat x\n\x1b]0;title\x07 \x1b[2J gone\n")
    assert Child("Spark", [], {}, log, ()).last_lines() == [
        "red",
        "        at x",
        r"\x1b]0;title\x07 \x1b[2J gone",
    ]


def test_a_name_in_backticks_can_not_leave_them() -> None:
    for hostile in [*HOSTILE, "``", "a`b"]:
        inside = quoted(hostile)[1:-1]
        assert "`" not in inside.replace("``", "")
