"""What a function does, as a hash: of its own code and of all that it names of the code beside it.

Followed are functions, classes and constants, through imports, attributes of modules, closures, and what
modules do when they are imported. What lies beyond counts by its name alone. Where something can't be told,
more is hashed than is used: a module that is passed on, or star-imported, counts as a whole.
"""

from __future__ import annotations

import ast
import builtins
import hashlib
import inspect
import json
import linecache
import sys
from collections.abc import Callable, Mapping
from datetime import date, time, timedelta
from decimal import Decimal
from itertools import chain
from types import FunctionType, ModuleType
from typing import Any

from mv_assets.config import MaterializedView
from mv_assets.views.code.modules import (
    CodeChanged,
    CodeUnknown,
    Home,
    Module,
    Target,
    exists,
    is_package,
    remember,
    source_of,
)
from mv_assets.views.code.normal_form import NormalForm

__all__ = ["CodeChanged", "CodeUnknown", "Home", "code_hash", "home_of", "remember"]

_Meaning = tuple[str, tuple[str, ...]]
_MADE = (ast.FunctionDef, ast.AsyncFunctionDef, ast.Lambda)
_PLAIN = (type(None), bool, int, float, complex, str, bytes, date, time, timedelta, Decimal, type(...))
# Names that modules and classes have by themselves, besides those of the built-in module.
_IMPLICIT = frozenset({"__file__", "__path__", "__cached__", "__class__", "__annotations__"})
# Who uses these may reach whatever its module has.
_ANYTHING = frozenset({"exec", "eval", "globals", "__import__", "import_module"})


def home_of(function: Callable[..., Any], named: str | None = None) -> Home:
    """The code that a function is kept with; `named` is the module it was asked for by."""
    return Home.of(named or _module_of(function))


def code_hash(function: Callable[..., Any], named: str | None = None) -> str:
    """The hash of a function, given by itself or as `named`: package.module:function.

    Raises:
        CodeUnknown: its source, or a value that it was made with, can't be told.

    """
    module, _, attribute = (named or "").partition(":")
    walk = _Walk(home_of(function, module or None))
    try:
        root = walk.follow((module, attribute), ())[0] if named else walk.value(function)
        walk.finish()
        text = json.dumps([root, walk.forms], sort_keys=True)
    except RecursionError:
        raise CodeUnknown("it is nested too deep") from None
    return hashlib.sha256(text.encode()).hexdigest()


def _module_of(function: Callable[..., Any]) -> str:
    # Not `__module__`: a wrapper has taken that from what it wraps.
    return str(getattr(function, "__globals__", {}).get("__name__") or function.__module__)


