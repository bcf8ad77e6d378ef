"""What is proved holds to Spark: of every type, at its borders, beside constants of other types."""

from __future__ import annotations

import random
from collections.abc import Iterator
from itertools import product

import pytest
import sqlglot
from pyspark.sql import SparkSession
from sqlglot import exp

from mv_assets.query.match.implication.constants import sampled
from mv_assets.query.match.implication.known import Kinds, Known
from mv_assets.spark.errors import JobFailed
from mv_assets.spark.failures import spark_errors
from mv_assets.spark.session import Engine

pytestmark = pytest.mark.slow
# Of each column its type, its values, and what it is compared with; with ANSI mode, or without it too.
COLUMNS = {
    "tiny": ("tinyint", ["-128", "-1", "0", "1", "126", "127"], ["0", "127", "128", "-129", "126.5", "1e0"]),
    "i": ("int", ["-2147483648", "0", "1", "2", "2147483647"], ["0", "1", "1.5", "2147483648", "1.0", "2L"]),
    "j": ("int", ["0", "1", "3"], ["1", "2"]),
    "big": (
        "bigint",
        ["-9223372036854775808", "9007199254740992", "9007199254740993", "9223372036854775807"],
        ["9007199254740993", "9007199254740992.5", "9223372036854775808", "12345678901234567890123456", "0"],
    ),
    "d": (
        "decimal(4,2)",
        ["-99.99", "1.25", "1.50", "99.99"],
        ["1.25", "1.249", "1.5", "100", "99.995", "2"],
    ),
    "wide": (
        "decimal(38,18)",
        ["0.000000000000000001", "0.000000000000000002", "12345678901234567890"],
        ["0.000000000000000001", "0.0000000000000000015", "0", "12345678901234567890123"],
    ),
    "f": (
        "double",
        ["double('nan')", "-0.0D", "0.0D", "0.1D", "1.5D", "double('inf')", "9007199254740992D"],
        ["0", "-0.0", "0.1", "0.10000000000000000001", "1.5", "9007199254740993", "9007199254740992", "1D"],
    ),
    "g": ("double", ["double('nan')", "-0.0D", "0.0D", "1.5D"], ["0", "1.5"]),
    "small": ("float", ["float('nan')", "0.1F", "1.5F"], ["0.1", "1.5", "0"]),
    "s": ("string", ["''", "' '", "'A'", "'a'", "'a '", "'é'", "'10'", "'9'"], ["''", "'a'", "'A'", "'9'"]),
    "b": ("boolean", ["true", "false"], ["true", "false"]),
    "day": (
        "date",
        ["DATE '2023-12-31'", "DATE '2024-01-01'", "DATE '2024-01-02'"],
        [
            "'2024-01-01'",
            "' 2024-01-01'",
            "DATE '2024-01-01'",
            "'2024-01-01 10:00:00'",
            "TIMESTAMP '2024-01-01 10:00:00'",
            "TIMESTAMP '2024-01-01'",
            "TIMESTAMP_NTZ '2024-01-02 00:00:00'",
        ],
    ),
    "ts": (
        "timestamp",
        [
            "TIMESTAMP '2024-01-01 00:00:00'",
            "TIMESTAMP '2024-01-01 00:00:00.000001'",
            "TIMESTAMP '2024-01-02'",
        ],
        [
            "'2024-01-01'",
            "DATE '2024-01-01'",
            "'2024-01-01 00:00:00'",
            "'2024-01-01T00:00:00.000001'",
            "'2024-01-01 00:00:00+00:00'",
            "TIMESTAMP '2024-01-02 01:00:00+01:00'",
        ],
    ),
    "ntz": (
        "timestamp_ntz",
        ["TIMESTAMP_NTZ '2024-01-01 00:00:00'", "TIMESTAMP_NTZ '2024-01-02 00:00:00'"],
        ["'2024-01-01'", "DATE '2024-01-01'", "TIMESTAMP '2024-01-02'"],
    ),
}
KINDS = {f"t.{name}": kind for name, (kind, _, _) in COLUMNS.items()}
# The same where some files have whole numbers and days, and others these.
WIDER = {
    "t.i": "int", "t.j": "int", "t.d": "int", "t.wide": "bigint", "t.f": "int", "t.g": "int",
    "t.day": "date", "t.ts": "date", "t.ntz": "date",
}  # fmt: skip
SAMPLED = KINDS | {name: sampled(kind) for name, kind in WIDER.items()}
OPERATORS = ("=", "<>", "<", "<=", ">", ">=", "<=>")
BESIDES = (
    "i = j",
    "j = i",
    "i <> j",
    "f = g",
    "f <=> g",
    "i < j",
    "f = f",
    "b = (i = 1)",
    "NOT b",
    "b IS TRUE",
    "b IS NOT FALSE",
    "b <> false",
    "j + 1 > i",
    "i <= j * 2",
    "-j <= i",
    "j - 12345678901234567890 < i",
    "i % 2 = j",
    "i <=> j",
    "i IN (j, 1)",
    "i BETWEEN j AND 1",
    "coalesce(i, j) > 1",
    "greatest(i, j) > 1",
    "nullif(i, j) = 0",
    "s LIKE 'a%'",
    "length(s) > 1",
    "upper(s) <> s",
    "substring(s, 1, 1) = 'a'",
    "i > j OR s IS NULL",
    "abs(-f) > g",
    "f * 2 <> g",
)
Truth = tuple[bool | None, ...]


