"""Passes that users can leave out by name: they make graphs smaller, and no result needs them."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping
from contextlib import contextmanager
from contextvars import ContextVar
from functools import wraps
from types import MappingProxyType

from serde.ir.graph import Graph

Pass = Callable[[Graph], Graph]
# The passes, and what each does.
OPTIONAL: Mapping[str, str] = MappingProxyType(
    {
        "share_constants": "equal constants become one",
        "merge_repeats": "nodes that compute the same become one",
        "flatten_concats": "Concats of Concats along one axis become one",
        "drop_neutral": "sums with 0, products with 1, reductions over axes of 1 and the like go",
        "sink_reversals": "reversals of image axes move until two cancel",
        "fold_bias": "a sum with a constant for each channel becomes the bias of a convolution",
        "fold_pads": "a Pad of zeros becomes the pads of a convolution",
        "narrow_operands": "operands are not expanded where the operator broadcasts them",
        "merge_slices": "a Slice of a Slice, or of a Pad, becomes one",
        "merge_reshapes": "nodes that only rearrange axes become one Reshape",
        "merge_reductions": "reductions of one kind along several axes become one",
        "make_gemms": "linear layers become Gemm",
        "join_parallel_products": "products of one tensor with several matrices become one",
        "expand_constants": "constants stand for nodes that repeat a constant a few times",
    }
)
_skipped: ContextVar[frozenset[str]] = ContextVar("skipped passes", default=frozenset())


def optional(name: str) -> Callable[[Pass], Pass]:
    """Let users leave out the decorated pass, which ``OPTIONAL`` has by this name."""

    def decorate(step: Pass) -> Pass:
        @wraps(step)
        def apply(graph: Graph) -> Graph:
            return graph if name in _skipped.get() else step(graph)

        apply.__name__ = name
        return apply

    assert name in OPTIONAL
    return decorate


@contextmanager
def skip_passes(names: Iterable[str] | None) -> Iterator[None]:
    """Leave out the passes of these names in the block, beside those around it."""
    token = _skipped.set(_skipped.get().union(names or ()))
    try:
        yield
    finally:
        _skipped.reset(token)
