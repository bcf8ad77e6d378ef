"""Which metadata file of an Iceberg table is the current one, where no catalog says it."""

from __future__ import annotations

import re

from pyarrow import fs

_NAME = re.compile(r"(?:v(?P<version>\d+)|(?P<number>\d+)-[^/]*?)(?:\.gz)?\.metadata\.json(?:\.gz)?")
_HINT = "version-hint.text"


def current_metadata(path: str) -> str:
    """The metadata file of a table by its folder, or by that file itself.

    Raises:
        OSError: there is none.
        ValueError: it can't be told.

    """
    if path.endswith((".metadata.json", ".metadata.json.gz")):
        return path
    filesystem, root = fs.FileSystem.from_uri(path) if "://" in path else (fs.LocalFileSystem(), path)
    folder = f"{root.rstrip('/')}/metadata"
    names = {found.base_name for found in filesystem.get_file_info(fs.FileSelector(folder))}
    if _HINT in names:
        with filesystem.open_input_file(f"{folder}/{_HINT}") as file:
            chosen = _hinted(names, file.read().decode().strip())
    else:
        chosen = _highest(names)
    if chosen not in names:
        raise FileNotFoundError(f"its metadata folder has no {chosen}")
    return f"{path.rstrip('/')}/metadata/{chosen}"


def _hinted(names: set[str], hint: str) -> str:
    if not hint.isdigit():
        return hint if hint in names else f"{hint}.metadata.json"
    versions = {
        int(found["version"]): found[0] for found in map(_NAME.fullmatch, names) if found and found["version"]
    }
    version = int(hint)
    # A writer that died right after its commit has not moved the hint.
    while version + 1 in versions:
        version += 1
    return versions.get(version, f"v{version}.metadata.json")


def _highest(names: set[str]) -> str:
    numbers = {
        found[0]: int(found["version"] or found["number"]) for found in map(_NAME.fullmatch, names) if found
    }
    newest = sorted(name for name, number in numbers.items() if number == max(numbers.values()))
    if len(newest) > 1:
        # Of two commits that raced, one lost and left its file behind; only the catalog knows which.
        raise ValueError(f"{' and '.join(newest)} could both be current; give its catalog and identifier")
    return newest[0] if newest else "metadata file"
