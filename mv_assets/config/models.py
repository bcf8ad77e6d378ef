"""The project as pydantic models. Unknown keys are errors; times are UTC milliseconds once read."""

from __future__ import annotations

from os import PathLike
from typing import TYPE_CHECKING, Annotated, Any, Literal

from pydantic import (
    ConfigDict,
    Field,
    GetJsonSchemaHandler,
    ValidationInfo,
    field_validator,
    model_validator,
)
from pydantic_core import CoreSchema

from mv_assets.buckets import Buckets
from mv_assets.config.declared import Declared, written
from mv_assets.config.home import home
from mv_assets.config.storage import Storage, Stored, is_s3
from mv_assets.config.tables import Table
from mv_assets.config.targets import Target
from mv_assets.config.values import (
    NAME,
    BucketWidth,
    ConnectUrl,
    Count,
    Duration,
    Key,
    KeyPrefix,
    Kinds,
    Label,
    Location,
    MaybeDuration,
    MaybeEvery,
    Name,
    Owners,
    OwnName,
    PythonFunction,
    Read,
    Start,
    StateUrl,
    Tags,
    Text,
    TimeZone,
    as_name,
    python_name,
    time_in,
)
from mv_assets.errors import BucketError

_ZONE = "spark.sql.session.timeZone"


class _Windowed(Declared):
    # `from` is a word of Python's: there it is written from_.
    model_config = ConfigDict(populate_by_name=True)

    table: Name
    """The table, or another view."""
    from_: Duration = Field(default="0s", validation_alias="from", validate_default=True)
    """How long before its start a bucket's window begins."""
    to: Duration = written("0s")
    """How long after its end a bucket's window ends."""


class BaseTable(_Windowed):
    """The table whose rows are put in buckets, and the window of it that a bucket reads.

    Its name alone may stand for it: then a bucket reads its own time.
    """

    @model_validator(mode="before")
    @classmethod
    def _its_name_alone(cls, given: Any) -> Any:
        return given if isinstance(given, dict | BaseTable) else {"table": as_name(given)}


class FurtherTable(_Windowed):
    """A further table with a time, and the window of it that a bucket reads."""

    wait: bool = True
    """Whether a bucket is computed only once the table has data through the end of the window."""


class Dimension(Declared):
    """A table that is joined whole. Its name alone may stand for it."""

    table: Name
    """The table."""
    key: Key = written(())
    """Columns of which no two rows have the same values, none of them null: one name, or several together.
    It is verified at each look, and lets the view answer queries that do not join the table."""

    @model_validator(mode="before")
    @classmethod
    def _its_name_alone(cls, given: Any) -> Any:
        return given if isinstance(given, dict | Dimension) else {"table": as_name(given)}

    @field_validator("key", mode="before")
    @classmethod
    def _one_or_several(cls, given: Any) -> Any:
        return (given,) if isinstance(given, str) else given

    @field_validator("key", mode="after")
    @classmethod
    def _in_any_order(cls, given: tuple[str, ...], info: ValidationInfo) -> tuple[str, ...]:
        columns = tuple(sorted(name.lower() for name in given))
        if len(set(columns)) < len(columns):
            raise ValueError(f"key of {info.data.get('table')} names a column twice; keep one")
        return columns


class _Or:
    """What an editor is told of a value that a text alone may stand for."""

    def __init__(self, **text: Any) -> None:
        self._text = {"type": "string", **text}

    def __get_pydantic_json_schema__(
        self, core_schema: CoreSchema, handler: GetJsonSchemaHandler
    ) -> dict[str, Any]:
        return {"anyOf": [self._text, handler(core_schema)]}


if TYPE_CHECKING:
    Base = Read[str | dict[str, str] | BaseTable, BaseTable]
    FurtherTables = Read[
        list[FurtherTable] | tuple[FurtherTable, ...] | list[dict[str, Any]], tuple[FurtherTable, ...]
    ]
    Dimensions = Read[
        list[str]
        | tuple[str, ...]
        | list[Dimension]
        | tuple[Dimension, ...]
        | list[dict[str, Any]]
        | list[str | dict[str, Any] | Dimension],
        tuple[Dimension, ...],
    ]
