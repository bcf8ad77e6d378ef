"""Modules of Python by their source: which statement binds a name, and which are there for their effect."""

from __future__ import annotations

import ast
import importlib.util
import os
import sys
import sysconfig
import tokenize
from collections.abc import Iterable, Iterator, Sequence
from contextlib import suppress
from dataclasses import dataclass, field
from functools import cache
from importlib.machinery import ModuleSpec
from pathlib import Path
from types import ModuleType

MAIN = "__main__"
# A module, and a name in it; None for the module itself.
Target = tuple[str, str | None]
_INSTALLED = frozenset({"site-packages", "dist-packages"})
_DEFINED = (ast.FunctionDef, ast.AsyncFunctionDef, ast.ClassDef)
_ASSIGNED = (ast.Assign, ast.AnnAssign, ast.AugAssign)
_IMPORTS = (ast.Import, ast.ImportFrom)
# The source of each module as it was first seen, with what says that it is still the same import.
_SEEN: dict[str, tuple[object, str]] = {}


class CodeUnknown(Exception):
    """What a function does can't be told from its source; a sentence."""


class CodeChanged(CodeUnknown):
    """A file was edited after it was imported: what it says is not what would run."""


@dataclass(frozen=True, slots=True)
class Home:
    """The code that is kept with a function: all that lies beside its top-level package or module.

    Of what is installed, that package alone.
    """

    package: str
    folders: frozenset[str]
    # A plain module is the same code whether it is imported or run as a script.
    plain: bool
    _known: dict[str, bool] = field(default_factory=dict, compare=False, repr=False)

    @classmethod
    def of(cls, module: str) -> Home:
        top = module.partition(".")[0]
        folders = _folders(top)
        installed = any(map(_is_installed, folders))
        spec = _spec(top)
        plain = module == top and (spec is None or not spec.submodule_search_locations)
        return cls(top, frozenset[str]() if installed else folders, plain)

    def has(self, module: str) -> bool:
        """Whether a module is kept there."""
        top = module.partition(".")[0]
        if top not in self._known:
            beside = bool(self.folders) and top != "mv_assets" and not self.folders.isdisjoint(_folders(top))
            self._known[top] = top == self.package or beside
        return self._known[top]

    def holds(self, file: str) -> bool:
        """Whether a file of Python is kept there, if one may tell by its folder."""
        return any(Path(os.path.realpath(file)).is_relative_to(folder) for folder in self.folders)

    def label(self, module: str) -> str:
        """What a module is called in a hash."""
        return "" if self.plain and module == self.package else module

    def loaded(self) -> Iterator[str]:
        """The modules of it that are imported."""
        for name, module in list(sys.modules.items()):
            if name != MAIN and getattr(module, "__file__", None) is not None and self.has(name):
                yield name


@cache
def _installed() -> tuple[Path, ...]:
    paths = sysconfig.get_paths()
    return tuple(Path(paths[key]).resolve() for key in ("stdlib", "platstdlib", "purelib", "platlib"))


def _is_installed(folder: str) -> bool:
    path = Path(folder)
    return bool(_INSTALLED & set(path.parts)) or any(path.is_relative_to(each) for each in _installed())


def _spec(name: str) -> ModuleSpec | None:
    module = sys.modules.get(name)
    if module is not None:
        return getattr(module, "__spec__", None)
    with suppress(ImportError, ValueError, AttributeError):
        return importlib.util.find_spec(name)
    return None


def _folders(top: str) -> frozenset[str]:
    """The folders that a top-level package or module is imported from."""
    spec = _spec(top)
    places = list((spec.submodule_search_locations if spec else None) or ())
    if not places and (file := _file(top)) is not None:
        places = [file]
    if not places and top == MAIN:
        return frozenset({os.path.realpath(Path.cwd())})
    return frozenset(os.path.realpath(Path(place).parent) for place in places)


def _file(name: str) -> str | None:
    spec, module = _spec(name), sys.modules.get(name)
    found = getattr(module, "__file__", None) or (
        spec.origin if spec is not None and spec.has_location else None
    )
    return None if found is None else str(found)


def is_package(name: str) -> bool:
    spec = _spec(name)
    return spec is not None and spec.submodule_search_locations is not None


def exists(name: str) -> bool:
    """Whether there is a module of that name."""
    return name in sys.modules or _spec(name) is not None


def source_of(name: str) -> str | None:
    """The source of a module; None if it has none.

    Raises:
        CodeChanged: it is another one than when the module was imported.

    """
    text, module = _read(name), sys.modules.get(name)
    if text is None or module is None:
        return text
    imported = _import_of(module)
    seen = _SEEN.setdefault(name, (imported, text))
    if seen[0] is not imported:
        _SEEN[name] = (imported, text)
    elif seen[1] != text:
        raise CodeChanged(f"{_file(name) or name} was edited after it was imported; start Python anew")
    return text