class _Walk:
    """Goes to all that is named, and keeps the normal form of each."""

    def __init__(self, home: Home) -> None:
        self.forms: dict[str, Any] = {}
        self._home = home
        self._modules: dict[str, Module | None] = {}
        self._left: list[tuple[str, Callable[[], Any]]] = []
        self._asked: set[str] = set()
        self._made: dict[int, str] = {}

    def finish(self) -> None:
        while self._left:
            key, form = self._left.pop()
            self.forms[key] = form()

    def later(self, key: str, form: Callable[[], Any]) -> str:
        """Have a form made once; its key."""
        if key not in self._asked:
            self._asked.add(key)
            self._left.append((key, form))
        return key

    def module(self, name: str) -> Module | None:
        """A module of this home whose source there is."""
        if name not in self._modules:
            source = source_of(name) if self._home.has(name) else None
            found = None if source is None else Module(name, source, is_package=is_package(name))
            self._modules[name] = found
            if found is not None:
                self._effects(found)
        return self._modules[name]

    def _effects(self, module: Module) -> None:
        """What is done when a module is imported belongs to all it has; and so of all that it imports."""
        names = _NamesOf(self, module)
        done = [*module.effects, *(each for each in module.decorated if names.decorates(each))]
        if done:
            self.later(f"{self._home.label(module.name)}:()", lambda: self._forms(module, done))
        around = [(module.name.rpartition(".")[0], None)] if "." in module.name else []
        for place, name in [*around, *chain.from_iterable(module.imports.values())]:
            self.module(place)
            if name is not None and self._home.has(place) and exists(f"{place}.{name}"):
                self.module(f"{place}.{name}")

    def _forms(self, module: Module, statements: list[ast.stmt]) -> list[Any]:
        names = _NamesOf(self, module)
        if any(map(_reaches_anything, statements)):
            self.whole(module)
        return [NormalForm(names).of(statement) for statement in statements]

    def whole(self, module: Module) -> str:
        """A module with everything that it has."""
        return self.later(f"{self._home.label(module.name)}:*", lambda: self._whole(module))

    def _whole(self, module: Module) -> Any:
        return [self._stars(module), self._forms(module, module.statements)]

    def _stars(self, module: Module) -> str:
        """All that a module may have from `import *`."""
        return ", ".join(self.follow((name, None), ())[0] for name in module.stars)

    def name(self, module: Module, name: str, attributes: tuple[str, ...]) -> _Meaning | None:
        """What a name of a module means; None if the module does not say."""
        targets = module.imported(name)
        if targets is not None and set(targets) == {(module.name, name)}:
            # `from . import name`, of a module inside of this package.
            return None
        if targets is not None and len(set(targets)) == 1:
            return self.follow(targets[0], attributes)
        if module.has(name):
            for target in module.imports.get(name, ()):
                self.follow(target, attributes)
            key = f"{self._home.label(module.name)}:{name}"
            return self.later(key, lambda: self._forms(module, module.binding(name))), attributes
        if module.stars:
            return f"{name} of {self._stars(module)}", attributes
        return None

    def follow(self, target: Target, attributes: tuple[str, ...]) -> _Meaning:
        """What something imported means."""
        place, attribute = target
        path = attributes if attribute is None else (attribute, *attributes)
        module = self.module(place)
        if module is None:
            return ".".join((place, *path)), ()
        if not path:
            return self.whole(module), ()
        found = self.name(module, path[0], path[1:])
        if found is not None:
            return found
        if exists(f"{place}.{path[0]}"):
            return self.follow((f"{place}.{path[0]}", None), path[1:])
        return self.whole(module), path

    def value(self, value: Any) -> str:
        """Something that is there as an object: of a closure, a notebook, or the function itself."""
        match value:
            case MaterializedView(python=FunctionType() as function):
                return self.value(function)
            case FunctionType():
                return self._function(value)
            case ModuleType():
                return self.follow((value.__name__, None), ())[0]
            case type():
                return self._class(value)
        return f"={_plain(value)}"

    def _function(self, function: FunctionType) -> str:
        name, module = _module_of(function), self.module(_module_of(function))
        if module is None and not self._home.has(name):
            return f"{name}.{function.__qualname__}"
        top = function.__qualname__.partition(".")[0]
        if module is not None and _is(vars(sys.modules[name]).get(top), function):
            return self.follow((name, top), ())[0]
        if id(function) not in self._made:
            # It may have itself in its closure.
            key = self._made[id(function)] = f"#{len(self._made)} {function.__qualname__}"
            self.later(key, lambda: self._made_form(function, module))
        return self._made[id(function)]

    def _made_form(self, function: FunctionType, module: Module | None) -> Any:
        """A function that only its object leads to: made by another function, or in a notebook."""
        node = _node_of(function, module)
        if _reaches_anything(node):
            if module is None:
                raise CodeUnknown("it runs code that is not in its source; put it in a module")
            self.whole(module)
        code, cells = function.__code__, function.__closure__ or ()
        names = _Session(self, function.__globals__) if module is None else _NamesOf(self, module)
        free = {name: cell for name, cell in zip(code.co_freevars, cells, strict=True) if name != "__class__"}
        return [
            NormalForm(names, frozenset(free)).of_made(node),
            {name: self._cell(name, cell) for name, cell in free.items()},
            [self.value(each) for each in function.__defaults__ or ()],
            {name: self.value(each) for name, each in (function.__kwdefaults__ or {}).items()},
        ]

    def _cell(self, name: str, cell: Any) -> str:
        try:
            return self.value(cell.cell_contents)
        except ValueError:
            raise CodeUnknown(f"it was made with {name}, which has no value yet") from None
        except CodeUnknown as why:
            raise CodeUnknown(f"it was made with {name}: {why}") from None

    def _class(self, kind: type) -> str:
        name = kind.__module__
        if not self._home.has(name) or self.module(name) is not None:
            return self.follow((name, kind.__qualname__.partition(".")[0]), ())[0]
        return self.later(f":{kind.__qualname__}", lambda: self._class_form(kind))

    def _class_form(self, kind: type) -> Any:
        """A class of a notebook, which its methods lead to."""
        for method in vars(kind).values():
            if isinstance(method, FunctionType):
                for node in ast.walk(_cell_tree(method)):
                    if isinstance(node, ast.ClassDef) and node.name == kind.__name__:
                        return NormalForm(_Session(self, method.__globals__)).of(node)
        raise CodeUnknown(f"the source of class {kind.__name__} can't be found; put it in a module")


