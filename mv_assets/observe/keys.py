"""Declared keys of dimensions, verified at each look; what was verified is remembered by its fingerprint.

The key is no part of a view's definition: the same rows are computed with it and without. It is a fact that
queries rely on, and only for rows that were computed from exactly what was verified.
"""

from __future__ import annotations

import json
from collections.abc import Iterable, Mapping

from mv_assets.observe.inputs import ViewInputs
from mv_assets.observe.present import Tables
from mv_assets.state.model import SCHEMA_OF, Fingerprint, Inputs
from mv_assets.tables import keys
from mv_assets.tables.errors import KeyUnknown
from mv_assets.tables.fingerprint import fingerprint, hashed
from mv_assets.tables.inventory import Inventory
from mv_assets.tables.listing import Table, replaced
from mv_assets.views.view import View

_LAYOUT = "key"


def verify(view_inputs: ViewInputs, tables: Mapping[str, Table]) -> None:
    """See that each declared key is one, in what was listed.

    Raises:
        KeyNotUnique: two rows have the same values.
        KeyUnknown: it can't be told.

    """
    view = view_inputs.view
    for name, key in view.declared.keys.items():
        listing, table = view_inputs.dimensions[name], tables[name]
        # What can't be read fails the view's buckets already, naming the file.
        if listing.broken:
            continue
        known, what = _memory(view, table), _what(key, name, view_inputs.dimension_inputs)
        if known is not None and what in known.metadata([what], _LAYOUT):
            continue
        kinds = keys.verify(table, listing, key)
        again = Tables(tables).listing(name)
        if replaced(listing, again) or fingerprint(listing.segments()) != fingerprint(again.segments()):
            raise KeyUnknown(name, key, "it changed while it was read")
        # What is said of files that are too young to be sure of is not said for ever.
        if known is not None and listing.recheck_at is None and again.recheck_at is None:
            known.save_metadata({what: json.dumps(kinds).encode()}, _LAYOUT, but=[what])


def unique(view: View, tables: Mapping[str, Table], inputs: Inputs) -> dict[str, dict[str, str]]:
    """The dimensions whose declared keys were verified for exactly what these inputs record.

    With the types of the keys' columns.
    """
    found = {}
    for name, key in view.declared.keys.items():
        known, what = _memory(view, tables[name]), _what(key, name, inputs.dimensions)
        said = None if known is None else known.metadata([what], _LAYOUT).get(what)
        if said is not None:
            found[name] = json.loads(said)
    return found


def _what(key: tuple[str, ...], name: str, dimensions: Iterable[tuple[str, Fingerprint]]) -> str:
    """All that decides whether the key is unique: the files, and where in them the columns are."""
    recorded = dict(dimensions)
    return f"{hashed(repr((key, recorded.get(name), recorded.get(f'{SCHEMA_OF}{name}')))):x}"


def _memory(view: View, table: Table) -> Inventory | None:
    """Of each view its own: which columns' places are recorded differs between them."""
    inventory = getattr(table, "inventory", None)
    if not isinstance(inventory, Inventory):
        return None
    return Inventory(inventory.database, f"{inventory.table}:{view.name}", inventory.keep, inventory.retry)