def _import_of(module: ModuleType | None) -> object:
    # Importing it anew, or reloading it, makes another one.
    return getattr(module, "__spec__", None) or module


def _read(name: str) -> str | None:
    file, spec = _file(name), _spec(name)
    if file is not None and file.endswith(".py"):
        with suppress(OSError, SyntaxError, UnicodeDecodeError), tokenize.open(file) as opened:
            return opened.read()
    with suppress(ImportError, AttributeError):
        # As in a zip file.
        found = spec.loader.get_source(name)  # type: ignore[union-attr]
        return None if found is None else str(found)
    return None


def remember(names: Iterable[str]) -> None:
    """Keep the sources of modules that were imported just now."""
    for name in names:
        module = sys.modules.get(name)
        if _SEEN.get(name, (None, ""))[0] is not _import_of(module):
            source_of(name)


@dataclass(slots=True)
class Bound:
    """What some statements bind in their own scope: names, by import or otherwise."""

    names: set[str] = field(default_factory=set)
    imports: dict[str, list[Target]] = field(default_factory=dict)
    stars: list[str] = field(default_factory=list)
    # Names that are said to be of the module, or of a function around.
    elsewhere: set[str] = field(default_factory=set)
    of_module: set[str] = field(default_factory=set)


def bound_by(nodes: Iterable[ast.AST], package: str) -> Bound:
    """What statements bind, not counting the scopes inside of them."""
    binder = _Binder(package)
    for node in nodes:
        binder.visit(node)
    binder.bound.names -= binder.bound.elsewhere
    return binder.bound


class _Binder(ast.NodeVisitor):
    def __init__(self, package: str) -> None:
        self.bound = Bound()
        self._package = package
        self._comprehensions = 0

    def _definition(self, node: ast.FunctionDef | ast.AsyncFunctionDef | ast.ClassDef) -> None:
        self.bound.names.add(node.name)
        self._around(node)

    def _around(self, node: ast.AST) -> None:
        """What of a scope is evaluated outside of it may bind too, with `:=`."""
        for each in ast.iter_child_nodes(node):
            if isinstance(each, ast.arguments):
                self._around(each)
            elif isinstance(each, ast.expr) and not isinstance(node, ast.Lambda):
                self.visit(each)

    visit_FunctionDef = visit_AsyncFunctionDef = visit_ClassDef = _definition  # noqa: N815 - ast's own names
    visit_Lambda = _around  # noqa: N815

    def _comprehension(self, node: ast.AST) -> None:
        self._comprehensions += 1
        self.generic_visit(node)
        self._comprehensions -= 1

    visit_ListComp = visit_SetComp = visit_DictComp = visit_GeneratorExp = _comprehension  # noqa: N815

    def visit_NamedExpr(self, node: ast.NamedExpr) -> None:
        self.bound.names.add(node.target.id)
        self.visit(node.value)

    def visit_Name(self, node: ast.Name) -> None:
        if not isinstance(node.ctx, ast.Load) and not self._comprehensions:
            self.bound.names.add(node.id)

    def _named(self, node: ast.ExceptHandler | ast.MatchAs | ast.MatchStar) -> None:
        if node.name is not None:
            self.bound.names.add(node.name)
        self.generic_visit(node)

    visit_ExceptHandler = visit_MatchAs = visit_MatchStar = _named  # noqa: N815

    def visit_MatchMapping(self, node: ast.MatchMapping) -> None:
        if node.rest is not None:
            self.bound.names.add(node.rest)
        self.generic_visit(node)

    def visit_Global(self, node: ast.Global) -> None:
        self.bound.of_module.update(node.names)
        self.bound.elsewhere.update(node.names)

    def visit_Nonlocal(self, node: ast.Nonlocal) -> None:
        self.bound.elsewhere.update(node.names)

    def visit_Import(self, node: ast.Import) -> None:
        for alias in node.names:
            top = alias.name.partition(".")[0]
            name, target = (top, top) if alias.asname is None else (alias.asname, alias.name)
            self.bound.imports.setdefault(name, []).append((target, None))

    def visit_ImportFrom(self, node: ast.ImportFrom) -> None:
        module = absolute(node, self._package)
        for alias in node.names:
            if alias.name == "*":
                self.bound.stars.append(module)
            else:
                name = alias.asname or alias.name
                self.bound.imports.setdefault(name, []).append((module, alias.name))


def absolute(node: ast.ImportFrom, package: str) -> str:
    """The module that something is imported from."""
    named = "." * node.level + (node.module or "")
    try:
        return importlib.util.resolve_name(named, package or None)
    except ImportError:
        raise CodeUnknown(f"`from {named} import ...` leads out of its package") from None


