"""Who publishes a view again reads what is new of its map; all of it where the table is looked at."""

from __future__ import annotations

from mv_assets.buckets import DAY
from mv_assets.publish.publisher import STORED
from mv_assets_tests.support.published_lake import PublishedLake, PublishedLakes


def reasons(made: PublishedLake) -> set[str | None]:
    return set(made.reader.rows("v__buckets")["reason"].to_pylist())


def test_a_look_at_a_table_relies_on_nothing_that_is_remembered(iceberg_lake: PublishedLakes) -> None:
    made = iceberg_lake()
    made.days(0, 1)
    made.run()
    made.manager.force(made.catalog.view("v").declaration, [0], "it looks odd")
    made.published()
    remembered = STORED.get((made.store.database.where, "v"))
    assert remembered is not None
    remembered[1].reason[0] = "a mistake"
    made.manager.force(made.catalog.view("v").declaration, [DAY], "so does this")
    made.published()
    assert reasons(made) == {"a mistake", "so does this"}
    made.manager.force(made.catalog.view("v").declaration, [DAY], "still")
    made.publish(look=True)
    assert reasons(made) == {"it looks odd", "still"}
    made.check_published()
