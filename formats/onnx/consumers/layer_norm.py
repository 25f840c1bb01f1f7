"""LayerNormalization for runtimes that have it over the last axis, with constant weights."""

from __future__ import annotations

from serde.legalize.forms.form import Call


def has_other_weights(call: Call) -> bool:
    """Whether weights are computed, left out, or not as large as the last axis."""
    x, weights = call.x, [call.inputs[1], call.operand(2)]
    normalized_shape = x.ranked_shape[call.attrs["axis"] % x.rank :]
    is_last = x.rank > 1 and len(normalized_shape) == 1 and call.outputs == 1
    return not is_last or any(
        v is None or v.tensor is None or v.ranked_shape != normalized_shape for v in weights
    )
