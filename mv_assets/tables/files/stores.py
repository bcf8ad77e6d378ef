"""How an object store is reached, in the words of the libraries that read tables there."""

from __future__ import annotations

from mv_assets.config.storage import Storage

_OF_DELTALAKE = {
    "access_key": "AWS_ACCESS_KEY_ID",
    "secret_key": "AWS_SECRET_ACCESS_KEY",
    "session_token": "AWS_SESSION_TOKEN",
}
_OF_PYICEBERG = {
    "access_key": "s3.access-key-id",
    "secret_key": "s3.secret-access-key",
    "session_token": "s3.session-token",
}


def for_deltalake(storage: Storage | None) -> dict[str, str]:
    """Options of deltalake."""
    if storage is None:
        return {}
    found = {_OF_DELTALAKE[name]: value for name, value in storage.credentials().items()}
    found |= _given(AWS_ENDPOINT_URL=storage.endpoint, AWS_REGION=storage.known_region)
    if storage.endpoint is not None or storage.path_style is not None:
        found["AWS_VIRTUAL_HOSTED_STYLE_REQUEST"] = _word(not storage.by_path)
    return found | _given(
        AWS_ALLOW_HTTP="true" if storage.allow_http else None,
        AWS_SKIP_SIGNATURE="true" if storage.anonymous else None,
    )


def for_pyiceberg(storage: Storage | None) -> dict[str, str]:
    """Properties of a catalog or file system of pyiceberg."""
    if storage is None:
        return {}
    found = {_OF_PYICEBERG[name]: value for name, value in storage.credentials().items()}
    found |= _given(**{"s3.endpoint": storage.endpoint, "s3.region": storage.known_region})
    if storage.endpoint is not None or storage.path_style is not None:
        found["s3.force-virtual-addressing"] = _word(not storage.by_path)
    return found | _given(**{"s3.anonymous": "true" if storage.anonymous else None})


def _given(**options: str | None) -> dict[str, str]:
    return {name: value for name, value in options.items() if value is not None}


def _word(true: bool) -> str:  # noqa: FBT001 - a word for it
    return "true" if true else "false"
