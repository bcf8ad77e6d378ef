"""Values that a column may have, as comparisons with constants tell: stretches of one order, and null."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from functools import reduce
from typing import Any, NamedTuple, Self


class _Edge(NamedTuple):
    """A place between values: before all, just before a value, just after it, or after all."""

    beyond: int
    value: Any = 0
    after: bool = False


_BOTTOM, _TOP = _Edge(-1), _Edge(1)
_Stretch = tuple[_Edge, _Edge]


@dataclass(frozen=True, slots=True)
class ValueSet:
    """Disjoint stretches in order, none of them empty; and whether the value may be null."""

    stretches: tuple[_Stretch, ...]
    null: bool = False

    @classmethod
    def below(cls, value: Any, *, included: bool = False) -> Self:
        return cls(((_BOTTOM, _Edge(0, value, included)),))

    @classmethod
    def above(cls, value: Any, *, included: bool = False) -> Self:
        return cls(((_Edge(0, value, not included), _TOP),))

    @classmethod
    def of(cls, value: Any) -> Self:
        return cls(((_Edge(0, value), _Edge(0, value, after=True)),))

    @classmethod
    def whole(cls, value: int) -> Self:
        """One whole number, up to the next one: so neighbours make one stretch, as a range would."""
        return cls(((_Edge(0, value), _Edge(0, value + 1)),))

    @staticmethod
    def any_of(sets: Sequence[ValueSet]) -> ValueSet:
        """All values of some sets; at once, as lists of thousands of constants are usual."""
        joined: list[_Stretch] = []
        for low, high in sorted(stretch for each in sets for stretch in each.stretches):
            if joined and low <= joined[-1][1]:
                joined[-1] = joined[-1][0], max(joined[-1][1], high)
            else:
                joined.append((low, high))
        return ValueSet(tuple(joined), any(each.null for each in sets))

    @staticmethod
    def all_of(sets: Sequence[ValueSet]) -> ValueSet:
        """The values that are in each of some sets."""
        return reduce(ValueSet.and_, sets)

    def and_(self, other: ValueSet) -> ValueSet:
        found, mine, theirs = list[_Stretch](), 0, 0
        while mine < len(self.stretches) and theirs < len(other.stretches):
            (low, high), (other_low, other_high) = self.stretches[mine], other.stretches[theirs]
            if max(low, other_low) < min(high, other_high):
                found.append((max(low, other_low), min(high, other_high)))
            mine, theirs = (mine + 1, theirs) if high < other_high else (mine, theirs + 1)
        return ValueSet(tuple(found), self.null and other.null)

    def others(self) -> ValueSet:
        """All other values, and no null: what is not true of a null is not false of it either."""
        found, at = list[_Stretch](), _BOTTOM
        for low, high in self.stretches:
            if at < low:
                found.append((at, low))
            at = high
        if at < _TOP:
            found.append((at, _TOP))
        return ValueSet(tuple(found))

    def rest(self) -> ValueSet:
        """All that is not in it, null too."""
        return replace(self.others(), null=not self.null)

    def within(self, other: ValueSet) -> bool:
        """Whether every value of it is one of the other's."""
        return self.and_(other) == self

    @property
    def single(self) -> bool:
        """Whether it is one value. Only whole numbers are ints, and only those have a next one."""
        if self.null or len(self.stretches) != 1:
            return False
        ((low, high),) = self.stretches
        after = low._replace(after=True)
        return high == after or (type(low.value) is int and high == low._replace(value=low.value + 1))

    @property
    def empty(self) -> bool:
        return not self.stretches and not self.null


NOTHING = ValueSet(())
NULL = ValueSet((), null=True)
SOMETHING = ValueSet(((_BOTTOM, _TOP),))
ANYTHING = ValueSet(((_BOTTOM, _TOP),), null=True)
