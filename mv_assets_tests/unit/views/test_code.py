"""What counts as a change of a function: what it does, and whatever it names of the code beside it."""

from __future__ import annotations

import calendar
import linecache
import subprocess
import sys
import textwrap
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from mv_assets.views import code
from mv_assets.views.code import CodeUnknown, code_hash
from mv_assets_tests.support.shop import HELPERS, VIEWS, Shop

Make = Callable[..., Shop]


def dedent(text: str) -> str:
    return textwrap.dedent(text).lstrip()


# What is no change


@pytest.mark.parametrize(
    "same",
    [
        VIEWS.replace("factor", "product"),
        VIEWS.replace("    factor", "    # a comment\n    factor"),
        VIEWS.replace("    factor", '    """What it is for."""\n\n    factor', 1),
        VIEWS.replace(
            "    factor = rate(3)", "    factor = (\n        rate(\n            3,\n        )\n    )"
        ),
        VIEWS.replace("    factor", "    factor: int"),
        "\n\n\n" + VIEWS,
        f"{VIEWS}\n\ndef other():\n    return 5\n",
        f"{VIEWS}\n\nif __name__ == '__main__':\n    weekly(None)\n",
        VIEWS.replace("from shop.helpers import rate", "from shop.helpers import rate as r").replace(
            "rate(3)", "r(3)"
        ),
        VIEWS.replace("from shop.helpers import rate", "from .helpers import rate"),
        VIEWS.replace("from shop.helpers import rate", "import shop.helpers as h").replace(
            "rate(3)", "h.rate(3)"
        ),
        VIEWS.replace("from shop.helpers import rate", "import shop.helpers").replace(
            "rate(3)", "shop.helpers.rate(3)"
        ),
        VIEWS.replace("from shop.helpers import rate", "from . import helpers").replace(
            "rate(3)", "helpers.rate(3)"
        ),
        VIEWS.replace("from shop.helpers import rate\n", "").replace(
            "    factor", "    from shop.helpers import rate\n\n    factor"
        ),
        VIEWS.replace("from pyspark.sql import functions as F", "import pyspark.sql.functions as G").replace(
            "F.sum", "G.sum"
        ),
        VIEWS.replace(
            "from pyspark.sql import DataFrame",
            "from typing import TYPE_CHECKING\nif TYPE_CHECKING:\n    from pyspark.sql import DataFrame",
        ),
    ],
)
def test_what_computes_the_same_is_no_change(shop: Make, same: str) -> None:
    """Case 112."""
    if "TYPE_CHECKING" in same:
        same = f"from __future__ import annotations\n{same}"
    assert same != VIEWS
    assert shop().code() == shop(same).code()


def test_a_change_of_a_helper_that_it_does_not_name_is_none(shop: Make) -> None:
    assert (
        shop().code() == shop(helpers=f"{HELPERS}\nOTHER = 5\n\n\ndef unused():\n    return OTHER\n").code()
    )


def test_a_local_variable_of_a_helper_may_be_renamed(shop: Make) -> None:
    one = "def rate(times):\n    return [a * 2 for a in (times,)][0]\n"
    assert shop(helpers=one).code() == shop(helpers=one.replace("a ", "b ")).code()


# What is one


@pytest.mark.parametrize(
    "other",
    [
        VIEWS.replace("rate(3)", "rate(4)"),
        VIEWS.replace('"n"', '"m"'),
        VIEWS.replace("* factor", "+ factor"),
        VIEWS.replace("F.sum", "F.max"),
        VIEWS.replace("events", "clicks"),
        VIEWS.replace("factor = rate(3)", "factor = rate(3); factor = factor + 1"),
        VIEWS.replace("import functions as F", "import SparkSession as F"),
    ],
)
def test_what_computes_something_else_is_a_change(shop: Make, other: str) -> None:
    assert shop().code() != shop(other).code()


def test_a_changed_constant_of_a_helper_is_a_change(shop: Make) -> None:
    """Case 112."""
    assert shop().code() != shop(helpers=HELPERS.replace("RATE = 2", "RATE = 3")).code()


