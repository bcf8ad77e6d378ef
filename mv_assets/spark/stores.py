"""Object stores as Spark reaches them: by Hadoop, which is told how with each read and write.

A session's settings would be anybody's who has the session, and of the frames that are made in one and read
in another they would be missing.
"""

from __future__ import annotations

import re
from collections.abc import Iterable
from contextlib import suppress
from typing import TYPE_CHECKING

from mv_assets.config.storage import Storage, as_s3a, bucket_of
from mv_assets.errors import MvError
from mv_assets.spark.errors import JobFailed, StoreUnavailable
from mv_assets.spark.failures import condition_of, in_short, spark_errors

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

_PROVIDERS = "org.apache.hadoop.fs.s3a"
# By scheme, what Hadoop is to be given to know it.
_PACKAGES = {"s3a": "org.apache.hadoop:hadoop-aws", "abfs": "org.apache.hadoop:hadoop-azure"}
_UNKNOWN = re.compile(r"No FileSystem for scheme|Class [\w.]+ not found|ClassNotFoundException")
_VERSION = "SELECT reflect('org.apache.hadoop.util.VersionInfo', 'getVersion')"
# A name that nobody has: to look for it, Spark must reach the store.
_NOWHERE = "_mv_assets_is_it_reached"


def spark_path(path: str) -> str:
    """A path as Spark is told it: on this machine if it names no store."""
    return as_s3a(path) if "://" in path or path.startswith("file:") else f"file:{path}"


def options(paths: Iterable[str], storage: Storage | None) -> dict[str, str]:
    """What a read or write of some paths is told of their stores.

    By bucket: Hadoop keeps what it has once reached, and knows it by that.
    """
    buckets = {bucket_of(path) for path in paths} if storage is not None else set()
    return {
        f"fs.s3a.bucket.{bucket}.{key}": value
        for bucket in sorted(bucket for bucket in buckets if bucket is not None)
        for key, value in ({} if storage is None else _of_hadoop(storage)).items()
    }


def _of_hadoop(storage: Storage) -> dict[str, str]:
    names = {"access_key": "access.key", "secret_key": "secret.key", "session_token": "session.token"}
    found = {names[name]: value for name, value in storage.credentials().items()}
    if storage.anonymous:
        found["aws.credentials.provider"] = f"{_PROVIDERS}.AnonymousAWSCredentialsProvider"
    elif found:
        # Else Hadoop might put this key and another token together.
        kind = "Simple" if storage.session_token is None else "Temporary"
        found["aws.credentials.provider"] = f"{_PROVIDERS}.{kind}AWSCredentialsProvider"
    if storage.known_region is not None:
        found["endpoint.region"] = storage.known_region
    if storage.endpoint is not None:
        found["endpoint"] = storage.endpoint
        found["connection.ssl.enabled"] = "false" if storage.endpoint.startswith("http:") else "true"
    if storage.endpoint is not None or storage.path_style is not None:
        found["path.style.access"] = "true" if storage.by_path else "false"
    return found


def is_store(path: str | None) -> bool:
    """Whether a path is elsewhere than on this machine."""
    return path is not None and "://" in path and not path.startswith("file:")


def see_reached(spark: SparkSession, what: str, path: str | None, storage: Storage | None) -> None:
    """See that Spark can reach the store that something is in, so that no bucket is blamed if it can't.

    Raises:
        StoreUnavailable: it can't.
        EngineUnavailable: nothing can be done with this Spark.

    """
    from pyspark.errors import PySparkException  # noqa: PLC0415 - Spark is loaded by those who use it

    if path is None or not is_store(path):
        return
    place = f"{spark_path(path).rstrip('/')}/{_NOWHERE}"
    try:
        with spark_errors():
            spark.read.options(**options([path], storage)).schema("a INT").parquet(place).inputFiles()
    except JobFailed as failed:
        cause = failed.__cause__
        if isinstance(cause, PySparkException) and condition_of(cause) == "PATH_NOT_FOUND":
            return
        raise _unavailable(spark, what, place, str(cause), in_short(cause or failed)) from failed


def _unavailable(spark: SparkSession, what: str, place: str, said: str, short: str) -> MvError:
    scheme = place.partition("://")[0]
    if _UNKNOWN.search(said) is None:
        return StoreUnavailable(
            what, f"Spark can't reach its store: {short}", "see that Spark may read there"
        )
    package = _PACKAGES.get(scheme.removesuffix("s") if scheme.startswith("abfs") else scheme)
    if package is None:
        return StoreUnavailable(
            what, f"Spark knows no {scheme}://", "add its connector to spark.jars.packages"
        )
    why = f"Spark has no jars for {scheme}://"
    add = f"{package}:{_hadoop_version(spark)}"
    return StoreUnavailable(what, why, f"add it to the project: spark.conf, `spark.jars.packages: {add}`")


def _hadoop_version(spark: SparkSession) -> str:
    with suppress(MvError, IndexError), spark_errors():
        return str(spark.sql(_VERSION).collect()[0][0])
    return "the version of Spark's Hadoop"
