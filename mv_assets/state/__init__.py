"""The partition map: what may be trusted of each bucket of each view, and the one writer of it."""