def test_a_hash_without_helpers_would_be_found_out(shop: Make, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(code._Walk, "later", lambda _walk, key, _form: key)
    with pytest.raises(AssertionError):
        test_a_changed_constant_of_a_helper_is_a_change(shop)


def test_variables_that_are_swapped_are_a_change(shop: Make) -> None:
    one = "def weekly(events):\n    a, b = 1, 2\n    return a - b\n"
    assert shop(one).code() != shop(one.replace("a - b", "b - a")).code()
    assert shop(one).code() == shop(one.replace("a, b =", "b, a =").replace("a - b", "b - a")).code()


def test_parameters_count_by_their_names_as_callers_may_use_them(shop: Make) -> None:
    called = VIEWS.replace("rate(3)", "rate(x=3, y=4)")
    helpers = "def rate(x, y):\n    return x - y\n"
    swapped = "def rate(y, x):\n    return y - x\n"
    assert shop(called, helpers=helpers).code() != shop(called, helpers=swapped).code()


def test_a_variable_that_a_text_finds_by_its_name_counts_by_it(shop: Make) -> None:
    one = "def weekly(events):\n    a, b = 1, 2\n    return events.toPandas().query('n > @a')\n"
    assert shop(one).code() != shop(one.replace("a, b =", "b, a =")).code()


USES_C = "from .x import C\ndef weekly(e):\n    return C\n"
# Every way to name something: the text of shop/views.py, and of the other file a text before and after.
WAYS: dict[str, tuple[str, str, str, str]] = {
    "a constant": (USES_C, "C = 1", "1", "2"),
    "a constant through another": (
        USES_C,
        "from .y import D\nC = D + 1\nE = 1",
        "D + 1",
        "D + 2",
    ),
    "a constant with a type": (USES_C, "C: int = 1", "1", "2"),
    "a constant of several": ("from .x import B\ndef weekly(e):\n    return B\n", "A, B = 1, 2", "2", "3"),
    "a constant under a condition": (
        USES_C,
        "import os\nif os.name:\n    C = 1\nelse:\n    C = 2",
        "1",
        "3",
    ),
    "an augmented constant": (
        USES_C,
        "C = 1\nC += 1",
        "+= 1",
        "+= 2",
    ),
    "a list that is appended to": (
        USES_C,
        "C = []\nC.append(1)",
        "1",
        "2",
    ),
    "a list that a function fills": (
        USES_C,
        "C = []\ndef fill():\n    C.append(1)\nfill()",
        "(1)",
        "(2)",
    ),
    "a list that another constant took from": (
        USES_C,
        "C = [1, 2]\nD = C.pop(0)",
        "pop(0)",
        "pop(1)",
    ),
    "an item": (USES_C, "C = {}\nC['a'] = 1", "= 1", "= 2"),
    "a constant that a function sets": (
        USES_C,
        "C = 1\ndef put():\n    global C\n    C = 5\nput()",
        "5",
        "6",
    ),
    "a decorator that remembers": (
        "from .x import RULES\ndef weekly(e):\n    return RULES\n",
        "RULES = []\ndef rule(f):\n    RULES.append(f)\n    return f\n@rule\ndef one():\n    return 1",
        "return 1",
        "return 2",
    ),
    "a function of a module": (
        "from . import x\ndef weekly(e):\n    return x.f()\n",
        "def f():\n    return 1",
        "1",
        "2",
    ),
    "a function of a module of a package": (
        "import shop\ndef weekly(e):\n    return shop.x.f()\n",
        "def f():\n    return 1",
        "1",
        "2",
    ),
    "a class": (
        "from .x import K\ndef weekly(e):\n    return K()\n",
        "class K:\n    C = 1\n    def m(self):\n        return 2",
        "return 2",
        "return 3",
    ),
    "a class above": (
        "from .x import K\ndef weekly(e):\n    return K()\n",
        "class A:\n    def m(self):\n        return 2\nclass K(A):\n    pass",
        "2",
        "3",
    ),
    "a constant of a method": (
        "from .x import K\ndef weekly(e):\n    return K()\n",
        "C = 1\nclass K:\n    def m(self):\n        return C",
        "= 1",
        "= 2",
    ),
    "a constant of a class's own": (
        "from .x import K\ndef weekly(e):\n    return K.C\n",
        "D = 1\nclass K:\n    C = D",
        "D = 1",
        "D = 2",
    ),
    "a decorator": (
        "from .x import d\n@d\ndef weekly(e):\n    return 1\n",
        "from functools import wraps\ndef d(f):\n    @wraps(f)\n    def g(e): return f(e) + 1\n    return g",
        "+ 1",
        "+ 2",
    ),
    "a default": (
        "from .x import C\ndef helper(a=C):\n    return a\ndef weekly(e):\n    return helper()\n",
        "C = 1",
        "1",
        "2",
    ),
    "a name in a nested function": (
        "from .x import C\ndef weekly(e):\n    def f():\n        return C\n    return f()\n",
        "C = 1",
        "1",
        "2",
    ),
    "a name in a lambda": ("from .x import C\ndef weekly(e):\n    return (lambda: C)()\n", "C = 1", "1", "2"),
    "a name in a comprehension": (
        "from .x import C\ndef weekly(e):\n    return [C for _ in e if C]\n",
        "C = 1",
        "1",
        "2",
    ),
    "a name in an f-string": ("from .x import C\ndef weekly(e):\n    return f'{C:>3}'\n", "C = 1", "1", "2"),
    "an annotation, which may say what a UDF gives": (
        "from .x import C\ndef helper(a: C):\n    return a\ndef weekly(e):\n    return helper(e)\n",
        "C = int",
        "int",
        "str",
    ),
    "an alias inside of a function": (
        "def weekly(e):\n    import shop.x as y\n    return y.C\n",
        "C = 1",
        "1",
        "2",
    ),
    "one of two imports": (
        "try:\n    from .x import C\nexcept ImportError:\n    C = 0\ndef weekly(e):\n    return C\n",
        "C = 1",
        "1",
        "2",
    ),
    "a name that is passed on": ("from shop.y import C\ndef weekly(e):\n    return C\n", "C = 1", "1", "2"),
    "a star import": ("from .x import *\ndef weekly(e):\n    return C\n", "C = 1", "1", "2"),
    "a star import of a star import": ("from .z import *\ndef weekly(e):\n    return C\n", "C = 1", "1", "2"),
    "a module that is passed on": (
        "from . import x\ndef weekly(e):\n    return getattr(x, 'C')\n",
        "C = 1",
        "1",
        "2",
    ),
    "a lambda by its name": (
        "from .x import f\ndef weekly(e):\n    return f(e)\n",
        "f = lambda e: 1",
        "1",
        "2",
    ),
    "a partial by its name": (
        "from .x import f\ndef weekly(e):\n    return f(e)\n",
        "from functools import partial\ndef g(a, e):\n    return a\nf = partial(g, 1)",
        "1",
        "2",
    ),
    "a match": (
        "from .x import C\ndef weekly(e):\n    match e:\n        case [C.a, *b]:\n            return b\n",
        "class C:\n    a = 1",
        "1",
        "2",
    ),
    "what a module does to another": (
        "from . import helpers, x\ndef weekly(e):\n    return helpers.RATE\n",
        "from . import helpers\nhelpers.RATE = 5",
        "5",
        "6",
    ),
    "what an import does": (
        USES_C,
        "import os\nC = 1\nos.umask(1)",
        "(1)",
        "(2)",
    ),
}


@pytest.mark.parametrize("way", WAYS)
def test_whatever_is_named_counts(shop: Make, way: str) -> None:
    views, text, before, after = WAYS[way]
    others = {
        "y": "from .x import *\nfrom .x import C\nD = 1\n" if "shop.y" in views else "D = 1\n",
        "z": "from .x import *\n",
    }
    if "import shop\n" in views:
        others["__init__"] = "from . import x\n"
    one = shop(views, x=text, **others).code()
    assert text.replace(before, after) != text
    assert one != shop(views, x=text.replace(before, after), **others).code()
    assert one == shop(views, x=f"# a comment\n{text}\n", **others).code()


def test_what_a_package_does_when_it_is_imported_counts(shop: Make) -> None:
    assert (
        shop(__init__="import os\nos.umask(1)\n").code() != shop(__init__="import os\nos.umask(2)\n").code()
    )


def test_code_that_is_run_as_text_makes_its_whole_module_count(shop: Make) -> None:
    one = "C = 1\ndef weekly(e):\n    return eval('C')\n"
    assert shop(one).code() != shop(one.replace("C = 1", "C = 2")).code()


def test_a_name_from_nowhere_makes_its_whole_module_count(shop: Make) -> None:
    one = "OTHER = 1\ndef weekly(e):\n    return INJECTED\n"
    assert shop(one).code() != shop(one.replace("OTHER = 1", "OTHER = 2")).code()


def test_modules_that_import_each_other_are_followed_to_the_end(shop: Make) -> None:
    views = "from . import x\nC = 1\ndef weekly(e):\n    return x.f()\n"
    x = "from . import views\ndef f():\n    return views.C\n"
    assert shop(views, x=x).code() != shop(views.replace("C = 1", "C = 2"), x=x).code()


def test_a_module_beside_counts_too(shop: Make, tmp_path: Path) -> None:
    def with_rate(rate: int) -> str:
        (tmp_path / "common.py").write_text(f"RATE = {rate}\n")
        return shop("from common import RATE\ndef weekly(e):\n    return RATE\n").code()

    assert with_rate(1) != with_rate(2)


def test_what_is_installed_counts_by_its_name(shop: Make, monkeypatch: pytest.MonkeyPatch) -> None:
    one = "import calendar\ndef weekly(e):\n    return calendar.isleap(e)\n"
    before = shop(one).code()
    monkeypatch.setattr(calendar, "isleap", str)
    assert before == shop(one).code()
    assert before != shop(one.replace("isleap", "leapdays")).code()


def test_a_plain_module_is_the_same_as_a_script(shop: Make, tmp_path: Path) -> None:
    made = shop()
    text = "RATE = 2\n\n\ndef weekly(e):\n    return RATE\n"
    (tmp_path / "alone.py").write_text(text)
    by_name = made.code("alone:weekly")
    asked = "    from mv_assets.views.python import load\n    print(load(weekly).code)\n"
    (tmp_path / "alone.py").write_text(f"{text}\n\nif __name__ == '__main__':\n{asked}")
    done = subprocess.run(
        [sys.executable, "alone.py"], cwd=tmp_path, capture_output=True, text=True, check=True
    )
    assert done.stdout.strip() == by_name


# The same everywhere

RICH = """\
import functools

C: int = 1


class K(dict):
    'What it is.'
    a: int = C
    b = [C for x in range(3)]

    def m(self, *, z=C) -> 'K':
        return super().get(z)

    @property
    def p(self):
        return {k: v for k, v in self.items() if (n := k)}


@functools.lru_cache(maxsize=None)
def rich(a, /, b=2, *c, d=None, **e):
    global C
    try:
        with open(a) as f, open(b):
            x = f"{a!r:>{b}} x {b=} {'q' + str(c)} lit" 'more'
    except* (ValueError, OSError) as err:
        raise RuntimeError(K) from err
    match a:
        case {'x': y, **rest} if y:
            return rest
        case [1, *others] | (2 as others):
            return others
        case K(a=1) | None | -1.5:
            ...

    async def h():
        async for q in c:
            await q
        return [w async for w in c]

    y = (lambda u, v=1: u if v else ~u)(1)
    x = 1_000_000**3 if a < b <= c else a[1:2, ...]
    return print(*c, **e, sep=b'\\x00')


def weekly(events):
    return rich(events)
"""


def test_it_is_the_same_in_every_version_of_python_and_of_this_code(shop: Make) -> None:
    """Another one would have every such view computed again."""
    assert shop(RICH).code() == "d356829087ebd1e0b7f6e7d923750b4f3d754151fb8c53fcd718c1cc01be52bf"


def test_it_is_the_same_in_another_process_with_other_hashes_and_another_order_of_imports(shop: Make) -> None:
    made = shop()
    there = f"import sys; sys.path.insert(0, {str(made.folder)!r}); import shop.helpers"
    found = {
        made.code(),
        made.code_elsewhere(PYTHONHASHSEED="1"),
        made.code_elsewhere(PYTHONHASHSEED="2", before=there),
    }
    assert len(found) == 1


def test_a_function_that_is_given_itself_is_the_same_as_by_its_name(shop: Make) -> None:
    loaded = shop().load()
    assert code_hash(loaded.function) == loaded.code


# Functions that only their objects lead to


def made_with(value: Any) -> Callable[[Any], Any]:
    def weekly(events: Any) -> Any:
        return events, value

    return weekly


def test_a_closure_counts_by_its_values() -> None:
    assert code_hash(made_with(1)) == code_hash(made_with(1))
    assert code_hash(made_with(1)) != code_hash(made_with(2))
    assert code_hash(made_with(made_with(1))) != code_hash(made_with(made_with(2)))
    assert code_hash(made_with({"a": (1, {2, 3})})) == code_hash(made_with({"a": (1, {3, 2})}))
    assert code_hash(made_with(linecache)) != code_hash(made_with(sys))


def test_a_closure_over_what_is_no_constant_is_refused() -> None:
    with pytest.raises(
        CodeUnknown, match="it was made with value: a value of type object is no plain constant"
    ):
        code_hash(made_with(object()))


def test_a_lambda_is_found_where_it_is_alone_in_its_line() -> None:
    one = lambda events: events  # noqa: E731
    other = lambda events: [events]  # noqa: E731
    assert code_hash(one) != code_hash(other)
    both = (lambda a: a), (lambda a: [a])
    with pytest.raises(CodeUnknown, match="several in one line; make it with def"):
        code_hash(both[0])


class Notebook:
    """Cells that are run one after another, as a notebook does it."""

    def __init__(self) -> None:
        self.names: dict[str, Any] = {"__name__": "__main__"}
        self._count = 0

    def run(self, cell: str) -> Notebook:
        self._count += 1
        name = f"<cell {self._count} of {id(self)}>"
        text = dedent(cell)
        linecache.cache[name] = (len(text), None, text.splitlines(keepends=True), name)
        exec(compile(text, name, "exec"), self.names)  # noqa: S102 - our own cells
        return self

    def code(self) -> str:
        return code_hash(self.names["weekly"])


@pytest.fixture
def notebook(monkeypatch: pytest.MonkeyPatch) -> Callable[..., str]:
    """The code of `weekly` after some cells."""
    # Of a program that has a file, the names of cells would be looked for there.
    monkeypatch.delattr(sys.modules["__main__"], "__file__", raising=False)
    monkeypatch.setattr(sys.modules["__main__"], "__spec__", None)

    def code(*cells: str) -> str:
        made = Notebook()
        for cell in cells:
            made.run(cell)
        return made.code()

    return code


WEEKLY = """
def weekly(events):
    return rate(events) * RATE
"""
RATE_CELL = """
RATE = 2
def rate(events):
    return K().two
"""
CLASS_CELL = """
class K:
    def two(self):
        return 2
"""


def test_in_a_notebook_functions_and_classes_count_and_constants_by_their_values(
    notebook: Callable[..., str],
) -> None:
    one = notebook(CLASS_CELL, RATE_CELL, WEEKLY)
    assert one == notebook("'a cell of words'", RATE_CELL, f"# first\n{CLASS_CELL}", WEEKLY)
    assert one != notebook(CLASS_CELL, RATE_CELL, WEEKLY, "RATE = 3")
    assert one != notebook(CLASS_CELL.replace("return 2", "return 3"), RATE_CELL, WEEKLY)
    assert one != notebook(CLASS_CELL, RATE_CELL.replace("K()", "[K()]"), WEEKLY)


def test_in_a_notebook_a_value_that_is_no_constant_is_refused(notebook: Callable[..., str]) -> None:
    with pytest.raises(CodeUnknown, match="it uses RATE: a value of type object is no plain constant"):
        notebook(CLASS_CELL, RATE_CELL, WEEKLY, "RATE = object()")


def test_without_a_source_it_is_refused() -> None:
    names: dict[str, Any] = {"__name__": "nowhere"}
    exec("def weekly(events):\n    return events\n", names)  # noqa: S102
    with pytest.raises(CodeUnknown, match="can't be found; put it in a module"):
        code_hash(names["weekly"])
