"""The small values of a project file: names, durations, bucket widths and starts."""

from __future__ import annotations

import re
from collections.abc import Callable
from contextlib import suppress
from datetime import UTC, date, datetime, timedelta
from os import PathLike, fspath
from types import FunctionType
from typing import TYPE_CHECKING, Annotated, Any, Generic, TypeVar
from urllib.parse import urlsplit
from zoneinfo import ZoneInfo

from pydantic import AfterValidator, BeforeValidator, Field, PlainValidator, WithJsonSchema

from mv_assets.buckets import DAY, HOUR, MINUTE, Buckets
from mv_assets.config.reserved import NAMES, is_owner, whose
from mv_assets.errors import BucketError, StateError
from mv_assets.local_days import is_utc, is_zone
from mv_assets.state_url import state_url

_SECOND = 1_000
_UNITS = {"ms": 1, "s": _SECOND, "m": MINUTE, "h": HOUR, "d": DAY}
_DURATION = r"^[0-9]+(ms|s|m|h|d)$"
_EPOCH = datetime(1970, 1, 1, tzinfo=UTC)
_PYTHON_NAME = r"^[A-Za-z_]\w*(\.[A-Za-z_]\w*)*:[A-Za-z_]\w*$"
_NO_FUNCTION = "names no function; write package.module:function"
NAME = r"^[a-z][a-z0-9_]*$"
_LABEL = r"^[A-Za-z0-9_]+$"
_MOST_OF_KIND = 63
_KIND = r"^[A-Za-z0-9_.-]{1,63}$"
_TAG_KEY = r"^([A-Za-z0-9_.-]{1,63}/)?[A-Za-z0-9_.-]{1,63}$"
_TAG_VALUE = r"^[A-Za-z0-9_.-]{0,63}$"
# PostgreSQL would cut longer ones, and file systems have limits of their own.
_LONGEST_NAME = 63
_LONGEST = 3_660 * DAY
_MOST_DIGITS = 30
_CONNECT_PORT = 15002
# Dagster writes earlier years, and weeks that begin in them, with three digits, and needs a bucket after any.
_FIRST_YEAR, _LAST_YEAR = 1001, 9998
EARLIEST = (datetime(_FIRST_YEAR, 1, 1, tzinfo=UTC) - _EPOCH) // timedelta(milliseconds=1)
# As a start: where the data begins.
WITH_THE_DATA = "earliest"
# A name or an address; what else would stand there by mistake may be a token.
_HOST = re.compile(r"\w[\w-]*(\.[\w-]+)*|[\da-f.]*:[\da-f.:]+(%\w+)?")


def _duration(value: Any) -> int:
    found = re.fullmatch(_DURATION, value) if isinstance(value, str) else None
    if found is None:
        raise ValueError(f"{value!r} is not a duration; write a number and a unit: 30s, 10m, 2h, 1d")
    number = value.removesuffix(found[1])
    if len(number) > _MOST_DIGITS or int(number) * _UNITS[found[1]] > _LONGEST:
        raise ValueError(f"{value[:_MOST_DIGITS]!r} is longer than ten years")
    return int(number) * _UNITS[found[1]]


def _whole_seconds(value: int) -> int:
    if value < _SECOND or value % _SECOND:
        raise ValueError("looks are whole seconds apart, at least one; write 1s, 30s, 5m")
    return value


def as_name(value: Any) -> str:
    """A name of a table or view; ValueError says what one is."""
    if not isinstance(value, str) or not re.fullmatch(NAME, value) or len(value) > _LONGEST_NAME:
        raise ValueError(
            f"{value!r} is not a name; use lower-case letters, digits and underscores, at most "
            f"{_LONGEST_NAME}, a letter first"
        )
    return value


def _own_name(value: Any) -> str:
    name = as_name(value)
    if (taken := whose(name)) is not None:
        raise ValueError(f"{name!r} is {taken}; choose another name")
    return name


def _python_function(value: Any) -> str | Callable[..., Any]:
    if isinstance(value, str) and re.fullmatch(_PYTHON_NAME, value):
        return value
    if isinstance(value, FunctionType):
        return value
    what = "is no function; give one that is made with def, or its name"
    raise ValueError(f"{value!r} {what if callable(value) else _NO_FUNCTION}")


def python_name(function: str | Callable[..., Any]) -> str:
    """The name of a function that is given by it, or itself: package.module:function."""
    return function if isinstance(function, str) else f"{function.__module__}:{function.__qualname__}"


