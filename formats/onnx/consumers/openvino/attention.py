"""Attention that OpenVINO computes wrongly where there are as many heads as places."""

from __future__ import annotations

from serde.rewrite.rules import RuleTable

EXCHANGED = (0, 2, 1, 3)  # heads and places


def legalize_attention(legalize: RuleTable) -> None:
    """Add the rules of this module."""
    legalize("Transpose")(legalize_transpose)


def legalize_transpose(g, x, *, perm):
    """OpenVINO writes the result of attention over the queries where both have one shape.

    It does so too where one of them is transposed and the other is not, since it computes those
    Transposes, the products and Softmax as one. With another axis they stand apart.
    """
    if tuple(perm) != EXCHANGED or not x.is_static:
        return None
    batch, heads, places, size = x.static_shape
    if heads != places or heads == 1:
        return None
    moved = g.Transpose(g.Reshape(x, [batch, heads, places, size, 1]), perm=(*EXCHANGED, 4))
    return g.Reshape(moved, [batch, places, heads, size])
