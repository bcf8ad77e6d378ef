"""The texts for people: links lead somewhere, and what they name is there."""

from __future__ import annotations

import ast
import re
from collections.abc import Iterator
from pathlib import Path

import pytest
import yaml
from click import Command, Context, Group, Option
from pydantic import BaseModel

from mv_assets.cli.main import main
from mv_assets.config import models, tables
from mv_assets_tests.scenarios.docs.pages import (
    DOCS,
    PAGES,
    README,
    ROOT,
    anchors,
    blocks,
    headings,
    links,
    slug,
)

_TEXTS = {page.name: page.read_text(encoding="utf-8") for page in PAGES}
_MOST_LINES = 200


@pytest.mark.parametrize("page", PAGES, ids=lambda page: page.name)
def test_links_lead_somewhere(page: Path) -> None:
    dead = []
    for link in links(page):
        assert not re.match(r"\w+:", link), f"{link} leads outside"
        name, _, anchor = link.partition("#")
        target = page.parent / name if name else page
        if not target.exists() or (anchor and anchor not in anchors(target)):
            dead.append(link)
    assert dead == []


@pytest.mark.parametrize("page", [page for page in PAGES if page.parent == DOCS], ids=lambda page: page.name)
def test_the_site_has_all_that_its_pages_link_to(page: Path) -> None:
    """Only what is below docs/ is in it."""
    targets = [(page.parent / link.partition("#")[0]).resolve() for link in links(page)]
    assert [target for target in targets if not target.is_relative_to(DOCS.resolve())] == []


@pytest.mark.parametrize("page", PAGES, ids=lambda page: page.name)
def test_an_anchor_is_the_same_on_github_and_on_the_site(page: Path) -> None:
    on_github = [heading.lower() for heading in headings(page)]
    on_github = [re.sub(r"[^\w -]", "", heading).replace(" ", "-") for heading in on_github]
    assert [slug(heading) for heading in headings(page)] == on_github
    assert len(set(on_github)) == len(on_github), "two headings with one anchor"


def test_a_stranger_reads_the_readme_in_five_minutes() -> None:
    assert len(_TEXTS["README.md"].splitlines()) <= _MOST_LINES


def test_every_page_is_in_the_navigation_and_in_the_readme() -> None:
    settings = yaml.safe_load((ROOT / ".mkdocs.yml").read_text(encoding="utf-8"))
    listed = re.findall(r"'([\w-]+\.md)'", str(settings["nav"]))
    pages = {page.name for page in DOCS.glob("*.md")}
    assert sorted(listed) == sorted(pages)
    assert {f"docs/{name}" for name in pages - {"index.md"}} <= {
        link.partition("#")[0] for link in links(README)
    }


def test_the_site_fetches_nothing() -> None:
    settings = yaml.safe_load((ROOT / ".mkdocs.yml").read_text(encoding="utf-8"))
    assert settings["theme"]["font"] is False
    # Material would fetch what draws diagrams.
    assert [name for name, text in _TEXTS.items() if "```mermaid" in text] == []


def test_the_commands_that_are_named_exist() -> None:
    assert isinstance(main, Group)
    named = re.findall(r"(?:`|\$ |^)mv-assets ([a-z]+)", "\n".join(_TEXTS.values()), re.MULTILINE)
    assert set(named) == set(main.list_commands(Context(main)))


def test_the_reference_has_every_command_and_option() -> None:
    reference = _TEXTS["commands.md"]
    missing = [
        f"{name} {option}"
        for name, command in _commands(main)
        for option in (f"mv-assets {name}", *_options(command))
        if f"`{option}" not in reference and f" {option}" not in reference
    ]
    assert missing == []


def _commands(group: Command, *names: str) -> Iterator[tuple[str, Command]]:
    assert isinstance(group, Group)
    context = Context(group)
    for name in group.list_commands(context):
        found = group.get_command(context, name)
        assert found is not None
        if isinstance(found, Group) and name != "demo":
            yield from _commands(found, *names, name)
        else:
            yield " ".join((*names, name)), found


def _options(command: Command) -> list[str]:
    return [option.opts[0] for option in command.params if isinstance(option, Option)]


@pytest.mark.parametrize(
    ("page", "model"),
    [
        ("views.md", models.MaterializedView),
        ("tables.md", tables.ParquetTable),
        ("tables.md", tables.DeltaTable),
        ("tables.md", tables.IcebergTable),
        ("operations.md", models.DeclaredProject),
        ("operations.md", models.Spark),
    ],
)
def test_every_key_of_the_project_file_is_explained(page: str, model: type[BaseModel]) -> None:
    keys = [field.validation_alias or name for name, field in model.model_fields.items()]
    assert [key for key in keys if not re.search(rf"`{key}`|\b{key}: ", _TEXTS[page])] == []


def test_the_modules_that_are_named_exist() -> None:
    modules = [f"/{each.relative_to(ROOT).as_posix()}" for each in (ROOT / "mv_assets").rglob("*.py")]
    named = set(re.findall(r"`([\w/]+\.py)`", _TEXTS["ARCHITECTURE.md"]))
    assert named
    assert [name for name in named if not any(each.endswith(f"/{name}") for each in modules)] == []


def test_the_make_targets_that_are_named_exist() -> None:
    [phony] = re.findall(r"^\.PHONY: (.*)$", (ROOT / "Makefile").read_text(), re.MULTILINE)
    typed = [line for page in PAGES for block in blocks(page) for line in block.text.splitlines()]
    spans = re.findall(r"`([^`\n]+)`", "\n".join(_TEXTS.values()))
    named = [found[1] for text in (*typed, *spans) if (found := re.match(r"make ([a-z-]+)", text))]
    assert set(named) <= set(phony.split())
    assert {"dev", "test", "check", "docs"} <= set(named)


@pytest.mark.parametrize("page", PAGES, ids=lambda page: page.name)
def test_python_and_yaml_can_be_read(page: Path) -> None:
    for block in blocks(page):
        if block.language == "python":
            ast.parse(block.text)
        if block.language == "yaml":
            yaml.safe_load(block.text)


def test_the_messages_under_troubleshooting_are_ours() -> None:
    """They are put together from parts: of their runs of three words at least half are in the source."""
    source = " ".join(_words("\n".join(_literals())))
    foreign = []
    for message in _messages():
        runs = [
            " ".join(words[at : at + 3])
            for part in re.split(r"\.\.\.|'?\b[A-Z]+\b'?|\d+", message)
            for words in [_words(part)]
            for at in range(len(words) - 2)
        ]
        if len(runs) >= 3 and sum(run in source for run in runs) * 2 < len(runs):
            foreign.append(message)
    assert foreign == []


def _messages() -> list[str]:
    rows = [line for line in _TEXTS["troubleshooting.md"].splitlines() if line.startswith("|")]
    return [message for row in rows for message in re.findall(r"`([^`]+)`", row.split(" | ")[0])]


def _literals() -> Iterator[str]:
    """The texts in the source, with a capital where a value is put in."""
    yield (ROOT / "Makefile").read_text(encoding="utf-8")
    for file in (ROOT / "mv_assets").rglob("*.py"):
        for node in ast.walk(ast.parse(file.read_text(encoding="utf-8"))):
            if isinstance(node, ast.JoinedStr):
                parts = [part.value if isinstance(part, ast.Constant) else " X " for part in node.values]
                yield "".join(map(str, parts))
            elif isinstance(node, ast.Constant) and isinstance(node.value, str):
                yield node.value


def _words(text: str) -> list[str]:
    return re.findall(r"[A-Za-z_']+", text)
