"""Single values in JSON, in CSV and on a terminal."""

from __future__ import annotations

import json
import math
from base64 import b64encode
from datetime import date, datetime, time
from decimal import Decimal
from typing import Any

from mv_assets.text import printable


def in_json(value: Any) -> Any:
    """A value as JSON can hold it without losing anything.

    Decimals are strings, as are NaN and the infinities; times are ISO 8601, with `Z` if they have a zone;
    binary is base64.
    """
    match value:
        case float():
            return value if math.isfinite(value) else _not_finite(value)
        case Decimal():
            return format(value, "f")
        case datetime():
            return value.isoformat().replace("+00:00", "Z")
        case date() | time():
            return value.isoformat()
        case bytes():
            return b64encode(value).decode()
        case list():
            return [in_json(each) for each in value]
        case dict():
            return {_key(key): in_json(each) for key, each in value.items()}
    return value


def in_text(value: Any) -> str:
    """A value in one cell: as in JSON, a text without its quotes."""
    found = in_json(value)
    if isinstance(found, str):
        return found
    if isinstance(found, float):
        return repr(found)
    return json.dumps(found, ensure_ascii=False)


def on_terminal(value: Any) -> str:
    """A value in one line that leaves the terminal as it is."""
    return printable(in_text(value))


def _not_finite(value: float) -> str:
    if math.isnan(value):
        return "NaN"
    return "Infinity" if value > 0 else "-Infinity"


def _key(key: Any) -> str:
    return key if isinstance(key, str) else in_text(key)
