"""The codes by which MXNet, and Relay after it, say the shape a tensor is given.

0 copies a size, -1 is inferred, -2 copies the rest, -3 merges two sizes, -4 splits one in the two
numbers after it (MXNet's documentation of ``Reshape``, Relay's of ``reshape``).
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from serde.errors import require
from serde.ir.geometry import Ints
from serde.spec.expressions import Size

SKIP = -5  # passes over a size that is 1: of NumPy's reshape in MXNet, where it is called -3


def resolve_reshape_codes(g: Any, sizes: Sequence[Size], codes: Ints) -> list[Size]:
    """The sizes that ``codes`` say for a tensor of ``sizes``, -1 left as it is.

    Raises:
        ConversionError: the codes mean nothing for so many sizes.
    """
    left, out, rest = list(sizes), [], list(codes)

    def next_size() -> Size:
        require(left, f"the shape {codes} copies more axes than the {len(sizes)} there are")
        return left.pop(0)

    while rest:
        code = rest.pop(0)
        if code == 0:
            out.append(next_size())
        elif code == SKIP:
            next_size()
        elif code == -2:
            out, left = out + left, []
        elif code == -3:
            out.append(g.multiply_sizes([next_size(), next_size()]))
        elif code == -4:
            require(len(rest) >= 2, f"the shape {codes}: -4 is followed by two sizes")
            out += _resolve_split(g, next_size(), rest.pop(0), rest.pop(0))
        else:
            require(code > 0 or code == -1, f"the shape {codes}: {code} means nothing")
            out.append(code)
            if left:
                left.pop(0)
    return out


def _resolve_split(g: Any, size: Size, first: int, second: int) -> list[Size]:
    """The two sizes one is split into; one of them may be -1."""
    require(first > 0 or second > 0, "-4 is followed by -1 twice")
    if -1 not in (first, second):
        return [first, second]
    known = first if second == -1 else second
    rest = size // known if isinstance(size, int) else g.Div(size, [known])
    return [rest, known] if first == -1 else [known, rest]
