"""What changed between the segments a bucket was computed from and those it has now."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass

from mv_assets.state.model import SCHEMA_OF, Inputs, PartitionRow, Segment
from mv_assets.wording import printable

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


def difference(recorded: Iterable[Segment], now: Iterable[Segment]) -> Difference:
    """Segments by name: a file that only moved in time is changed too."""
    before, after = {s.name: s for s in recorded}, {s.name: s for s in now}
    return Difference(
        added=_sorted(after[name] for name in after.keys() - before.keys()),
        changed=_sorted(
            after[name] for name in after.keys() & before.keys() if after[name].crc != before[name].crc
        ),
        removed=_sorted(before[name] for name in before.keys() - after.keys()),
    )


def reason(row: PartitionRow | None, inputs: Inputs, change: Difference) -> str:
    """Why a bucket no longer matches, in a sentence's part."""
    if row is None or row.inputs is None:
        return "it lies below the watermark and has no data"
    recorded, current = dict(row.inputs.dimensions), dict(inputs.dimensions)
    others = sorted(n for n in recorded.keys() | current.keys() if recorded.get(n) != current.get(n))
    reasons = [f"{n} changed" if n.startswith(SCHEMA_OF) else f"dimension {n} changed" for n in others]
    if row.inputs.base != inputs.base:
        reasons.append(str(change) or "segments differ")
    return ", ".join(reasons) or "inputs differ"


def _phrase(segments: Sequence[Segment], what: str) -> str:
    if not segments:
        return ""
    names = ", ".join(printable(segment.name) for segment in segments[:_NAMED])
    more = f" and {len(segments) - _NAMED} more" if len(segments) > _NAMED else ""
    return f"{len(segments)} segment{'s' * (len(segments) > 1)} {what} ({names}{more})"


def _sorted(segments: Iterable[Segment]) -> tuple[Segment, ...]:
    return tuple(sorted(segments, key=lambda segment: segment.name))