else:
    Base = Annotated[BaseTable, _Or(pattern=NAME)]
    FurtherTables = tuple[FurtherTable, ...]
    Dimensions = tuple[Annotated[Dimension, _Or(pattern=NAME)], ...]


class Function(Declared):
    """A deterministic Python function that the SQL of views may call."""

    name: Name
    """What SQL calls it."""
    python: PythonFunction
    """Where it is: package.module:function. In Python it may be given itself."""
    returns: Text
    """The type of what it gives, in Spark SQL."""
    version: Text | None = None
    """Raise it when something outside of the function's own code changes what it gives."""

    @property
    def python_name(self) -> str:
        return python_name(self.python)


class MaterializedView(Declared):
    """A query over base tables whose answer is kept, bucket by bucket."""

    # `with` is a word of Python's: there it is written with_.
    model_config = ConfigDict(
        populate_by_name=True,
        json_schema_extra={"oneOf": [{"required": ["sql"]}, {"required": ["python"]}]},
    )

    name: OwnName
    """Of the view, and of its asset: lower-case letters, digits and underscores, a letter first."""
    base: Base
    """The table, or another view, whose rows are put in buckets; with `from` and `to`, a window of it."""
    with_: FurtherTables = Field(default=(), validation_alias="with", validate_default=True)
    """Further tables with a time, of each the rows of a window around the bucket."""
    dimensions: Dimensions = written(())
    """Tables that are joined whole, each by its name or with its `key`; a change in one makes every bucket
    stale."""
    scope: Literal["table", "bucket"] = "table"
    """table: the SQL is meant over the whole table, and it is proved that buckets give the same. bucket: it
    is meant over the rows of each bucket's windows, and may be any deterministic SELECT."""
    sql: Text | None = None
    """One SELECT, in Spark SQL."""
    python: PythonFunction | None = None
    """Instead of `sql`, a function that makes a bucket's rows of data frames: package.module:function. In
    Python it may be given itself."""
    version: Text | None = None
    """With `python`: raise it when something outside of the function's own code changes what it gives."""
    timezone: TimeZone = "UTC"
    """Where 1d, 1w and 1mo buckets begin at midnight, and where the SQL is run."""
    time_column: Text
    """Output column that places a row in its bucket."""
    bucket: BucketWidth
    """Minutes that divide the hour (15m), hours that divide the day (6h), 1d, 1w (Monday) or 1mo."""
    start: Start
    """The first bucket; earlier data is not computed. In the view's time zone, if it names no other.
    earliest: where the base's data begins."""
    buffer: Duration = written("0s")
    """How long after its end a bucket is first computed."""
    closes: MaybeDuration = written(None)
    """How long after its end a bucket counts as complete although the data stops before; else never."""
    max_staleness: MaybeDuration = written(None)
    """Bounded reads refuse the view when it lags further behind than this."""
    stall_after: Duration = written("1h")
    """A bucket that waits longer than this to be computed, though nothing failed, is reported."""
    max_buckets_per_run: Count = 64
    """The most neighbouring buckets that are computed together."""
    max_runs: Count = 3
    """In Dagster, the most runs that a sensor has waiting or running for the view at a time."""
    every: MaybeEvery = written(None)
    """In Dagster, how often the view's tables are looked at; by default as often as all are."""
    answers: bool = True
    """Whether queries on the base may be answered from the view; by its own name it always answers."""
    on_base_delete: Literal["follow", "freeze"] = "follow"
    """freeze keeps what retention removes from the base table."""
    merge_floats: bool = False
    """Merge late files into sums of floating point too: their last digits then depend on who came first."""
    publish: Literal[False] | Target | None = None
    """Where the view appears as a table, if not where the project says; false: nowhere."""
    description: str = ""
    """For people, shown with the asset in Dagster."""
    owners: Owners = written(())
    """Who answers for the view, as Dagster wants it: me@example.com or team:city."""
    key_prefix: KeyPrefix = written(None)
    """In Dagster, what stands before the view's name in its asset's key; by default what all have."""
    group: Label | None = None
    """In Dagster, the group of the asset; by default that of all."""
    tags: Tags = written({})
    """In Dagster, tags of the asset."""
    kinds: Kinds = written(())
    """In Dagster, what the asset is shown to be made of, at most three; by default spark and parquet."""

    @field_validator("start", mode="before")
    @classmethod
    def _where_it_is(cls, given: Any, info: ValidationInfo) -> Any:
        return time_in(given, info.data.get("timezone", "UTC"))

    @field_validator("with_", mode="after")
    @classmethod
    def _in_any_order(cls, given: tuple[FurtherTable, ...]) -> tuple[FurtherTable, ...]:
        """One order for all: another one in the file is no other view."""
        return tuple(sorted(given, key=lambda further: further.table))

    @model_validator(mode="after")
    def _whole_days(self) -> MaterializedView:
        try:
            _ = self.buckets
        except BucketError as error:
            raise ValueError(str(error)) from None
        return self

    @model_validator(mode="after")
    def _looked_at_in_time(self) -> MaterializedView:
        every, most = self.every, self.max_staleness
        if every is not None and most is not None and every > most:
            raise ValueError(
                "every is longer than max_staleness: between two looks the view would be too old; look more "
                "often, or allow more"
            )
        return self

    @model_validator(mode="after")
    def _once(self) -> MaterializedView:
        if len(set(self.joined)) < len(self.joined):
            raise ValueError("dimensions names a table twice; keep one")
        tables = [self.base.table, *(further.table for further in self.with_)]
        twice = next((table for table in tables if tables.count(table) > 1), None)
        if twice is not None:
            raise ValueError(f"{twice} is read twice; name it once, with the window that holds both")
        return self

    @model_validator(mode="after")
    def _one_way(self) -> MaterializedView:
        if (self.sql is None) == (self.python is None):
            raise ValueError("a view has either sql or python")
        if self.python is None and self.version is not None:
            raise ValueError("version is for python; SQL says itself when it changes, take it out")
        windowed = self.with_ or self.base.from_ or self.base.to
        if self.scope == "table" and (self.python is not None or windowed):
            what = "python" if self.python is not None else "with, from and to"
            raise ValueError(
                f"{what} need `scope: bucket`: what is computed is then meant over the rows of each bucket's "
                "windows, not over the whole table"
            )
        return self

    def __call__(self, *given: Any, **named: Any) -> Any:
        """What the view's function gives: a view that was made of one may be tested as that."""
        if self.python is None or isinstance(self.python, str):
            raise TypeError(f"view {self.name} was not made of a function, and can't be called like one")
        return self.python(*given, **named)

    @property
    def python_name(self) -> str | None:
        """Where its function is, if it has one: package.module:function."""
        return None if self.python is None else python_name(self.python)

    @property
    def buckets(self) -> Buckets:
        return Buckets.of(self.bucket, self.timezone)

    @property
    def timed(self) -> tuple[str, ...]:
        """The tables of which it reads a window: the base, then the further ones."""
        return (self.base.table, *(further.table for further in self.with_))

    @property
    def joined(self) -> tuple[str, ...]:
        """The tables that are joined whole."""
        return tuple(dimension.table for dimension in self.dimensions)

    @property
    def keys(self) -> dict[str, tuple[str, ...]]:
        """The declared unique keys of those that have one."""
        return {dimension.table: dimension.key for dimension in self.dimensions if dimension.key}

    @property
    def reads(self) -> tuple[str, ...]:
        """All tables that it reads."""
        return (*self.timed, *self.joined)