class _NamesOf:
    """The names of a module."""

    def __init__(self, walk: _Walk, module: Module) -> None:
        self.package = module.package
        self._walk = walk
        self._module = module

    def has(self, name: str) -> bool:
        return self._module.has(name)

    def named(self, name: str, attributes: tuple[str, ...]) -> _Meaning:
        found = self._walk.name(self._module, name, attributes)
        if found is not None:
            return found
        if hasattr(builtins, name):
            return f"builtins.{name}", attributes
        if name not in _IMPLICIT:
            # Nobody says where it comes from: it is put there from elsewhere.
            self._walk.whole(self._module)
        return f"?{name}", attributes

    def imported(self, target: Target, attributes: tuple[str, ...]) -> _Meaning:
        return self._walk.follow(target, attributes)

    def decorates(self, statement: ast.stmt) -> bool:
        """Whether a decorator of something is kept here: then it may have remembered what it was given."""
        for decorator in statement.decorator_list:  # type: ignore[attr-defined]
            node = decorator
            while isinstance(node, ast.Call | ast.Attribute):
                node = node.func if isinstance(node, ast.Call) else node.value
            if not isinstance(node, ast.Name) or self._is_own(node.id):
                return True
        return False

    def _is_own(self, name: str) -> bool:
        targets = self._module.imported(name)
        if targets is None:
            return not hasattr(builtins, name)
        return any(self._walk.module(place) is not None for place, _ in targets)


class _Session:
    """The names of a notebook, whose cells come and go: they mean what they mean now."""

    package = ""

    def __init__(self, walk: _Walk, namespace: Mapping[str, Any]) -> None:
        self._walk = walk
        self._namespace = namespace

    def has(self, name: str) -> bool:
        return name in self._namespace

    def named(self, name: str, attributes: tuple[str, ...]) -> _Meaning:
        if name not in self._namespace:
            return (f"builtins.{name}" if hasattr(builtins, name) else f"?{name}"), attributes
        value = self._namespace[name]
        if isinstance(value, ModuleType):
            return self._walk.follow((value.__name__, None), attributes)
        try:
            return self._walk.value(inspect.unwrap(value) if callable(value) else value), attributes
        except CodeUnknown as why:
            raise CodeUnknown(f"it uses {name}: {why}") from None

    def imported(self, target: Target, attributes: tuple[str, ...]) -> _Meaning:
        return self._walk.follow(target, attributes)


def _reaches_anything(node: ast.AST) -> bool:
    names = (getattr(each, "id", None) or getattr(each, "attr", None) for each in ast.walk(node))
    return not _ANYTHING.isdisjoint(names)


def _is(found: Any, function: FunctionType) -> bool:
    """Whether that is what became of the function, by decorators too."""
    if isinstance(found, MaterializedView):
        return _is(found.python, function)
    return found is function or (callable(found) and inspect.unwrap(found) is inspect.unwrap(function))


def _cell_tree(function: FunctionType) -> ast.Module:
    source = "".join(linecache.getlines(function.__code__.co_filename))
    if not source:
        raise CodeUnknown(f"the source of {function.__qualname__} can't be found; put it in a module")
    return ast.parse(source)


def _node_of(function: FunctionType, module: Module | None) -> Any:
    """Where a function is in its source."""
    code = function.__code__
    tree = _cell_tree(function) if module is None else ast.Module(module.statements, [])
    found = [
        node
        for node in ast.walk(tree)
        if isinstance(node, _MADE) and _first_line(node) == code.co_firstlineno
    ]
    same = [node for node in found if getattr(node, "name", "<lambda>") == code.co_name]
    if len(same) != 1:
        what = "there are several in one line" if same else "its source can't be found"
        raise CodeUnknown(f"of {function.__qualname__} {what}; make it with def, in a module")
    return same[0]


def _first_line(node: Any) -> int:
    line: int = min([node.lineno, *(each.lineno for each in getattr(node, "decorator_list", ()))])
    return line


def _plain(value: Any) -> str:
    """A constant as text."""
    match value:
        case tuple() | list():
            return f"{type(value).__name__}({', '.join(map(_plain, value))})"
        case set() | frozenset():
            return f"{type(value).__name__}({', '.join(sorted(map(_plain, value)))})"
        case dict():
            inside = (f"{_plain(key)}: {_plain(each)}" for key, each in value.items())
            return f"dict({', '.join(inside)})"
        case _ if type(value) in _PLAIN or type(value).__module__ == "datetime":
            return f"{type(value).__name__} {value!r}"
    raise CodeUnknown(
        f"a value of type {type(value).__name__} is no plain constant; make it inside of the function, or in "
        "a module"
    )
