"""Mistakes that query routing could make, each put in place of the real thing."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from typing import Any

import pytest
from sqlglot import exp

from mv_assets.query.execute import planner, rewrite
from mv_assets.query.match import (
    aggregation,
    joins,
    matches,
    ranges,
    request,
    simpler,
    truncation,
    view_columns,
)
from mv_assets.query.match.implication.known import Known
from mv_assets.query.match.implication.value_sets import ValueSet
from mv_assets.query.match.spans import joined
from mv_assets.query.route import assignment, eligibility, schema_cache
from mv_assets.spark_sql.aggregates import Kind, Partial
from mv_assets.state import rules
from mv_assets.state.model import State
from mv_assets.tables import upstream

Mutant = Callable[[pytest.MonkeyPatch], None]


def stale_is_fit(patch: pytest.MonkeyPatch) -> None:
    def judged(self: Any, view: Any, *, frozen: bool) -> eligibility.Rows:
        snapshot = self._pinned.snapshot(view.name)
        rows = {} if snapshot is None else snapshot.rows
        return {b: row for b, row in rows.items() if row.inputs is not None and (frozen or not row.frozen)}

    patch.setattr(eligibility.Eligibility, "_judged", judged)


def the_map_is_trusted(patch: pytest.MonkeyPatch) -> None:
    patch.setattr(eligibility.Eligibility, "_compared", lambda _self, _view, _snapshot, rows, **_: rows)


def everything_below_w(patch: pytest.MonkeyPatch) -> None:
    def judged(self: Any, view: Any, *, frozen: bool) -> eligibility.Rows:
        snapshot = self._pinned.snapshot(view.name)
        if snapshot is None:
            return {}
        below = {b: r for b, r in snapshot.rows.items() if b < snapshot.header.watermark}
        return {b: r for b, r in below.items() if r.generation is not None and (frozen or not r.frozen)}

    patch.setattr(eligibility.Eligibility, "_judged", judged)


def frozen_buckets_are_used(patch: pytest.MonkeyPatch) -> None:
    real = eligibility.Eligibility.rows
    patch.setattr(eligibility.Eligibility, "rows", lambda self, view, **_: real(self, view, frozen=True))


def ragged_ends_are_ignored(patch: pytest.MonkeyPatch) -> None:
    patch.setattr(assignment, "_whole", lambda spans, _grain: joined(spans))


def ranges_are_widened(patch: pytest.MonkeyPatch) -> None:
    patch.setattr(ranges.Range, "inner", ranges.Range.outer)


def rows_of_no_time_are_dropped(patch: pytest.MonkeyPatch) -> None:
    real = ranges.range_of

    def range_of(conditions: Any, time: Any) -> Any:
        found, others = real(conditions, time)
        return replace(found, rejects_null=True), others

    for module in _modules_with("range_of"):
        patch.setattr(module, "range_of", range_of)


def mean_by_all_rows(patch: pytest.MonkeyPatch) -> None:
    real = aggregation._Taken._merge

    def merge(self: Any, node: Any) -> Any:
        found = real(self, node)
        if isinstance(found, aggregation.Average):
            condition = list(self.partials.values())[found.count].condition
            return aggregation.Average(found.total, self._partial(Partial(Kind.COUNT, None, condition)))
        return found

    patch.setattr(aggregation._Taken, "_merge", merge)


def conditions_of_views_are_forgotten(patch: pytest.MonkeyPatch) -> None:
    real = view_columns.view_columns_of
    for module in _modules_with("view_columns_of"):
        patch.setattr(module, "view_columns_of", lambda *given: replace(real(*given), conditions={}))


def filters_are_forgotten(patch: pytest.MonkeyPatch) -> None:
    real = matches.match
    for module in _modules_with("match"):
        patch.setattr(module, "match", lambda *given: replace(real(*given), filters=()))


def counts_are_counted(patch: pytest.MonkeyPatch) -> None:
    real = Partial.merged

    def merged(self: Partial, column: str, kind: Any) -> str:
        return f"count({column})" if self.kind is Kind.COUNT else real(self, column, kind)

    patch.setattr(Partial, "merged", merged)


def weeks_make_months(patch: pytest.MonkeyPatch) -> None:
    for module in _modules_with("nested"):
        patch.setattr(module, "nested", lambda _fine, _coarse: True)


def the_base_is_left_out(patch: pytest.MonkeyPatch) -> None:
    real = assignment.assign

    def assign(*given: Any) -> assignment.Assignment:
        found = real(*given)
        return replace(found, base=()) if found.parts else found

    for module in _modules_with("assign"):
        patch.setattr(module, "assign", assign)


def an_upstream_may_be_stale(patch: pytest.MonkeyPatch) -> None:
    def listing(self: Any, name: str) -> Any:
        snapshot = self.pinned.snapshot(name)
        valid = {
            b: r for b, r in snapshot.rows.items() if rules.effective_state(r, snapshot.header) is State.VALID
        }
        return upstream.listing_of(snapshot, self.pinned.at, valid)

    patch.setattr(eligibility.EligibleViews, "listing", listing)


def implications_are_turned_around(patch: pytest.MonkeyPatch) -> None:
    real = ValueSet.within
    patch.setattr(ValueSet, "within", lambda self, other: real(other, self))


def a_join_that_doubles_is_a_plain_one(patch: pytest.MonkeyPatch) -> None:
    patch.setattr(matches, "_unique_keys", lambda *_: ())


def rows_without_a_match_are_kept(patch: pytest.MonkeyPatch) -> None:
    patch.setattr(matches, "_matched", lambda *_: exp.true())


def equalities_of_joins_are_conditions(patch: pytest.MonkeyPatch) -> None:
    def never_null(asked: Any, join: Any, filters: Any) -> bool:
        columns = [c for each in filters for c in each.find_all(exp.Column) if c.table == join.table]
        known: Known = asked.known
        return any(known.proves(matches._not_null(column)) for column in columns)

    patch.setattr(matches, "_never_null", never_null)


def a_grouping_set_is_left_out(patch: pytest.MonkeyPatch) -> None:
    real = aggregation.Aggregation.merging

    def merging(self: Any, *given: Any) -> str:
        return real(self if self.sets is None else replace(self, sets=self.sets[:-1]), *given)

    patch.setattr(aggregation.Aggregation, "merging", merging)


def a_sample_is_all(patch: pytest.MonkeyPatch) -> None:
    real = aggregation.Spread.merged

    def merged(self: Any, *given: Any) -> str:
        return real(replace(self, function=(self.function[0], not self.function[1])), *given)

    patch.setattr(aggregation.Spread, "merged", merged)


def a_number_is_added_to_nothing(patch: pytest.MonkeyPatch) -> None:
    real = simpler._filtered

    def filtered(aggregate: Any, condition: Any) -> Any:
        counts = isinstance(aggregate, exp.Count)
        return real(exp.Count(this=exp.Star()) if counts else aggregate, condition)

    patch.setattr(simpler, "_filtered", filtered)


def the_sum_of_nothing_is_0(patch: pytest.MonkeyPatch) -> None:
    patch.setattr(simpler, "_if_any", lambda _, value: value)


def a_left_join_is_an_inner_one(patch: pytest.MonkeyPatch) -> None:
    patch.setattr(joins, "_is_free", lambda join: not join.args.get("using"))


def null_is_false_under_not(patch: pytest.MonkeyPatch) -> None:
    real = ValueSet.others
    patch.setattr(ValueSet, "others", lambda self: replace(real(self), null=not self.null))


def a_part_sees_another_listing(patch: pytest.MonkeyPatch) -> None:
    """SELECTs inside are answered at the listing of the last look, the rest at the present one."""
    real = planner.Planner._by_views

    def by_views(self: Any, statement: Any, *, alone: bool = True) -> Any:
        with pytest.MonkeyPatch.context() as inside:
            if not alone:
                the_map_is_trusted(inside)
            return real(self, statement, alone=alone)

    patch.setattr(planner.Planner, "_by_views", by_views)


def _modules_with(name: str) -> list[Any]:
    modules = (
        aggregation,
        request,
        eligibility,
        schema_cache,
        matches,
        view_columns,
        planner,
        ranges,
        rewrite,
        assignment,
    )
    return [module for module in (*modules, truncation) if hasattr(module, name)]


# Each with what a query has to have for it to matter.
MUTANTS: dict[str, tuple[Mutant, str]] = {
    "STALE is as good as VALID": (stale_is_fit, ""),
    "VALID is believed without a listing": (the_map_is_trusted, ""),
    "everything below W is there": (everything_below_w, ""),
    "frozen buckets are used": (frozen_buckets_are_used, r"\b(d|flag)\b"),
    "ragged ends belong to the view": (ragged_ends_are_ignored, r"\bat\b.* [<>]|[<>]=? .*\bat\b"),
    "a range reaches to the next millisecond": (ranges_are_widened, r"\bat > "),
    "rows of no time are dropped": (rows_of_no_time_are_dropped, ""),
    "AVG from COUNT(*)": (mean_by_all_rows, r"\b(avg|mean)\("),
    "the view's WHERE is forgotten": (conditions_of_views_are_forgotten, ""),
    "remaining filters are forgotten": (filters_are_forgotten, " WHERE "),
    "COUNT merged by count": (counts_are_counted, r"\bcount\("),
    "weeks make up months": (weeks_make_months, r"month|MM"),
    "the base's part is left out": (the_base_is_left_out, ""),
    "an implication is turned around": (implications_are_turned_around, "zone|kind|fare"),
    "NULL is false under NOT": (null_is_false_under_not, r"zone\W* (IS NULL|<=> null)"),
    "a CTE is answered at another listing than the rest": (
        a_part_sees_another_listing,
        r"(?i)^with|\(select|union",
    ),
    "a join that doubles is taken for a plain one": (a_join_that_doubles_is_a_plain_one, ""),
    "rows that found no match are in an inner join": (rows_without_a_match_are_kept, r"(?i)(?<!left) join"),
    "a join's own equality is met by rows without a match": (
        equalities_of_joins_are_conditions,
        r"(?i)\bz(ones)?\.zone\W+(> 1|IS NULL|0|IN)",
    ),
    "a grouping set is left out": (a_grouping_set_is_left_out, "ROLLUP|CUBE|GROUPING SETS"),
    "the spread of a sample is that of all": (a_sample_is_all, "stddev|var"),
    "a number is added to nothing": (a_number_is_added_to_nothing, r"(?i)sum\(\S*x \+ 1\)|sum\(3 - "),
    "the sum of nothing is 0": (the_sum_of_nothing_is_0, r"(?i)sum\((1|case .* else 0 end)\)"),
    "a LEFT JOIN is taken for an inner one": (a_left_join_is_an_inner_one, r"(?i)left join"),
    "an upstream bucket is believed without a listing": (an_upstream_may_be_stale, ""),
}
