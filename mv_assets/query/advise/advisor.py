"""Searches for the view that would answer a query; what it proposes was admitted, and matched."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from contextlib import suppress
from dataclasses import dataclass, replace

from pydantic import ValidationError
from sqlglot import exp

from mv_assets.config import MaterializedView
from mv_assets.config.values import WITH_THE_DATA
from mv_assets.query.advise.change import changed
from mv_assets.query.advise.proposal import Proposal
from mv_assets.query.match.lack import Lack, Lacking, plainly
from mv_assets.query.match.matches import match
from mv_assets.query.match.request import Request
from mv_assets.query.match.view_columns import ViewColumns, view_columns_of
from mv_assets.query.route.schema_cache import SchemaCache
from mv_assets.refusal import Refusal
from mv_assets.spark_sql.canonical import NotPlain
from mv_assets.spark_sql.grain import BOUNDARIES, TO_TIMESTAMP
from mv_assets.spark_sql.scope import Source
from mv_assets.views.catalog import Catalog, admit
from mv_assets.views.view import View, unseen

# What lacks is known only as far as what is there lets the match get; more steps nobody would call a change.
_STEPS = 4
_BUCKET = "1d"
_WORDS = {"second": "by_second", "minute": "by_minute", "hour": "hourly", "day": "daily"}


@dataclass(frozen=True, slots=True)
class Advisor:
    """Advises on one SELECT over the tables of some sources."""

    catalog: Catalog
    cache: SchemaCache
    asked: Request
    sources: Mapping[str, Source]

    def answering(self) -> str | None:
        """A view that could answer as it is."""
        for view in self._views():
            try:
                self._match(self.cache.view_columns(view, self.asked.time, self.sources))
            except NotPlain:
                continue
            return view.name
        return None

    def _views(self) -> Iterator[View]:
        found = self.cache.candidates(self.asked.time.table)
        return (view for view in found if view.declared.answers)

    def _match(self, view_columns: ViewColumns) -> None:
        """Whether a view answers, in one way or another: else it raises."""
        *others, last = self.asked.ways
        for asked in others:
            with suppress(NotPlain):
                match(asked, view_columns)
                return
        match(last, view_columns)

    def best(self) -> Proposal:
        """The smallest change of a view that lets it keep its groups, else a new view, else any change.

        Raises:
            NotPlain: there is none.

        """
        found = sorted(self._changes(), key=lambda each: each[0])
        if found and found[0][0][0] == 0:
            return found[0][1]
        try:
            return self._new()
        except NotPlain:
            if found:
                return found[0][1]
            raise

    def _changes(self) -> Iterator[tuple[tuple[int, int, str], Proposal]]:
        """Changes of views, with how much more rows and columns they bring."""
        for view in self._views():
            if view.declared.base.table != self.asked.time.table:
                # What lacks is said in columns of the table, which it does not read.
                continue
            try:
                before = self.cache.view_columns(view, self.asked.time, self.sources)
                made, lack = self._completed(view.declared, before)
                _refuse_less(before, made)
            except NotPlain:
                continue
            more_rows = len(lack.conditions) + len(lack.keys) + len(lack.grains)
            cost = more_rows, len(lack.aggregates) + len(lack.columns), view.name
            yield cost, Proposal(made.view.declared, _said(lack, self.asked.source.base))

    def _new(self) -> Proposal:
        asked, grain = self.asked, self._grain()
        single = isinstance(asked.aggregation, Refusal) or asked.opaque is not None
        if single and not asked.filters:
            why = asked.aggregation if isinstance(asked.aggregation, Refusal) else asked.opaque
            raise NotPlain(f"only single rows can answer it ({why}), which a view would merely copy")
        if single:
            return self._named(*self._completed(self._seed(None, joins=False)))
        joins = False
        for _ in range(_STEPS):
            try:
                return self._named(*self._completed(self._seed(grain, joins=joins)))
            except Lacking as why:
                if why.lack.joins and not joins:
                    joins = True
                elif why.lack.grain is not None and why.lack.grain != grain:
                    grain = why.lack.grain
                else:
                    raise
        raise NotPlain("no view was found that would answer it")

    def _grain(self) -> str:
        """Days, or what the edges of the asked time need; a clock's are those of an hour at best."""
        if self.asked.by_clock:
            return "hour"
        found = (self.asked.range.low, self.asked.range.high)
        edges = [edge for edge in found if edge is not None]
        for grain in ("day", "hour", "minute"):
            boundaries = BOUNDARIES[grain]
            if boundaries is not None and all(
                e % 1_000 == 0 and boundaries.is_start(e // 1_000) for e in edges
            ):
                return grain
        return "second"

    def _seed(self, grain: str | None, *, joins: bool) -> MaterializedView:
        """A view with nothing but its time, and the number of rows; single rows without a grain."""
        asked, base = self.asked, self.asked.source.base
        time = plainly(exp.column(asked.time.column, table=base, quoted=True), base)
        if asked.time.unit is not None:
            time = f"{TO_TIMESTAMP[asked.time.unit]}({time})"
        name = asked.time.column.lower()
        if asked.time.kind != "date" and grain is not None:
            name, time = grain, f"date_trunc('{grain}', {time})"
        items = [time if time.lower() == name else f"{time} AS {name}"]
        items += ["count(*) AS n"] if grain is not None else []
        tables = [join.reading(join.table) for join in asked.source.joins] if joins else []
        kept = [each for each in asked.filters if grain is None or not _by_constants(each)]
        own = [each for each in kept if joins or _of(each, base)]
        conditions = [each.sql("spark") if joins else plainly(each, base) for each in own]
        where = f" WHERE {' AND '.join(conditions)}" if own else ""
        sql = f"SELECT {', '.join(items)} FROM {' '.join([base, *tables])}{where}"
        sql += " GROUP BY ALL" if grain is not None else ""
        joined = [join.table for join in asked.source.joins] if joins else []
        return _declared(
            name="new",
            base=base,
            dimensions=joined,
            sql=sql,
            time_column=name,
            bucket=_BUCKET,
            start=WITH_THE_DATA,
        )

    def _named(self, made: ViewColumns, lack: Lack) -> Proposal:
        base = self.asked.source.base
        keys = [key.name.lower() for key in lack.keys][:2]
        grain = made.time.grain or ("day" if self.asked.time.kind == "date" else None)
        words = [base, *(["by", *keys] if keys else []), _WORDS.get(str(grain), "rows")]
        name = free = "_".join(word for each in words for word in each.split())
        number = 2
        while free in self.catalog.views or free in self.catalog.tables:
            free, number = f"{name}_{number}", number + 1
        declared = made.view.declared
        return Proposal(
            _declared(
                name=free,
                base=base,
                dimensions=declared.joined,
                sql=declared.sql,
                time_column=declared.time_column,
                bucket=declared.bucket,
                start=WITH_THE_DATA,
            )
        )

    def _completed(
        self, declared: MaterializedView, made: ViewColumns | None = None
    ) -> tuple[ViewColumns, Lack]:
        """A view with all that it lacked, which answers now; and what that was. `made`: as it is."""
        all_ = Lack()
        for _ in range(_STEPS):
            made = made or view_columns_of(self._admitted(declared), self._known, self.asked.time)
            try:
                self._match(made)
            except Lacking as why:
                base = self.asked.source.base
                if declared.name == "new" and (why.lack.grains or why.lack.joins):
                    raise
                sql = changed(str(declared.sql), why.lack, self._known, base)
                all_ = all_.and_(why.lack)
                declared, made = declared.model_copy(update={"sql": sql}), None
                continue
            return made, all_
        raise NotPlain("too much would have to be changed")

    def _admitted(self, declared: MaterializedView) -> View:
        day = {"date": "day"}.get(self.asked.time.kind)
        base = replace(self._known[self.asked.time.table], grain=day)
        view, mistakes = admit(self.catalog, declared, {**self.sources, base.name: base})
        if view is None:
            raise NotPlain(mistakes[0].what if mistakes else "no such view is admitted")
        return view

    @property
    def _known(self) -> dict[str, Source]:
        return {**{name: unseen(table) for name, table in self.catalog.tables.items()}, **self.sources}


def _declared(**given: object) -> MaterializedView:
    try:
        return MaterializedView.model_validate(given)
    except ValidationError as error:
        raise NotPlain(error.errors()[0]["msg"]) from None


def _refuse_less(before: ViewColumns, after: ViewColumns) -> None:
    """A change must leave a view able to answer what it answers now."""
    if not set((before.values or {}).values()) <= set((after.values or {}).values()):
        raise NotPlain("the change would lose an aggregate")
    if not set(before.columns.values()) <= set(after.columns.values()):
        raise NotPlain("the change would lose a column")


def _said(lack: Lack, base: str) -> str:
    """What of a view is changed."""
    said = lack.said(base)
    if not lack.conditions:
        return said
    condition = " AND ".join(plainly(each, base) for each in lack.conditions)
    rest = replace(lack, conditions=()).said(base)
    return f"take its filter {condition} out" + (f"; {rest}" if rest else "")


def _by_constants(condition: exp.Expr) -> bool:
    """Whether it picks values of a column, so that the column makes a good key; of ranges it would not."""
    while isinstance(condition, (exp.Paren, exp.Not)):
        condition = condition.this
    if isinstance(condition, (exp.And, exp.Or)):
        return _by_constants(condition.this) and _by_constants(condition.expression)
    return isinstance(condition, (exp.EQ, exp.In, exp.Column, exp.Is, exp.Like))


def _of(condition: exp.Expr, table: str) -> bool:
    return all(column.table == table for column in condition.find_all(exp.Column))