def _time_zone(value: Any) -> str:
    if not isinstance(value, str) or not is_zone(value):
        raise ValueError(f"{value!r} is not a time zone; write one as America/New_York")
    return "UTC" if is_utc(value) else value


def _owner(value: str) -> str:
    if not is_owner(_text(value)):
        raise ValueError(f"{value!r} is no owner to Dagster; write an e-mail address or team:NAME")
    return value


def label(value: str) -> str:
    """A name as Dagster has them; ValueError says what one is."""
    if not re.fullmatch(_LABEL, value):
        raise ValueError(f"{value!r} is no name to Dagster; use letters, digits and underscores")
    return value


def _kind(value: str) -> str:
    if not re.fullmatch(_KIND, value):
        raise ValueError(f"{value!r} is no kind to Dagster; use up to {_MOST_OF_KIND} letters and digits")
    return value


def _tags(given: dict[str, str]) -> dict[str, str]:
    for key, value in given.items():
        if not re.fullmatch(_TAG_KEY, key) or not re.fullmatch(_TAG_VALUE, value):
            what = "letters, digits, _, - and ., at most 63"
            raise ValueError(
                f"{key}: {value} is no tag to Dagster; both are {what}, the key with one / if need be"
            )
    return given


def _bucket(value: Any) -> str:
    try:
        return Buckets.of(value if isinstance(value, str) else repr(value)).width
    except BucketError as error:
        raise ValueError(str(error)) from None


def time_in(value: Any, zone: str) -> Any:
    """A time as it was written, in a zone if it does not say where; what is no time stays as it is."""
    if isinstance(value, date) and not isinstance(value, datetime):
        value = datetime(value.year, value.month, value.day)  # noqa: DTZ001 - its zone comes below
    if isinstance(value, str):
        with suppress(ValueError):
            value = datetime.fromisoformat(value)
    naive = isinstance(value, datetime) and value.tzinfo is None
    return value.replace(tzinfo=ZoneInfo(zone)) if naive else value


def _start(value: Any) -> int | None:
    """YAML has read a plain date or time already. None is with the first data."""
    if value == WITH_THE_DATA:
        return None
    value = when = time_in(value, "UTC")
    if not isinstance(when, datetime):
        what = "write 2024-01-31, 2024-01-31T15:00 or earliest"
        raise ValueError(f"{value!r} is not a time; {what}")  # noqa: TRY004
    try:
        when = when.astimezone(UTC)
    except OverflowError:
        raise ValueError(_beyond(value)) from None
    if not _FIRST_YEAR <= when.year <= _LAST_YEAR:
        raise ValueError(_beyond(value))
    return (when - _EPOCH) // timedelta(milliseconds=1)


def _beyond(value: datetime) -> str:
    return f"{value} lies outside the years {_FIRST_YEAR} to {_LAST_YEAR} in UTC; is the year right?"


def _count(value: Any) -> Any:
    if isinstance(value, bool):
        raise ValueError(f"{value} is not a number")  # noqa: TRY004 - only a ValueError is the field's mistake
    return value


def _text(value: str) -> str:
    if not value.strip():
        raise ValueError("empty; write a text")
    if "\0" in value or not _encodable(value):
        raise ValueError("a text with a character that no file, table or column can have in its name")
    return value


def _encodable(value: str) -> bool:
    try:
        value.encode()
    except UnicodeEncodeError:
        return False
    return True


def _state(value: str) -> str:
    try:
        state_url(_text(value))
    except StateError as error:
        raise ValueError(str(error)) from None
    return value


def connect_address(url: str) -> tuple[str, int]:
    """Host and port of a Spark Connect server. The message does not repeat the URL: it may hold a token.

    Raises:
        ValueError: it is not the URL of one.

    """
    try:
        place = urlsplit(url)
        host, port = place.hostname or "", _CONNECT_PORT if place.port is None else place.port
    except ValueError:
        host, port = "", 0
    # What else there is comes as parameters: sc://host:15002/;token=...
    named = url.startswith("sc://") and port and _HOST.fullmatch(host)
    if not named or place.query or place.path.partition(";")[0] not in ("", "/"):
        raise ValueError("not the URL of a Spark Connect server; write sc://HOST or sc://HOST:PORT")
    return host, port


def _connect_url(value: str) -> str:
    connect_address(value)
    return value


