"""Recurrent layers that OpenVINO computes otherwise than ONNX."""

from __future__ import annotations

from typing import Any

from serde.decompositions import recurrent
from serde.rewrite.rules import RuleTable
from serde.version_converter.adapters.recurrent import KINDS, time_first

ACTIVATIONS = frozenset(("Relu", "Sigmoid", "Tanh"))


def legalize_recurrent_layers(legalize: RuleTable) -> None:
    """Add the rules of this module."""
    legalize.for_each(KINDS)(legalize_recurrent)


def legalize_recurrent(
    op, g, x, w, r, b=None, lengths=None, *states, layout: int, outputs: int = 1, **form
):
    """OpenVINO lacks activations, has the same in both directions, and reads lengths badly.

    It heeds no lengths over a dynamic number of steps and no ``input_forget``, and computes
    peepholes and layers with the batch first wrongly. With the length of one sample, what is
    computed of its last state has an axis more.
    """
    operands = x, w, r, b, lengths, *states
    form |= {"layout": layout, "outputs": outputs}
    steps, batch = x.ranked_shape[:2][:: -1 if layout else 1]
    is_open = lengths is not None and (not isinstance(steps, int) or batch == 1)
    has_peepholes = len(states) > 2 and states[2] is not None
    if (
        is_open or has_peepholes or form.get("input_forget")
        or not has_known_activations(form.get("activations"), form.get("direction"))
    ):  # fmt: skip
        return recurrent.unroll_recurrent(op, g, *operands, **form)
    return time_first(op, g, *operands, **form) if layout else None


def has_known_activations(names: Any, direction: Any) -> bool:
    """Whether OpenVINO has these activations, the same in both directions."""
    names = tuple(names or ())
    half = len(names) // 2
    is_same = direction != "bidirectional" or names[:half] == names[half:]
    return is_same and ACTIVATIONS.issuperset(names)
