"""The texts for people: which there are, their fenced blocks, headings and links."""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

ROOT = Path(__file__).parents[3]
README = ROOT / "README.md"
DOCS = ROOT / "docs"
PAGES = (README, ROOT / "ARCHITECTURE.md", ROOT / "CONTRIBUTING.md", *sorted(DOCS.glob("*.md")))

_FENCE = re.compile(r'^ *```(?P<language>\w*)(?: title="(?P<title>[^"]*)")?$')
_LINK = re.compile(r"\]\(([^)\s]+)\)|\b(?:href|src)=\"([^\"]+)\"")


@dataclass(frozen=True, slots=True)
class Block:
    """What stands between two fences; `heading` is the one above it."""

    line: int
    heading: str
    language: str
    title: str
    text: str


def blocks(page: Path) -> Iterator[Block]:
    heading, fence, first = "", None, 0
    inside: list[str] = []
    for number, line in enumerate(page.read_text(encoding="utf-8").splitlines(), start=1):
        if fence is None:
            heading = line.lstrip("# ") if line.startswith("#") else heading
            fence, first, inside = _FENCE.match(line), number, []
        elif line.strip() == "```":
            text = "\n".join(inside) + "\n"
            yield Block(first, heading, fence["language"], fence["title"] or "", text)
            fence = None
        else:
            inside.append(line)
    assert fence is None, f"{page.name}: the block of line {first} has no end"


def prose(page: Path) -> str:
    """The page without its fenced blocks."""
    kept, fenced = [], False
    for line in page.read_text(encoding="utf-8").splitlines():
        is_fence = line.strip().startswith("```")
        if not fenced and not is_fence:
            kept.append(line)
        fenced ^= is_fence
    assert not fenced
    return "\n".join(kept)


def links(page: Path) -> list[str]:
    code_left_out = re.sub(r"`[^`\n]*`", "", prose(page))
    return [one or other for one, other in _LINK.findall(code_left_out)]


def headings(page: Path) -> list[str]:
    return re.findall(r"^#+ (.+)$", prose(page), re.MULTILINE)


def anchors(page: Path) -> set[str]:
    return {slug(heading) for heading in headings(page)}


def slug(heading: str) -> str:
    """As Python-Markdown makes it."""
    return re.sub(r"[-\s]+", "-", re.sub(r"[^\w\s-]", "", heading).strip().lower())