class Spark(Declared):
    """How to reach Spark: a master, or a Spark Connect server."""

    master: Text | None = None
    """Where a Spark of our own runs: local[*], which is the default, or a cluster's master."""
    # It may hold a token.
    remote: ConnectUrl | None = Field(default=None, repr=False)
    """A Spark Connect server that runs already, instead of a master: sc://HOST:PORT."""
    conf: dict[str, str] = Field(default={}, repr=False)
    """Spark's settings, as texts: spark.driver.memory and its like."""

    @model_validator(mode="after")
    def _one(self) -> Spark:
        if self.master is not None and self.remote is not None:
            raise ValueError("spark has both a master and a remote; keep one")
        if self.conf.get(_ZONE, "UTC") not in ("UTC", "Etc/UTC", "GMT", "+00:00", "Z"):
            raise ValueError(f"conf sets {_ZONE}, but buckets are in UTC; take it out")
        return self


class StateDatabase(Declared):
    """The database that says which bucket was computed from what. Its URL alone may stand for it."""

    # It may hold a password.
    url: StateUrl = Field(repr=False)
    """sqlite:///FILE, or postgresql+psycopg://USER@HOST/DATABASE for a team."""
    attempts: Count = 128
    """So often what others are in the way of is tried, 50 to 200 ms apart, before it is given up."""

    @model_validator(mode="before")
    @classmethod
    def _its_url_alone(cls, given: Any) -> Any:
        return {"url": given} if isinstance(given, str) else given


