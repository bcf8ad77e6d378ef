"""Stretches of time `[start, end)` in UTC milliseconds, and lists of them, disjoint and in order."""

from __future__ import annotations

from collections.abc import Iterable, Sequence

Span = tuple[int, int]
Spans = tuple[Span, ...]

# Further than any time that a table can hold.
BEFORE, AFTER = -(1 << 62), 1 << 62
EVER: Span = (BEFORE, AFTER)


def joined(spans: Iterable[Span]) -> Spans:
    """Spans in order, those that touch or overlap made one, empty ones left out."""
    found: list[Span] = []
    for start, end in sorted(spans):
        if start >= end:
            continue
        if found and start <= found[-1][1]:
            found[-1] = found[-1][0], max(found[-1][1], end)
        else:
            found.append((start, end))
    return tuple(found)


def common(one: Sequence[Span], other: Sequence[Span]) -> Spans:
    """What lies in both."""
    found, here, there = [], 0, 0
    while here < len(one) and there < len(other):
        start, end = max(one[here][0], other[there][0]), min(one[here][1], other[there][1])
        if start < end:
            found.append((start, end))
        if one[here][1] < other[there][1]:
            here += 1
        else:
            there += 1
    return tuple(found)


def without(spans: Sequence[Span], taken: Sequence[Span]) -> Spans:
    """What is left of spans."""
    edges = [BEFORE, *(edge for span in taken for edge in span), AFTER]
    gaps = [(edges[at], edges[at + 1]) for at in range(0, len(edges), 2)]
    return common(spans, [gap for gap in gaps if gap[0] < gap[1]])
