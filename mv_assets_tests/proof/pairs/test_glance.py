"""A glance at a view spares the match, and only where that would fail: all queries against all views."""

from __future__ import annotations

from collections.abc import Callable

import pytest

from mv_assets.query.match.matches import match
from mv_assets.query.match.request import Request, request_of
from mv_assets.query.match.statement import statement_of
from mv_assets.query.route.pinned import Pinned
from mv_assets.query.route.schema_cache import SchemaCache
from mv_assets.run.opened import OpenProject
from mv_assets.spark_sql.canonical import NotPlain
from mv_assets.spark_sql.scope import Source
from mv_assets_tests.proof.pairs.conftest import Opened
from mv_assets_tests.proof.pairs.pairs import all_pairs
from mv_assets_tests.proof.pairs.tables import joined

ALL = all_pairs()


def requests(text: str, cache: SchemaCache, pinned: Pinned, project: OpenProject) -> tuple[Request, ...]:
    """What a query asks, in all ways; nothing if its SELECTs are answered one by one."""
    catalog = project.catalog
    statement = statement_of(text, [*catalog.tables, *catalog.views])
    time = cache.time("events", statement, pinned)
    assert time is not None
    try:
        return request_of(statement, sources(text, cache, pinned, project), time).ways
    except NotPlain:
        return ()


def sources(text: str, cache: SchemaCache, pinned: Pinned, project: OpenProject) -> dict[str, Source]:
    catalog = project.catalog
    statement = statement_of(text, [*catalog.tables, *catalog.views])
    return {name: cache.source(name, statement, pinned) for name in statement.names}


@pytest.mark.slow
def test_no_view_that_answers_is_left_out(
    opened: Opened, record_property: Callable[[str, object], None]
) -> None:
    about = {"base": "events", "time_column": "t", "bucket": "1d", "start": "2024-01-01"}
    views = [
        {"name": f"v{at}", **about, "dimensions": joined(each.view), "sql": each.view}
        for at, each in enumerate(ALL)
    ]
    project = opened(views).opened
    cache, tried, answered, passed = SchemaCache(project), 0, 0, 0
    with Pinned(project) as pinned:
        for text in (query.text for pairs in ALL for query in pairs.queries):
            for asked in requests(text, cache, pinned, project):
                known = sources(text, cache, pinned, project)
                names = {each.name for each in cache.promising(asked, known)}
                passed += len(names)
                for view in cache.candidates("events"):
                    tried += 1
                    try:
                        match(asked, cache.view_columns(view, asked.time, known))
                    except NotPlain:
                        continue
                    answered += 1
                    assert view.name in names, f"{view.declared.sql}\n{text}"
    # A glance that lets everything pass would be of no use.
    assert answered > tried / 20
    assert passed < 2 * answered
    record_property("proved", f"glances: {tried} pairs, {passed} matched, {answered} answer")
