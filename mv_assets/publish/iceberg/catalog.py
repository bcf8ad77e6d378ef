"""pyiceberg's catalogs and commits, as far as a published table needs them."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from contextlib import contextmanager, suppress
from pathlib import Path

from pyiceberg.catalog import Catalog, load_catalog
from pyiceberg.exceptions import CommitFailedException, NoSuchTableError, TableAlreadyExistsError
from pyiceberg.manifest import ManifestFile
from pyiceberg.table import Table
from pyiceberg.table.update.snapshot import _ManifestMergeManager, _OverwriteFiles

from mv_assets.errors import MvError
from mv_assets.publish.errors import Lost, NotPublished

_SQLITE = "sqlite:///"
# So many manifests of one commit each become one: whoever reads the table reads all of them.
_MANY_MANIFESTS = 24
_MANIFEST_BYTES = 8 << 20
_NO_SECRETS = ("name", "type", "warehouse")


class Overwrite(_OverwriteFiles):
    """Files that come and go in one snapshot; the library's own never puts small manifests together."""

    def _process_manifests(self, manifests: list[ManifestFile]) -> list[ManifestFile]:
        manager = _ManifestMergeManager(
            target_size_bytes=_MANIFEST_BYTES,
            min_count_to_merge=_MANY_MANIFESTS,
            merge_enabled=True,
            snapshot_producer=self,
        )
        return manager.merge_manifests(manifests)


def opened(properties: Mapping[str, str]) -> Catalog:
    given = dict(properties)
    uri = given.get("uri", "")
    if uri.startswith(_SQLITE) and not uri.startswith(f"{_SQLITE}file:"):
        Path(uri.removeprefix(_SQLITE)).parent.mkdir(parents=True, exist_ok=True)
    return load_catalog(given.pop("name", None), **given)


def table_of(catalog: Catalog, identifier: str) -> Table | None:
    with suppress(NoSuchTableError):
        return catalog.load_table(identifier)
    return None


@contextmanager
def speaking(view: str, where: str, properties: Mapping[str, str]) -> Iterator[None]:
    """Whatever a library, a driver or a store says, in a sentence of ours."""
    try:
        yield
    except (CommitFailedException, TableAlreadyExistsError) as error:
        raise Lost from error
    except (MvError, Lost):
        raise
    except Exception as error:
        said = _without(str(error).strip().split("\n", 1)[0], properties) or type(error).__name__
        why = f"{said}; see that it can be reached and written, it is tried again with the next publication"
        raise NotPublished(view, where, why) from error


def _without(text: str, properties: Mapping[str, str]) -> str:
    """A text of the library's, without what a catalog's properties may hold of secrets."""
    for key, value in properties.items():
        if key not in _NO_SECRETS and value:
            text = text.replace(value, "...")
    return text