class WarehouseFolder(Stored):
    """The folder of the views' data. Its path alone may stand for it."""

    path: Location
    """Folder or URI; a relative path starts at the project file's folder."""

    @model_validator(mode="before")
    @classmethod
    def _its_path_alone(cls, given: Any) -> Any:
        return {"path": given} if isinstance(given, str | PathLike) else given


if TYPE_CHECKING:
    WarehousePlace = Read[str | WarehouseFolder, WarehouseFolder]
else:
    WarehousePlace = Annotated[WarehouseFolder, _Or(minLength=1)]


class DeclaredProject(Declared):
    """Tables, views, and where their state and data are kept."""

    # In the JSON schema it is what an editor's user calls it.
    model_config = ConfigDict(title="Project")

    state: Annotated[StateDatabase, _Or(minLength=1)] = Field(
        default_factory=lambda: StateDatabase(url=f"sqlite:///{home()}/state.db"), validate_default=True
    )
    """URL of the state database, by default state.db in MV_ASSETS_HOME; or `url` and `attempts`."""
    storage: Storage | None = None
    """How object stores are reached, for each table and the warehouse that does not say it itself."""
    warehouse: WarehousePlace = Field(
        default_factory=lambda: WarehouseFolder(path=f"{home()}/warehouse"), validate_default=True
    )
    """Folder of the views' data, by default `warehouse` in MV_ASSETS_HOME; or `path` and `storage`."""
    spark: Spark = Spark()
    """How to reach Spark; by default it runs on this machine."""
    publish: Target | None = None
    """Where views appear as tables for everybody else: an Iceberg catalog, or a folder of Delta tables."""
    tables: tuple[Table, ...] = ()
    """The base tables and dimensions that views are made of."""
    functions: tuple[Function, ...] = ()
    """Python functions that the SQL of views may call."""
    views: tuple[MaterializedView, ...] = ()
    """The queries whose answers are kept."""

    @field_validator("warehouse", "tables", mode="after")
    @classmethod
    def _reached_by_default(cls, declared: Any, info: ValidationInfo) -> Any:
        default = info.data.get("storage")
        if isinstance(declared, tuple):
            return tuple(_reached(each, default) for each in declared)
        return _reached(declared, default)


def _reached(declared: Stored, default: Storage | None) -> Stored:
    """With the project's storage, if it is in a store and says nothing itself."""
    path = getattr(declared, "path", None)
    if default is None or declared.storage is not None or not (path is None or is_s3(path)):
        return declared
    return declared.model_copy(update={"storage": default})
