"""The functions that a view may not call, because a second run could answer differently."""

from __future__ import annotations

from collections.abc import Callable, Collection, Sequence
from dataclasses import dataclass

from sqlglot import exp
from sqlglot.tokenizer_core import Token, TokenType

from mv_assets.config.errors import Mistake
from mv_assets.spark_sql.calls import Call, calls
from mv_assets.spark_sql.parse import Parsed, parse
from mv_assets.spark_sql.spark_functions import BUILT_IN, names
from mv_assets.spark_sql.text import did_you_mean

_SORTING = frozenset({"sort_array", "array_sort", "size", "cardinality", "array_size"})


def _never(_: Call) -> bool:
    return False


@dataclass(frozen=True, slots=True)
class RefusedFunctions:
    """Functions refused for one reason, what to write instead, and which calls of them are fine."""

    functions: frozenset[str]
    why: str
    instead: str
    unless: Callable[[Call], bool] = _never


def _sorted(call: Call) -> bool:
    # sort_array's second argument is a direction, that of array_sort an order in which values may tie.
    return call.inside in _SORTING and call.then in ({")", ","} if call.inside == "sort_array" else {")"})


OUTSIDE = "reads or runs something outside the tables"
_NO_UNIT = "has a unit that is none of Spark's, in quotes"
_UNITS = names("year yyyy yy quarter month mon mm week day dd hour minute second millisecond microsecond")


def _is_unit(token: Token) -> bool:
    # sqlglot reads 'D' as DAY; Spark answers NULL.
    return token.token_type is TokenType.STRING and token.text.lower() in _UNITS


# From DESCRIBE FUNCTION EXTENDED of Spark 4.3: all that it calls non-deterministic, and all that answers from
# the clock, the session, the files' layout or the outside. A bucket computed again must come out the same.
REFUSALS = (
    RefusedFunctions(
        names("now curdate current_date current_time current_timestamp localtime localtimestamp"),
        "reads the clock",
        "use the table's time column",
    ),
    RefusedFunctions(
        names("unix_timestamp"),
        "reads the clock when it has no argument",
        "give it the table's time column",
        unless=lambda call: call.arguments > 0,
    ),
    RefusedFunctions(
        names("rand randn random randstr uniform uuid shuffle"),
        "answers differently on each run",
        "derive the value from columns, as with hash or sha2",
    ),
    RefusedFunctions(
        names(
            "user current_user session_user current_database current_schema current_catalog current_path "
            "current_timezone version"
        ),
        "answers from the session that runs it",
        "write the value as a literal",
    ),
    RefusedFunctions(
        names(
            "monotonically_increasing_id spark_partition_id input_file_name input_file_block_start "
            "input_file_block_length"
        ),
        "answers from how the files are laid out and read",
        "use a column of the table",
    ),
    RefusedFunctions(
        names("reflect java_method try_reflect from_protobuf to_protobuf"), OUTSIDE, "use SQL over the tables"
    ),
    # The options may name a file: a schema of Avro's, or one to check XML by.
    RefusedFunctions(
        names("from_avro from_xml"),
        f"{OUTSIDE} when it has options",
        "leave them out",
        unless=lambda call: call.arguments < 3,  # noqa: PLR2004 - a value and a schema
    ),
    RefusedFunctions(
        names("schema_of_avro schema_of_xml"),
        f"{OUTSIDE} when it has options",
        "leave them out",
        unless=lambda call: call.arguments < 2,  # noqa: PLR2004 - a value
    ),
    RefusedFunctions(
        names("first first_value last last_value any_value"),
        "depends on the order in which rows arrive",
        "use min or max, or a window with ORDER BY",
        # orders.py looks at the window, and at values that are keys.
        unless=lambda call: call.windowed,
    ),
    RefusedFunctions(
        names("collect_list collect_set collect_union array_agg"),
        "depends on the order in which rows arrive",
        "wrap it in sort_array",
        unless=_sorted,
    ),
    RefusedFunctions(
        names("listagg string_agg"),
        "depends on the order in which rows arrive",
        "add WITHIN GROUP (ORDER BY ...)",
        # orders.py looks at the keys.
        unless=lambda call: call.within_group,
    ),
    # What settles them, orders.py tells.
    RefusedFunctions(
        names("max_by"), "picks any of the rows that tie", "write max_by(x, struct(y, x)) for max_by(x, y)"
    ),
    RefusedFunctions(
        names("min_by"), "picks any of the rows that tie", "write min_by(x, struct(y, x)) for min_by(x, y)"
    ),
    RefusedFunctions(
        names("mode"),
        "picks any of the values that tie",
        "write mode(x, true)",
        unless=lambda call: call.within_group or call.arguments > 1,
    ),
    RefusedFunctions(
        names(
            "approx_top_k approx_top_k_accumulate approx_top_k_combine approx_top_k_estimate "
            "kll_sketch_agg_bigint kll_sketch_agg_double kll_sketch_agg_float "
            "kll_merge_agg_bigint kll_merge_agg_double kll_merge_agg_float "
            "kll_sketch_merge_bigint kll_sketch_merge_double kll_sketch_merge_float"
        ),
        "keeps a sketch that differs from run to run",
        "use exact counts or percentile",
    ),
    RefusedFunctions(
        names("aes_encrypt"),
        "draws a random initialisation vector",
        "give it one as the fifth argument",
        unless=lambda call: call.arguments >= 5,  # noqa: PLR2004  # as the sentence says
    ),
    RefusedFunctions(
        names("date_trunc"),
        _NO_UNIT,
        "write one of them, as in date_trunc('hour', x)",
        unless=lambda call: _is_unit(call.first),
    ),
    RefusedFunctions(
        names("trunc"),
        _NO_UNIT,
        "write one of them, as in trunc(x, 'MM')",
        unless=lambda call: _is_unit(call.last),
    ),
    RefusedFunctions(names("identifier"), f"{OUTSIDE} by a computed name", "write the name itself"),
)
_REFUSAL = {name: refusal for refusal in REFUSALS for name in refusal.functions}
# Spark knows these without parentheses too, where no column has the name.
BARE = {
    "current_date": exp.CurrentDate,
    "current_timestamp": exp.CurrentTimestamp,
    "current_time": exp.CurrentTime,
    "current_user": exp.CurrentUser,
    "session_user": exp.SessionUser,
    "current_path": None,
    "localtime": None,
    "user": None,
}


