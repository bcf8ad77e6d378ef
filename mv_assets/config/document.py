"""The YAML of a project file as plain values, with the line of every field and its variables filled in."""

from __future__ import annotations

import re
from collections.abc import Mapping
from typing import Any

import yaml

from mv_assets.config.errors import Mistake, ProjectError

# Keys and positions from the top of the file to a value.
Place = tuple[str | int, ...]
_VARIABLE = re.compile(r"\$\{([A-Za-z_][A-Za-z0-9_]*)(?::-([^}]*))?\}")
_MOST_NODES = 100_000
_PLAIN_TAGS = ("tag:yaml.org,2002:map", "tag:yaml.org,2002:seq")


class _TooMany(Exception):
    """More values than a project could need."""


class Document:
    """One file. `mistakes` are those of YAML itself: keys given twice, variables that are not set."""

    def __init__(self, text: str, file: str, variables: Mapping[str, str]) -> None:
        self._variables = variables
        self._text = text
        self._nodes = 0
        self.lines: dict[Place, int] = {}
        self.mistakes: list[tuple[Place, str]] = []
        self.unset: set[Place] = set()
        self.content = self._read(text, file)

    def _read(self, text: str, file: str) -> dict[str, Any]:
        try:
            loader = yaml.SafeLoader(text)
            node = loader.get_single_node()
            content = None if node is None else self._value(loader, node, ())
        except (yaml.YAMLError, RecursionError, _TooMany) as error:
            raise ProjectError(file, [_not_yaml(error, text)]) from None
        if content is None:
            return {}
        if not isinstance(content, dict):
            keys = "state, storage, warehouse, spark, publish, tables, functions and views"
            raise ProjectError(file, [Mistake("", f"not a mapping; a project has the keys {keys}")])
        return content

    def _value(self, loader: yaml.SafeLoader, node: yaml.Node, place: Place) -> Any:
        self.lines.setdefault(place, node.start_mark.line + 1)
        self._nodes += 1
        if self._nodes > _MOST_NODES:
            raise _TooMany("it has too many values; do its anchors multiply?")
        if isinstance(node, yaml.CollectionNode) and node.tag not in _PLAIN_TAGS:
            raise yaml.MarkedYAMLError(problem=f"it has no use for {node.tag}", problem_mark=node.start_mark)
        if isinstance(node, yaml.MappingNode):
            return self._mapping(loader, node, place)
        if isinstance(node, yaml.SequenceNode):
            return [self._value(loader, item, (*place, at)) for at, item in enumerate(node.value)]
        try:
            value = loader.construct_object(node)
        except (ValueError, LookupError, TypeError, AttributeError, OverflowError):
            # It looks like a date or a number and is none: as a text it is its field's mistake.
            value = node.value
            implied = loader.resolve(yaml.ScalarNode, value, (True, False))  # type: ignore[no-untyped-call]
            if implied != node.tag:
                self.mistakes.append((place, f"{value!r} is not a {node.tag.rpartition(':')[2]}"))
        return self._filled_in(value, place) if isinstance(value, str) else value

    def _mapping(self, loader: yaml.SafeLoader, node: yaml.MappingNode, place: Place) -> dict[str, Any]:
        result: dict[str, Any] = {}
        merged: dict[str, Any] = {}
        for key, value in node.value:
            name = self._key(key)
            if name == "<<":
                merged = {**self._merged(loader, value, place), **merged}
                continue
            if name in result:
                self.mistakes.append(((*place, name), "given twice; keep one"))
            self.lines[*place, name] = key.start_mark.line + 1
            result[name] = self._value(loader, value, (*place, name))
        return {**merged, **result}

    def _merged(self, loader: yaml.SafeLoader, node: yaml.Node, place: Place) -> dict[str, Any]:
        """What a merge key brings in; of several mappings the first one wins."""
        parts = node.value if isinstance(node, yaml.SequenceNode) else [node]
        merged: dict[str, Any] = {}
        for part in parts:
            if not isinstance(part, yaml.MappingNode):
                raise yaml.MarkedYAMLError(
                    problem="<< takes a mapping, or a list of them", problem_mark=part.start_mark
                )
            merged = {**self._mapping(loader, part, place), **merged}
        return merged

    def _key(self, node: yaml.Node) -> str:
        if isinstance(node, yaml.ScalarNode):
            return str(node.value)
        return self._text[node.start_mark.index : node.end_mark.index].strip()

    def _filled_in(self, text: str, place: Place) -> str:
        def value(found: re.Match[str]) -> str:
            name, default = found.groups()
            if name not in self._variables and default is None:
                what = f"the variable {name} is not set; set it, or give a default: ${{{name}:-...}}"
                self.mistakes.append((place, what))
                self.unset.add(place)
            return self._variables.get(name) or default or ""

        return _VARIABLE.sub(value, text)


def _not_yaml(error: Exception, text: str) -> Mistake:
    what = str(getattr(error, "problem", None) or getattr(error, "reason", None) or error).split("\n", 1)[0]
    mark, position = getattr(error, "problem_mark", None), getattr(error, "position", None)
    line = None if mark is None else mark.line + 1
    if line is None and position is not None:
        line = text.count("\n", 0, position) + 1
    return Mistake("", f"not valid YAML: {what or type(error).__name__}", line)
