"""The YAML of a project file as plain values, with the line of every field and its variables filled in."""

from __future__ import annotations

import re
from collections.abc import Mapping
from typing import Any

import yaml

from mv_assets.errors import Mistake, ProjectError

# Keys and positions from the top of the file to a value.
Place = tuple[str | int, ...]
_VARIABLE = re.compile(r"\$\{([A-Za-z_][A-Za-z0-9_]*)(?::-([^}]*))?\}")
_MOST_NODES = 100_000


class Document:
    """One file. `mistakes` are those of YAML itself: keys given twice, variables that are not set."""

    def __init__(self, text: str, file: str, variables: Mapping[str, str]) -> None:
        self._variables = variables
        self._nodes = 0
        self.lines: dict[Place, int] = {}
        self.mistakes: list[tuple[Place, str]] = []
        self.content = self._read(text, file)

    def _read(self, text: str, file: str) -> dict[str, Any]:
        try:
            loader = yaml.SafeLoader(text)
            node = loader.get_single_node()
            content = {} if node is None else self._value(loader, node, ())
        except (yaml.YAMLError, RecursionError, ValueError) as error:
            mark = getattr(error, "problem_mark", None)
            what = getattr(error, "problem", None) or str(error) or type(error).__name__
            line = None if mark is None else mark.line + 1
            raise ProjectError(file, [Mistake("", f"not valid YAML: {what}", line)]) from None
        if not isinstance(content, dict):
            what = "not a mapping; a project has the keys state, warehouse, spark, tables and views"
            raise ProjectError(file, [Mistake("", what)])
        return content

    def _value(self, loader: yaml.SafeLoader, node: yaml.Node, place: Place) -> Any:
        self.lines.setdefault(place, node.start_mark.line + 1)
        self._nodes += 1
        if self._nodes > _MOST_NODES:
            raise ValueError("it has too many values; do its anchors multiply?")
        if isinstance(node, yaml.MappingNode):
            return self._mapping(loader, node, place)
        if isinstance(node, yaml.SequenceNode):
            return [self._value(loader, item, (*place, at)) for at, item in enumerate(node.value)]
        value = loader.construct_object(node)
        return self._filled_in(value, place) if isinstance(value, str) else value

    def _mapping(self, loader: yaml.SafeLoader, node: yaml.MappingNode, place: Place) -> dict[str, Any]:
        written = [str(key.value) for key, _ in node.value]
        for name in sorted({name for name in written if written.count(name) > 1}):
            self.mistakes.append(((*place, name), "given twice; keep one"))
        loader.flatten_mapping(node)
        result = {}
        for key, value in node.value:
            name = str(key.value)
            self.lines[*place, name] = key.start_mark.line + 1
            result[name] = self._value(loader, value, (*place, name))
        return result

    def _filled_in(self, text: str, place: Place) -> str:
        def value(found: re.Match[str]) -> str:
            name, default = found.groups()
            if name not in self._variables and default is None:
                what = f"the variable {name} is not set; set it, or give a default: ${{{name}:-...}}"
                self.mistakes.append((place, what))
            return self._variables.get(name) or default or ""

        return _VARIABLE.sub(value, text)
