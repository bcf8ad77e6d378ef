"""What changed between the segments a bucket was computed from and those it has now."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass

from mv_assets.state.model import SCHEMA_OF, Inputs, PartitionRow, Segment
from mv_assets.text import printable

_NAMED = 3


@dataclass(frozen=True, slots=True)
class Difference:
    added: tuple[Segment, ...] = ()
    changed: tuple[Segment, ...] = ()
    removed: tuple[Segment, ...] = ()

    def __str__(self) -> str:
        parts = [
            _phrase(self.added, "added"),
            _phrase(self.changed, "changed"),
            _phrase(self.removed, "removed"),
        ]
        return ", ".join(part for part in parts if part)


@dataclass(frozen=True, slots=True)
class Changes:
    """A difference in a sentence's part and in numbers: thousands of them may be kept."""

    says: str
    added: int
    changed: int
    removed: int

    @classmethod
    def of(cls, found: Difference) -> Changes:
        return cls(str(found), len(found.added), len(found.changed), len(found.removed))


def difference(recorded: Iterable[Segment], now: Iterable[Segment]) -> Difference:
    """Segments by table and name: a file that only moved in time is changed too."""
    before, after = {_key(s): s for s in recorded}, {_key(s): s for s in now}
    return Difference(
        added=_sorted(after[key] for key in after.keys() - before.keys()),
        changed=_sorted(
            after[key] for key in after.keys() & before.keys() if after[key].crc != before[key].crc
        ),
        removed=_sorted(before[key] for key in before.keys() - after.keys()),
    )


def reason(row: PartitionRow | None, inputs: Inputs, change: Difference) -> str:
    """Why a bucket no longer matches, in a sentence's part."""
    if row is None or row.inputs is None:
        return "it lies below the watermark and has no data"
    recorded, current = dict(row.inputs.dimensions), dict(inputs.dimensions)
    others = sorted(n for n in recorded.keys() | current.keys() if recorded.get(n) != current.get(n))
    reasons = [f"{n} changed" if n.startswith(SCHEMA_OF) else f"dimension {n} changed" for n in others]
    if row.inputs.windows != inputs.windows:
        reasons.append(str(change) or "segments differ")
    return ", ".join(reasons) or "inputs differ"


def _phrase(segments: Sequence[Segment], what: str) -> str:
    if not segments:
        return ""
    names = ", ".join(named(segment) for segment in segments[:_NAMED])
    more = f" and {len(segments) - _NAMED} more" if len(segments) > _NAMED else ""
    return f"{len(segments)} segment{'s' * (len(segments) > 1)} {what} ({names}{more})"


def _sorted(segments: Iterable[Segment]) -> tuple[Segment, ...]:
    return tuple(sorted(segments, key=_key))


def named(segment: Segment) -> str:
    """A segment for people, with its table where that is not the base."""
    return printable(segment.name if segment.source is None else f"{segment.source}: {segment.name}")


def _key(segment: Segment) -> tuple[str, str]:
    return segment.source or "", segment.name
