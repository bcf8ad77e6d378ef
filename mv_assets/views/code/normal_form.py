"""Syntax trees in a form that is the same for code that does the same: plain values, to be hashed.

Comments, formatting, docstrings and the names of local variables are no part of it. Names of parameters are:
whoever calls by keyword means them. It is written out here, as `ast.dump` differs between versions of Python.
"""

from __future__ import annotations

import ast
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from typing import Any, Protocol

from mv_assets.views.code.modules import Bound, Target, absolute, bound_by, plain

# Who calls these may find a local variable by its name.
_BY_NAME = frozenset({"locals", "vars", "dir", "eval", "exec", "query", "sql", "globals", "_getframe"})
# What the definition covers by itself.
_VIEW = frozenset({"mv_assets.view", "mv_assets.views.python.view"})
_NO_MATTER = frozenset({"ctx", "kind", "type_comment", "type_ignores"})


class Names(Protocol):
    """Tells what the names of a module mean."""

    package: str

    def has(self, name: str) -> bool:
        """Whether the module binds a name."""

    def named(self, name: str, attributes: tuple[str, ...]) -> tuple[str, tuple[str, ...]]:
        """One name for what a name and its attributes mean, and the attributes that are left."""

    def imported(self, target: Target, attributes: tuple[str, ...]) -> tuple[str, tuple[str, ...]]:
        """The same for what is imported inside of a function."""


@dataclass(slots=True)
class _Scope:
    bound: Bound
    is_class: bool = False
    # Local variables, each by its place among all that appear.
    places: dict[str, int] = field(default_factory=dict)

    def imported(self, name: str) -> Target | None:
        """Where a name comes from, if it is one import's and nothing else."""
        targets = self.bound.imports.get(name, ())
        return targets[0] if len(targets) == 1 and name not in self.bound.names else None

    def has(self, name: str) -> bool:
        return name in self.bound.names or name in self.bound.imports