def refusal(name: str) -> Mistake:
    why = _REFUSAL[name]
    return Mistake("sql", f"{name} {why.why}; {why.instead}")


def reads_outside(tokens: Sequence[Token]) -> list[Mistake]:
    """The calls that get at more than the tables."""
    called = {call.name for call in calls(tokens) if _is_refused(call)}
    return [refusal(name) for name in sorted(called) if OUTSIDE in _REFUSAL[name].why]


def _is_refused(call: Call) -> bool:
    return call.name in _REFUSAL and not _REFUSAL[call.name].unless(call)


def refused_functions(
    tree: exp.Expr,
    tokens: Sequence[Token],
    *,
    declared: Collection[str] = (),
    settled: Collection[str] = (),
) -> list[Mistake]:
    """Every function that is not Spark's own, or whose answer another run may not repeat.

    But for those that the project declares, and those of which every call is `settled`.
    """
    called = {call.name for call in calls(tokens) if _is_refused(call)} - set(settled)
    # sqlglot makes these of other functions too.
    words = {token.text.lower() for token in tokens}
    called |= {name for name, kind in BARE.items() if kind and name in words and tree.find(kind)}
    # Hints look like calls, and a table function is said to be one elsewhere.
    strangers = {
        node.name
        for node in tree.find_all(exp.Anonymous)
        if not isinstance(node.parent, (exp.Hint, exp.Table))
    }
    known = BUILT_IN | _REFUSAL.keys() | set(declared)
    unknown = sorted(name for name in strangers if name.lower() not in known)
    return [refusal(name) for name in sorted(called)] + [
        Mistake("sql", f"{name} is not a function of Spark, {did_you_mean(name, BUILT_IN | set(declared))}")
        for name in unknown
    ]


def not_to_declare(name: str) -> str | None:
    """Why a project may not give that name to a function of its own."""
    parsed = parse(f"SELECT {name}(x)")
    statement = parsed.statement if isinstance(parsed, Parsed) else None
    free = isinstance(statement, exp.Select) and isinstance(statement.expressions[0], exp.Anonymous)
    if free and name not in BUILT_IN | _REFUSAL.keys():
        return None
    return f"{name} is a word or a function of Spark SQL; choose another name"