def atoms() -> Iterator[str]:
    for name, (_, _, constants) in COLUMNS.items():
        yield from (f"{name} {operator} {each}" for operator, each in product(OPERATORS, constants))
        yield from (f"{each} >= {name}" for each in constants[:2])
        yield from (
            f"{name} BETWEEN {low} AND {high}" for low, high in product(constants[:3], constants[-3:])
        )
        yield from (f"{name} NOT BETWEEN {low} AND NULL" for low in constants[:1])
        for some in (constants[:1], constants[:2], constants[-2:], constants, [*constants[:2], "NULL"]):
            yield from (f"{name} {word} ({', '.join(some)})" for word in ("IN", "NOT IN"))
        yield from (f"{name} IS NULL", f"{name} IS NOT NULL", f"coalesce({name} = {constants[0]}, false)")
    yield from BESIDES


def condition(sql: str) -> exp.Expr:
    made = sqlglot.parse_one(sql, read="spark")
    for column in made.find_all(exp.Column):
        column.set("table", exp.to_identifier("t", quoted=True))
    return made


def judged(spark: SparkSession, ansi: str) -> dict[str, Truth]:
    """What each condition is of rows of all values and nulls; but for those that Spark refuses."""
    spark.conf.set("spark.sql.ansi.enabled", ansi)
    chance = random.Random(7)
    found = {name: [*values, "NULL"] for name, (_, values, _) in COLUMNS.items()}
    rows = [[each[at % len(each)] for each in found.values()] for at in range(9)]
    rows += [[chance.choice(each) for each in found.values()] for _ in range(150)]
    kinds = [kind for kind, _, _ in COLUMNS.values()]
    texts = (f"({', '.join(f'CAST({v} AS {k})' for v, k in zip(row, kinds, strict=True))})" for row in rows)
    spark.sql(f"SELECT * FROM VALUES {', '.join(texts)} AS t({', '.join(COLUMNS)})").createOrReplaceTempView(
        "t"
    )
    told: dict[str, Truth] = {}
    for name in [*COLUMNS, None]:
        own = [each for each in atoms() if (each in BESIDES if name is None else name in each.split())]
        known = [each for each in own if _is_known(spark, each)]
        columns = spark.sql(
            f"SELECT {', '.join(f'({each}) AS c{at}' for at, each in enumerate(known))} FROM t"
        )
        told |= dict(zip(known, zip(*columns.collect(), strict=True), strict=True))
    return told


def _is_known(spark: SparkSession, text: str) -> bool:
    try:
        with spark_errors():
            return len(spark.sql(f"SELECT ({text}) AS c FROM t").schema) == 1
    except JobFailed:
        return False


def _not(one: Truth) -> Truth:
    return tuple(None if each is None else not each for each in one)


def _and(one: Truth, other: Truth) -> Truth:
    pairs = zip(one, other, strict=True)
    return tuple(False if False in pair else None if None in pair else True for pair in pairs)


def _or(one: Truth, other: Truth) -> Truth:
    return _not(_and(_not(one), _not(other)))


def combined(
    chance: random.Random, told: dict[str, Truth], names: list[str], depth: int
) -> tuple[str, Truth]:
    if depth == 0 or chance.random() < 0.3:
        text = chance.choice(names)
        return f"({text})", told[text]
    left, mine = combined(chance, told, names, depth - 1)
    if chance.random() < 0.25:
        return f"(NOT {left})", _not(mine)
    if chance.random() < 0.15:
        word, wanted = chance.choice((("TRUE", True), ("FALSE", False)))
        if chance.random() < 0.5:
            return f"({left} IS {word})", tuple(each is wanted for each in mine)
        return f"({left} IS NOT {word})", tuple(each is not wanted for each in mine)
    right, theirs = combined(chance, told, names, depth - 1)
    both = chance.random() < 0.5
    return f"({left} {'AND' if both else 'OR'} {right})", (_and if both else _or)(mine, theirs)


def refuse_wrong(known: str, goal: str, mine: Truth, theirs: Truth) -> None:
    wrong = [at for at, (one, other) in enumerate(zip(mine, theirs, strict=True)) if one and not other]
    assert not wrong, f"{known} was said to imply {goal}; not of row {wrong[0]}"


@pytest.fixture(scope="module", params=["true", "false"])
def told(request: pytest.FixtureRequest, engine: Engine) -> dict[str, Truth]:
    """With ANSI mode, and without."""
    # In a session of its own, which is left with its settings and names.
    with Engine(engine.declared, lambda _: engine.shared()).session() as spark:
        return judged(spark, request.param)


@pytest.mark.parametrize("kinds", [KINDS, SAMPLED], ids=["all files", "some files"])
def test_what_is_proved_holds_to_spark(kinds: Kinds, told: dict[str, Truth]) -> None:
    by_column = [
        [each for each in told if each not in BESIDES and name in each.split()] for name in COLUMNS
    ] + [
        [each for each in told if each in BESIDES or {"i", "j", "f", "g"} & {*each.split()} or "s IS" in each]
    ]
    proved, chance = 0, random.Random(3)
    for names in by_column:
        facts = {each: Known([condition(each)], kinds) for each in names}
        for one, other in product(names, names):
            if facts[one].proves(condition(other)):
                refuse_wrong(one, other, told[one], told[other])
                proved += one != other
        for _ in range(600):
            (one, mine), (other, theirs) = (combined(chance, told, names, 2) for _ in range(2))
            if Known([condition(one)], kinds).proves(condition(other)):
                refuse_wrong(one, other, mine, theirs)
                proved += 1
    assert proved > 1_000