class Module:
    """A module's statements, and what each of them is there for."""

    def __init__(self, name: str, source: str, *, is_package: bool) -> None:
        self.name = name
        self.package = name if is_package else name.rpartition(".")[0]
        self.statements = plain(_parsed(source, name))
        self.imports: dict[str, list[Target]] = {}
        self.stars: list[str] = []
        self._binds: dict[str, list[int]] = {}
        self._mentions: dict[str, list[int]] = {}
        self._effects: list[int] = []
        for at, statement in enumerate(self.statements):
            self._take(at, statement)

    def _take(self, at: int, statement: ast.stmt) -> None:
        bound = bound_by([statement], self.package)
        self.stars += bound.stars
        for name, targets in bound.imports.items():
            self.imports.setdefault(name, []).extend(targets)
        changed = {
            name for node in ast.walk(statement) if isinstance(node, ast.Global) for name in node.names
        }
        of_import = set() if _only_imports(statement) else set(bound.imports)
        for name in bound.names | changed | of_import:
            self._binds.setdefault(name, []).append(at)
        if isinstance(statement, _ASSIGNED) and any(
            isinstance(node, ast.Call) for node in ast.walk(statement)
        ):
            for name in {node.id for node in ast.walk(statement) if isinstance(node, ast.Name)}:
                self._mentions.setdefault(name, []).append(at)
        if _has_effect(statement):
            self._effects.append(at)

    def has(self, name: str) -> bool:
        return name in self._binds or name in self.imports

    def imported(self, name: str) -> Sequence[Target] | None:
        """Where a name comes from, if all that it ever is was imported."""
        return None if name in self._binds else self.imports.get(name)

    def binding(self, name: str) -> list[ast.stmt]:
        """The statements that make a name what it is: those that bind it, or call something with it."""
        found = {*self._binds.get(name, ()), *self._mentions.get(name, ())}
        return [self.statements[at] for at in sorted(found)]

    @property
    def effects(self) -> list[ast.stmt]:
        """The statements that are there for what they do."""
        return [self.statements[at] for at in self._effects]

    @property
    def decorated(self) -> list[ast.stmt]:
        """Functions and classes that something is done with when they are made."""
        return [each for each in self.statements if isinstance(each, _DEFINED) and each.decorator_list]


def _only_imports(statement: ast.stmt) -> bool:
    """Whether it is an import, or some that are there for annotations."""
    if isinstance(statement, ast.If) and not statement.orelse:
        named = getattr(statement.test, "attr", None) or getattr(statement.test, "id", None)
        return named == "TYPE_CHECKING" and all(isinstance(each, _IMPORTS) for each in statement.body)
    return isinstance(statement, _IMPORTS)


def _parsed(source: str, name: str) -> list[ast.stmt]:
    try:
        return ast.parse(source).body
    except (SyntaxError, ValueError, RecursionError) as error:
        raise CodeUnknown(f"the source of {name} can't be read ({error})") from None


def plain(body: Iterable[ast.stmt]) -> list[ast.stmt]:
    """Statements without those that do nothing: docstrings, `pass`, what runs as a script only."""
    return [
        each
        for each in body
        if not isinstance(each, ast.Pass)
        and not (isinstance(each, ast.Expr) and isinstance(each.value, ast.Constant))
        and not _as_script(each)
    ]


def _as_script(statement: ast.stmt) -> bool:
    if not isinstance(statement, ast.If) or statement.orelse:
        return False
    return ast.dump(statement.test) == _SCRIPT


_SCRIPT = ast.dump(ast.parse("__name__ == '__main__'", mode="eval").body)


def _has_effect(statement: ast.stmt) -> bool:
    """Whether it may change something other than the names that it binds."""
    match statement:
        case ast.FunctionDef() | ast.AsyncFunctionDef() | ast.ClassDef() | ast.Import() | ast.ImportFrom():
            return False
        case ast.Assign():
            return not all(_binds_names(target) for target in statement.targets)
        case ast.AnnAssign() | ast.AugAssign():
            return not _binds_names(statement.target)
        case ast.If():
            inside = [*statement.body, *statement.orelse]
        case ast.Try() | ast.TryStar():
            handled = [each for handler in statement.handlers for each in handler.body]
            inside = [*statement.body, *handled, *statement.orelse, *statement.finalbody]
        case ast.With():
            inside = statement.body
        case _:
            return True
    return any(map(_has_effect, plain(inside)))


def _binds_names(target: ast.expr) -> bool:
    if isinstance(target, ast.Tuple | ast.List):
        return all(map(_binds_names, target.elts))
    return isinstance(target, ast.Name)
