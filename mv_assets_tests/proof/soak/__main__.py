"""`python -m mv_assets_tests.proof.soak --kills 200`: the exit code says whether all held."""

from __future__ import annotations

import argparse
import sys
import tempfile
import time
from pathlib import Path

from mv_assets_tests.proof.soak import victims
from mv_assets_tests.proof.soak.soak import Soak

_EVERY = 10


def main() -> int:
    parser = argparse.ArgumentParser(prog="python -m mv_assets_tests.proof.soak")
    parser.add_argument("--kills", type=int, default=200)
    parser.add_argument("--minutes", type=float, default=60.0)
    parser.add_argument("--seed", type=int, default=1)
    given = parser.parse_args()
    folder = Path(tempfile.mkdtemp(prefix="mv_assets_soak_"))
    folder.chmod(0o755)
    print(f"seed {given.seed}; logs in {folder}", flush=True)
    deadline = time.monotonic() + given.minutes * 60
    soak = Soak(folder, given.seed)
    try:
        soak.begin(filled=True)
        names, weights = list(victims.WEIGHTS), list(victims.WEIGHTS.values())
        told = 0
        while soak.kills.total() < given.kills and time.monotonic() < deadline:
            soak.kill(names, weights)
            if soak.kills.total() >= told + _EVERY:
                told = soak.kills.total()
                soak.look()
                print(f"{time.strftime('%H:%M:%S')} {soak.progress()}", flush=True)
        found = soak.end(patience_s=1_500)
        print(
            f"{time.strftime('%H:%M:%S')} {soak.progress()}; events {dict(soak.workload.happened)}",
            flush=True,
        )
    finally:
        soak.stop()
    for each in found:
        print(f"WRONG: {each}", flush=True)
    for each in sorted(set(soak.workload.errors)):
        print(f"noted: {each}", flush=True)
    enough = soak.kills.total() >= given.kills
    print("passed" if not found and enough else "FAILED" if found else "no time for all kills", flush=True)
    return 0 if not found and enough else 1


if __name__ == "__main__":
    sys.exit(main())
