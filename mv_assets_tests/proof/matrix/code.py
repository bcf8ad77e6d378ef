"""A view's function: of frames of whatever makes them, here Arrow's."""

from __future__ import annotations

from typing import Any

import pyarrow as pa

from mv_assets.views.python import Bucket


def paid(events: Any, payments: Any, bucket: Bucket) -> Any:
    """The bucket's events, each with how many payments there are in its window."""
    paid = pa.array([len(payments)] * len(events), pa.int64())
    return events.append_column("paid", paid).append_column("key", pa.array([bucket.key] * len(events)))
