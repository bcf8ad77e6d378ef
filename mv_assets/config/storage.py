"""Object stores: how they are reached, told once for all libraries, and what an address of one is."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING, Annotated, Any
from urllib.parse import unquote, urlsplit

from pydantic import AfterValidator, Field, SecretStr, model_validator

from mv_assets.config.declared import Declared
from mv_assets.config.values import Read, Text

# One store under the three names that Hadoop has given it.
_S3 = re.compile(r"s3[an]?://")
# What Azure calls a shared access signature.
_SIGNATURE = re.compile(r"&sig=", re.IGNORECASE)
_BUCKET = re.compile(r"[A-Za-z0-9][A-Za-z0-9._-]*")
_CREDENTIALS = ("access_key", "secret_key", "session_token")


def _secret(value: SecretStr) -> SecretStr:
    if not value.get_secret_value().strip():
        raise ValueError("empty; write it, or leave it out for the libraries' own chain of credentials")
    return value


def _unsaid() -> Any:
    """No default that a type checker would hold against what the field is kept as."""
    return Field(None)


def _endpoint(value: str) -> str:
    try:
        place = urlsplit(value)
        known = place.scheme in ("http", "https") and place.hostname and (place.port or True)
    except ValueError:
        known = False
    if not known or place.username is not None or place.path.strip("/") or place.query:
        raise ValueError("not the address of a store; write https://HOST or https://HOST:PORT")
    return value.rstrip("/")


if TYPE_CHECKING:
    MaybeSecret = Read[str | None, SecretStr | None]
else:
    Secret = Annotated[SecretStr, AfterValidator(_secret), Field(json_schema_extra={"minLength": 1})]
    MaybeSecret = Secret | None
Endpoint = Annotated[str, AfterValidator(_endpoint), Field(json_schema_extra={"pattern": "^https?://."})]


class Storage(Declared):
    """How an S3 store is reached. What is left out, each library finds by its own chain: AWS_* and so on."""

    endpoint: Endpoint | None = None
    """Where a store answers that is not Amazon's: https://HOST:PORT."""
    region: Text | None = None
    """The region of the buckets. By default Amazon is asked; with an endpoint it is us-east-1, which stores
    without regions expect."""
    access_key: MaybeSecret = _unsaid()
    """Id of the key to sign with. Never shown."""
    secret_key: MaybeSecret = _unsaid()
    """The key itself. Never shown."""
    session_token: MaybeSecret = _unsaid()
    """With a temporary key, its token. Never shown."""
    anonymous: bool = False
    """Ask without a key, as public buckets allow."""
    path_style: bool | None = None
    """Whether a bucket is the first part of the path, or else of the host's name. By default it is the first
    part of the path where an endpoint is given."""
    allow_http: bool = False
    """Whether an endpoint may be asked without encryption: http://HOST:PORT."""

    @model_validator(mode="after")
    def _consistent(self) -> Storage:
        if (self.access_key is None) != (self.secret_key is None):
            raise ValueError("access_key and secret_key belong together; give both, or neither")
        if self.session_token is not None and self.access_key is None:
            raise ValueError("session_token belongs to an access_key and a secret_key; give them as well")
        if self.anonymous and self.access_key is not None:
            raise ValueError("anonymous asks without a key, but there is an access_key; keep one")
        if (self.endpoint or "").startswith("http://") and not self.allow_http:
            raise ValueError("its endpoint is not encrypted; write https://, or set `allow_http: true`")
        return self

    @property
    def known_region(self) -> str | None:
        """The region, unless only Amazon knows it."""
        return self.region or (None if self.endpoint is None else "us-east-1")

    @property
    def by_path(self) -> bool:
        """Whether buckets are named in the path."""
        return self.endpoint is not None if self.path_style is None else self.path_style

    def credentials(self) -> dict[str, str]:
        """What only its owner should know, as far as it is given."""
        given = {name: getattr(self, name) for name in _CREDENTIALS}
        return {name: secret.get_secret_value() for name, secret in given.items() if secret is not None}


class Stored(Declared):
    """Something at a path that may be in an object store."""

    storage: Storage | None = None
    """How the object store is reached; by default as the project's `storage` says."""

    @model_validator(mode="after")
    def _in_a_store(self) -> Stored:
        path = getattr(self, "path", None)
        if self.storage is not None and path is not None and not is_s3(path):
            raise ValueError("storage says how s3:// is reached, but path is elsewhere; take storage out")
        return self

    @model_validator(mode="before")
    @classmethod
    def _without_credentials(cls, given: Any) -> Any:
        """Credentials that stand in the path go where no message shows them."""
        path = given.get("path") if isinstance(given, dict) else None
        if not isinstance(path, str):
            return given
        if is_s3(path):
            return {**given, **_apart(path, given)}
        if has_credentials(path):
            # It is shown: in Dagster, and in messages.
            raise ValueError(
                "path has credentials in it; leave them to the libraries' own chain, as variables"
            )
        return given


def _apart(path: str, given: dict[str, Any]) -> dict[str, Any]:
    _, _, rest = path.partition("://")
    where, _, key = rest.partition("/")
    user, _, bucket = where.rpartition("@")
    if not _BUCKET.fullmatch(bucket) or "?" in key:
        # Nothing of it is repeated: a key of which a slash is not escaped looks like a bucket.
        raise ValueError(
            "path names no bucket of a store; write s3://BUCKET/FOLDER, and all else below `storage`"
        )
    found: dict[str, Any] = {"path": f"s3://{bucket}/{key}"}
    if user:
        access_key, _, secret_key = user.partition(":")
        storage = given.get("storage")
        if storage is not None and (
            not isinstance(storage, dict) or not storage.keys().isdisjoint(_CREDENTIALS)
        ):
            raise ValueError("path has credentials in it, and so has storage; take them out of the path")
        keys = {"access_key": unquote(access_key), "secret_key": unquote(secret_key)}
        found["storage"] = {**(storage or {}), **keys}
    return found


def is_s3(path: str) -> bool:
    return _S3.match(path) is not None


def has_credentials(path: str) -> bool:
    """Whether an address says who asks, or is signed; Azure's have the container in the user's place."""
    place, _, query = path.partition("://")[2].partition("?")
    user, at, _ = place.partition("/")[0].rpartition("@")
    return (bool(at) and (is_s3(path) or ":" in user)) or _SIGNATURE.search(f"&{query}") is not None


def as_s3(path: str) -> str:
    """An address as all but Hadoop write it."""
    return _S3.sub("s3://", path, count=1)


def as_s3a(path: str) -> str:
    """An address as Hadoop writes it, and with it Spark."""
    return _S3.sub("s3a://", path, count=1)


def bucket_of(path: str) -> str | None:
    """The bucket that a path is in; None for other places."""
    return _S3.sub("", path).partition("/")[0] if is_s3(path) else None
