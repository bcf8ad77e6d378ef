"""What no view may contain, wherever in its SQL."""

from __future__ import annotations

from sqlglot import exp

from mv_assets.errors import Mistake
from mv_assets.views.sql.canonical import means_rows

_LIMIT = "keeps whichever rows come first; remove it, and use WHERE or HAVING"
_OUTSIDE = "reads or changes something besides the declared tables; remove it"
_REFUSED: tuple[tuple[tuple[type[exp.Expr], ...], str], ...] = (
    ((exp.Limit, exp.Fetch), f"LIMIT {_LIMIT}"),
    ((exp.Offset,), f"OFFSET {_LIMIT}"),
    ((exp.TableSample,), "TABLESAMPLE takes other rows on each run; remove it, and filter with WHERE"),
    ((exp.Pivot,), "PIVOT makes columns of data; write each column as an aggregate with FILTER (WHERE ...)"),
    (
        (exp.Placeholder, exp.Parameter, exp.SessionParameter),
        "a parameter has no value when the view is computed; write the value as a literal",
    ),
    ((exp.Version,), "time travel reads another version than the one that was looked at; remove it"),
    ((exp.QueryTransform,), f"TRANSFORM ... USING runs a script, which {_OUTSIDE}"),
    ((exp.Into,), f"INTO {_OUTSIDE}"),
    ((exp.Lock,), "FOR UPDATE locks rows of a database; remove it"),
    ((exp.Command, exp.DDL, exp.DML), f"a statement inside the SELECT {_OUTSIDE}"),
    (
        (exp.MatchRecognize, exp.Connect),
        "MATCH_RECOGNIZE and CONNECT BY look across rows of other buckets; remove them",
    ),
)


def refused_clauses(select: exp.Select) -> list[Mistake]:
    """Everything in the SQL that can't be computed bucket by bucket, or twice with the same result."""
    nodes = list(select.walk())
    kinds = {type(node) for node in nodes}
    found = [what for refused, what in _REFUSED if any(issubclass(kind, refused) for kind in kinds)]
    if any(
        isinstance(node, exp.CTE) and not isinstance(node.this, (exp.Query, exp.Values)) for node in nodes
    ):
        found.append(f"a statement inside WITH {_OUTSIDE}")
    if any(isinstance(node, exp.Join) and node.method == "NATURAL" for node in nodes):
        found.append(
            "NATURAL JOIN means another join once both tables get a column of one name; join with USING or ON"
        )
    if any(isinstance(node, exp.Star) and not _is_counted(node) for node in nodes):
        found.append("`*` would change the view whenever a table gets a column; name the columns")
    if any(isinstance(node, exp.Dot) and isinstance(node.expression, exp.Func) for node in nodes):
        found.append(
            "a function is called by a qualified name; call Spark's own functions by their plain name"
        )
    return [Mistake("sql", what) for what in found]


def _is_counted(star: exp.Star) -> bool:
    """COUNT(*), and EXISTS (SELECT * ...) which looks at no column."""
    place = star.parent if isinstance(star.parent, exp.Column) else star
    if isinstance(place.parent, exp.Select):
        return isinstance(place.parent.parent, exp.Exists)
    return means_rows(star)