class NormalForm:
    """Writes out one definition. `free` are names whose values the function was made with."""

    def __init__(self, names: Names, free: frozenset[str] = frozenset()) -> None:
        self._names = names
        self._free = free
        self._scopes: list[_Scope] = []
        self._count = 0
        self._keeps_names = False

    def of(self, node: ast.AST) -> Any:
        """A statement of a module."""
        self._keeps_names = any(_name_of(each) in _BY_NAME for each in ast.walk(node))
        return self._form(node)

    def of_made(self, node: ast.FunctionDef | ast.AsyncFunctionDef | ast.Lambda) -> Any:
        """A function that was made by another: without what was evaluated there."""
        self._keeps_names = any(_name_of(each) in _BY_NAME for each in ast.walk(node))
        return self._inside(node)

    def _form(self, value: Any) -> Any:
        match value:
            case list():
                return [self._form(each) for each in self._kept(value)]
            case ast.AST():
                special: Callable[[Any], Any] = getattr(self, f"_{type(value).__name__}", self._any)
                return special(value)
            case _:
                return value

    def _kept(self, values: list[Any]) -> list[Any]:
        """Without statements that do nothing."""
        if not any(isinstance(value, ast.stmt) for value in values):
            return values
        return [each for each in plain(values) if not self._is_no_matter(each)]

    def _is_no_matter(self, statement: ast.stmt) -> bool:
        if not self._scopes or self._scopes[-1].is_class:
            return False
        match statement:
            case ast.AnnAssign(value=None) | ast.Nonlocal():
                return True
            case ast.Import() | ast.ImportFrom():
                names = bound_by([statement], self._names.package).imports
                return all(self._scopes[-1].imported(name) is not None for name in names)
            case _:
                return False

    def _any(self, node: ast.AST) -> Any:
        fields = {
            name: self._form(value)
            for name, value in ast.iter_fields(node)
            if name not in _NO_MATTER and value is not None and value != []
        }
        return [type(node).__name__, fields]

    def _Constant(self, node: ast.Constant) -> Any:  # noqa: N802 - named as what it is for
        value = node.value
        shown = hex(value) if isinstance(value, int) and not isinstance(value, bool) else repr(value)
        return ["Constant", type(value).__name__, shown]

    def _JoinedStr(self, node: ast.JoinedStr) -> Any:  # noqa: N802
        # Versions of Python differ in how they cut the text in between.
        parts: list[Any] = []
        for each in node.values:
            if not isinstance(each, ast.Constant):
                parts.append(self._form(each))
            elif parts and isinstance(parts[-1], str):
                parts[-1] += str(each.value)
            elif each.value:
                parts.append(str(each.value))
        return ["JoinedStr", parts]

    def _Name(self, node: ast.Name) -> Any:  # noqa: N802
        return self._reference(node.id, ())

    def _Attribute(self, node: ast.Attribute) -> Any:  # noqa: N802
        base: ast.expr = node
        attributes = list[str]()
        while isinstance(base, ast.Attribute):
            attributes.insert(0, base.attr)
            base = base.value
        if isinstance(base, ast.Name):
            return self._reference(base.id, tuple(attributes))
        return _with_attributes(self._form(base), attributes)

    def _reference(self, name: str, attributes: tuple[str, ...]) -> Any:
        for scope in self._around():
            if name in scope.bound.of_module:
                break
            if (target := scope.imported(name)) is not None and not scope.is_class:
                meaning, rest = self._names.imported(target, attributes)
                return _with_attributes(["Global", meaning], rest)
            if scope.has(name):
                return _with_attributes(self._local(scope, name), attributes)
        if name in self._free:
            return _with_attributes(["Free", name], attributes)
        meaning, rest = self._names.named(name, attributes)
        return _with_attributes(["Global", meaning], rest)

    def _around(self) -> Iterator[_Scope]:
        """The scopes in which a name is looked for; a class's is only that of its own statements."""
        for at, scope in enumerate(reversed(self._scopes)):
            if at == 0 or not scope.is_class:
                yield scope

    def _local(self, scope: _Scope, name: str) -> Any:
        if scope.is_class:
            # Before it is bound there, it is the module's.
            return ["Member", name, *(self._names.named(name, ()) if self._names.has(name) else ())]
        if self._keeps_names:
            return ["Local", name]
        if name not in scope.places:
            scope.places[name] = self._count
            self._count += 1
        return ["Local", scope.places[name]]

    def _stored(self, name: str | None) -> Any:
        """A name that is bound by something else than a Name."""
        if name is None:
            return None
        return self._reference(name, ()) if self._scopes else name

    @contextmanager
    def _scope(self, bound: Bound, *, is_class: bool = False) -> Iterator[None]:
        self._scopes.append(_Scope(bound, is_class))
        yield
        self._scopes.pop()

    def _FunctionDef(self, node: ast.FunctionDef | ast.AsyncFunctionDef) -> Any:  # noqa: N802
        arguments = node.args
        made = [type(node).__name__, node.name, self._stored(node.name), self._decorators(node)]
        with self._scope(_type_parameters(node)):
            around = [self._form(getattr(node, "type_params", [])), self._form(node.returns)]
            around += [self._form(arguments.defaults), self._form(arguments.kw_defaults)]
            return [*made, *around, self._inside(node)]

    _AsyncFunctionDef = _FunctionDef

    def _Lambda(self, node: ast.Lambda) -> Any:  # noqa: N802
        around = [self._form(node.args.defaults), self._form(node.args.kw_defaults)]
        return ["Lambda", *around, self._inside(node)]

    def _inside(self, node: ast.FunctionDef | ast.AsyncFunctionDef | ast.Lambda) -> Any:
        given = [(kind, each) for kind, some in _parameters(node.args) for each in some]
        annotations = [self._form(each.annotation) for _, each in given]
        body = node.body if isinstance(node.body, list) else [node.body]
        bound = bound_by(body, self._names.package)
        bound.names |= {each.arg for _, each in given}
        with self._scope(bound):
            # One that has no name to its callers is as good as a local variable.
            names = [[kind, "" if kind == "/" else each.arg, self._stored(each.arg)] for kind, each in given]
            return [names, annotations, self._form(body)]

    def _decorators(self, node: ast.FunctionDef | ast.AsyncFunctionDef | ast.ClassDef) -> list[Any]:
        forms = [self._form(each) for each in node.decorator_list]
        return [form for form in forms if _called(form) not in _VIEW]

    def _ClassDef(self, node: ast.ClassDef) -> Any:  # noqa: N802
        made = ["ClassDef", node.name, self._stored(node.name), self._decorators(node)]
        with self._scope(_type_parameters(node)):
            around = [self._form(node.bases), self._form(node.keywords)]
            with self._scope(bound_by(node.body, self._names.package), is_class=True):
                return [*made, *around, self._form(node.body)]

    def _comprehension_of(self, node: ast.expr) -> Any:
        first, *others = node.generators  # type: ignore[attr-defined]
        outermost = self._form(first.iter)
        bound = Bound({name for each in node.generators for name in _stores(each.target)})  # type: ignore[attr-defined]
        with self._scope(bound):
            made = [
                self._form(getattr(node, part)) for part in ("elt", "key", "value") if hasattr(node, part)
            ]
            conditions = [self._form(first.target), self._form(first.ifs), first.is_async]
            return [type(node).__name__, outermost, made, conditions, self._form(others)]

    _ListComp = _SetComp = _DictComp = _GeneratorExp = _comprehension_of

    def _AnnAssign(self, node: ast.AnnAssign) -> Any:  # noqa: N802
        if not self._scopes or self._scopes[-1].is_class or node.value is None:
            return self._any(node)
        # In a function, nobody looks at the annotation.
        return ["Assign", {"targets": [self._form(node.target)], "value": self._form(node.value)}]

    def _ExceptHandler(self, node: ast.ExceptHandler) -> Any:  # noqa: N802
        return ["ExceptHandler", self._form(node.type), self._stored(node.name), self._form(node.body)]

    def _MatchAs(self, node: ast.MatchAs) -> Any:  # noqa: N802
        return ["MatchAs", self._form(node.pattern), self._stored(node.name)]

    def _MatchStar(self, node: ast.MatchStar) -> Any:  # noqa: N802
        return ["MatchStar", self._stored(node.name)]

    def _MatchMapping(self, node: ast.MatchMapping) -> Any:  # noqa: N802
        inside = [self._form(node.keys), self._form(node.patterns)]
        return ["MatchMapping", *inside, self._stored(node.rest)]

    def _Global(self, node: ast.Global) -> Any:  # noqa: N802
        return ["Global", [self._names.named(name, ())[0] for name in node.names]]

    def _Import(self, node: ast.Import | ast.ImportFrom) -> Any:  # noqa: N802
        if isinstance(node, ast.ImportFrom) and any(alias.name == "*" for alias in node.names):
            return ["Import", "*", absolute(node, self._names.package)]
        imports = bound_by([node], self._names.package).imports
        means = [self._names.imported(target, ())[0] for targets in imports.values() for target in targets]
        return ["Import", means, [self._stored(name) for name in imports]]

    _ImportFrom = _Import


def _with_attributes(form: Any, attributes: Sequence[str]) -> Any:
    for attribute in attributes:
        form = ["Attribute", form, attribute]
    return form


def _called(form: Any) -> str:
    """What a decorator is, called or not."""
    inner = form[1]["func"] if form[0] == "Call" else form
    return str(inner[1]) if inner[0] == "Global" else ""


def _name_of(node: ast.AST) -> str | None:
    return getattr(node, "id", None) or getattr(node, "attr", None)


def _parameters(arguments: ast.arguments) -> list[tuple[str, list[ast.arg]]]:
    return [
        ("/", arguments.posonlyargs),
        ("", arguments.args),
        ("*", [arguments.vararg] if arguments.vararg else []),
        ("=", arguments.kwonlyargs),
        ("**", [arguments.kwarg] if arguments.kwarg else []),
    ]


def _type_parameters(node: ast.AST) -> Bound:
    return Bound({each.name for each in getattr(node, "type_params", [])})


def _stores(target: ast.expr) -> Iterator[str]:
    return (
        each.id for each in ast.walk(target) if isinstance(each, ast.Name) and isinstance(each.ctx, ast.Store)
    )
