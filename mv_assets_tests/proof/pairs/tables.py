"""The tables that all pairs are about."""

from __future__ import annotations

import random
from decimal import Decimal
from typing import Any

import pyarrow as pa

from mv_assets_tests.support.lake import day

# Of the columns of events, and of what they are joined by: of one type, so that both sides can be the same.
TYPES = {
    "at": pa.timestamp("us", "UTC"),
    "shop": pa.int32(),
    "product": pa.int32(),
    "customer": pa.int64(),
    "channel": pa.string(),
    "quantity": pa.int32(),
    "amount": pa.decimal128(10, 2),
    "tax": pa.decimal128(8, 2),
    "weight": pa.float64(),
    "paid": pa.bool_(),
    "shipped": pa.date32(),
}
SHOPS: dict[str, list[Any]] = {
    "shop": [1, 2, 3, None],
    "city": ["Bern", "Graz", None, "Oslo"],
    "country": ["CH", "AT", "AT", None],
    "size": [10, 20, 30, 40],
}
# One product is there twice: who joins it gets its rows twice.
PRODUCTS: dict[str, list[Any]] = {
    "product": [1, 2, 2, 4],
    "brand": ["acme", "bolt", "core", None],
    "category": ["a", "a", "b", "b"],
    "price": [Decimal("1.50"), Decimal("20.00"), None, Decimal("7.25")],
}


def some(number: int, rows: int = 40) -> dict[str, list[Any]]:
    """Columns of rows of one day; whatever may be null is, now and then."""
    chance = random.Random(number)
    times = [day(number, 0), *(day(number, chance.random() * 24) for _ in range(rows - 1))]

    def column(*values: object) -> list[Any]:
        return [chance.choice(values) for _ in times]

    return {
        "at": times,
        "shop": column(None, 1, 2, 3, 4),
        "product": column(None, 1, 2, 3),
        "customer": column(None, *range(9)),
        "channel": column(None, "web", "app", "phone", ""),
        "quantity": column(None, *range(-2, 12)),
        "amount": column(None, *(Decimal(chance.randrange(-999, 9999)) / 100 for _ in range(30))),
        "tax": column(None, *(Decimal(chance.randrange(0, 999)) / 100 for _ in range(30))),
        "weight": column(None, *(chance.randrange(80) / 8 for _ in range(30))),
        "paid": column(*(None, True, False)),
        "shipped": [None if chance.random() < 0.1 else each.date() for each in times],
    }


def joined(sql: str) -> list[dict[str, Any]]:
    """The dimensions that a view of such SQL has to declare."""
    known: list[dict[str, Any]] = [{"table": "shops", "key": "shop"}, {"table": "products"}]
    return [each for each in known if each["table"] in sql]
