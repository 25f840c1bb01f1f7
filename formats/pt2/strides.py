"""Where the elements of tensors lie: strides count elements, as PyTorch's do."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, NamedTuple

BY_STRIDES = frozenset({"as_strided", "as_strided_copy"})  # which read places in memory
Numbers = Sequence[Any]  # None for what is no number


class Layout(NamedTuple):
    """Sizes and strides of a tensor, and the place of its first element in memory."""

    sizes: Numbers
    strides: Numbers
    start: int | None

    @classmethod
    def of(cls, meta: Mapping[str, Any]) -> Layout:
        """What a program says of a tensor, as far as it is numbers."""
        sizes, strides = ([d.get("as_int") for d in meta[key]] for key in ("sizes", "strides"))
        return cls(sizes, strides, meta["storage_offset"].get("as_int"))

    @property
    def is_packed(self) -> bool | None:
        """Whether elements lie in order, without gaps; None where a stride is no number."""
        return is_packed(self.sizes, self.strides)

    @property
    def is_in_order(self) -> bool:
        """Whether elements are known to lie in order; only the first size may be no number."""
        return self._is_dense(range(len(self.sizes)))

    def sort_axes(self) -> list[int] | None:
        """The axes in the order in which elements lie; None where they leave gaps, or share places.

        None too where that is not known: of the sizes only the outermost may be no number.
        """
        order = sorted(range(len(self.sizes)), key=lambda axis: -(self.strides[axis] or 0))
        return order if self._is_dense(order) else None

    def _is_dense(self, order: Sequence[int]) -> bool:
        expected: int | None = 1
        for axis in reversed(order):
            size = self.sizes[axis]
            if size == 1:
                continue
            if expected is None or self.strides[axis] != expected:
                return False
            expected = None if size is None else expected * size
        return True


def is_packed(sizes: Numbers, strides: Numbers) -> bool | None:
    """Whether elements lie in order, without gaps; None where a stride is no number.

    Strides behind a size by name are taken for those of elements in order.
    """
    expected: int | None = 1
    is_known = True
    for size, stride in zip(reversed(sizes), reversed(strides), strict=True):
        if size != 1 and None not in (expected, stride) and stride != expected:
            return False
        is_known = is_known and (size == 1 or expected is None or stride is not None)
        expected = None if size is None or expected is None else expected * size
    return True if is_known else None