def as_text(place: Any) -> Any:
    """A place that is given as a Path."""
    return fspath(place) if isinstance(place, PathLike) else place


Name = Annotated[str, BeforeValidator(as_name), Field(json_schema_extra={"pattern": NAME})]
OwnName = Annotated[
    str,
    BeforeValidator(_own_name),
    Field(json_schema_extra={"pattern": NAME, "not": {"enum": sorted(NAMES)}}),
]
Owner = Annotated[str, AfterValidator(_owner), Field(json_schema_extra={"minLength": 1})]
Label = Annotated[str, AfterValidator(label), Field(json_schema_extra={"pattern": _LABEL})]
Tags = Annotated[dict[str, str], AfterValidator(_tags)]
Text = Annotated[str, AfterValidator(_text), Field(json_schema_extra={"minLength": 1})]
StateUrl = Annotated[str, AfterValidator(_state), Field(json_schema_extra={"minLength": 1})]
ConnectUrl = Annotated[str, AfterValidator(_connect_url), Field(json_schema_extra={"pattern": "^sc://."})]
Count = Annotated[int, Field(ge=1, le=10_000), BeforeValidator(_count)]
PythonFunction = Annotated[
    str | Callable[..., Any],
    PlainValidator(_python_function),
    WithJsonSchema({"type": "string", "pattern": _PYTHON_NAME}),
]
TimeZone = Annotated[str, BeforeValidator(_time_zone), Field(json_schema_extra={"minLength": 1})]
BucketWidth = Annotated[
    str,
    BeforeValidator(_bucket),
    WithJsonSchema({"type": "string", "pattern": "^([0-9]+(m|h)|1d|1w|1mo)$", "examples": ["1h", "1d"]}),
]

if TYPE_CHECKING:
    Given_contra = TypeVar("Given_contra", contravariant=True)
    Kept_co = TypeVar("Kept_co", covariant=True)

    class Read(Generic[Given_contra, Kept_co]):
        """A field that is given as one type and kept as another.

        To type checkers a field is a parameter of its model's constructor, and takes what a descriptor's
        `__set__` does; whoever writes `start="2024-01-31"` is right.
        """

        def __get__(self, model: object, owner: type) -> Kept_co: ...

        def __set__(self, model: object, value: Given_contra) -> None: ...

    Duration = Read[str, int]
    MaybeDuration = Read[str | None, int | None]
    MaybeEvery = Read[str | None, int | None]
    Start = Read[str | date | datetime, int | None]
    Key = Read[str | list[str] | tuple[str, ...], tuple[str, ...]]
    Owners = Read[list[str] | tuple[str, ...], tuple[str, ...]]
    Kinds = Read[list[str] | tuple[str, ...], tuple[str, ...]]
    KeyPrefix = Read[list[str] | tuple[str, ...] | None, tuple[str, ...] | None]
    Location = Read[str | PathLike[str], str]
    MaybeLocation = Read[str | PathLike[str] | None, str | None]
else:
    Read = None
    Duration = Annotated[
        int, BeforeValidator(_duration), WithJsonSchema({"type": "string", "pattern": _DURATION})
    ]
    MaybeDuration = Duration | None
    Every = Annotated[
        int,
        BeforeValidator(_duration),
        AfterValidator(_whole_seconds),
        WithJsonSchema({"type": "string", "pattern": _DURATION}),
    ]
    MaybeEvery = Every | None
    Start = Annotated[
        int | None,
        BeforeValidator(_start),
        WithJsonSchema({"type": "string", "examples": ["2024-01-31", WITH_THE_DATA]}),
    ]
    Key = Annotated[
        tuple[Text, ...],
        WithJsonSchema(
            {
                "anyOf": [
                    {"type": "string", "minLength": 1},
                    {"type": "array", "items": {"type": "string", "minLength": 1}},
                ]
            }
        ),
    ]
    Owners = tuple[Owner, ...]
    # Dagster shows no more than three.
    Kinds = Annotated[
        tuple[Annotated[str, AfterValidator(_kind), Field(json_schema_extra={"pattern": _KIND})], ...],
        Field(max_length=3),
    ]
    KeyPrefix = tuple[Label, ...] | None
    Location = Annotated[Text, BeforeValidator(as_text)]
    MaybeLocation = Location | None


def duration_of(text: str) -> int:
    """Milliseconds of a duration as people write it.

    Raises:
        ValueError: it is none.

    """
    return _duration(text)
