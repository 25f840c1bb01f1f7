"""The weights of a model file, compared with the hash that was entered when it was written."""

from __future__ import annotations

import os

from serde.errors import MalformedFile, UsageError
from serde.io.weights_hash import KEY, weights_hash
from serde.pipeline import read

__all__ = ["KEY", "verify_hash", "weights_hash"]


def verify_hash(path: str | os.PathLike[str]) -> str:
    """Compare the weights of a model file with the hash in its metadata; return it.

    Raises:
        UsageError: where the file holds no hash. MalformedFile: where its weights have another.
    """
    graph, _ = read(path)
    expected = graph.metadata.get(KEY)
    if expected is None:
        raise UsageError(f"{os.fspath(path)} holds no hash of its weights: write it with --hash")
    digest = weights_hash(graph)
    if digest != expected:
        reason = (
            f"its weights are not those it was written with: SHA-256 {digest}, not {expected[:80]}"
        )
        raise MalformedFile(path, reason)
    return digest
