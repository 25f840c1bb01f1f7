"""Recurrent layers, as ``nn.LSTM``, ``nn.GRU`` and ``nn.RNN`` where their form allows."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator
from operator import itemgetter
from typing import Any

import numpy as np

from serde.decompositions.recurrent import unroll_recurrent
from serde.errors import require
from serde.ir.graph import DType, Value
from serde.legalize.forms.form import Call, Form
from serde.version_converter.adapters.recurrent import time_first

from ..target import TorchBuilder, derive, legalizations, set_type, writes

# The places of PyTorch's gates among ONNX's: iofc → ifgo, zrh → rzn.
GATES = {"LSTM": (0, 2, 3, 1), "GRU": (1, 0, 2), "RNN": (0,)}
USUAL = {"LSTM": ("Sigmoid", "Tanh", "Tanh"), "GRU": ("Sigmoid", "Tanh")}
PACK, PAD = (f"nn.utils.rnn.{name}" for name in ("pack_padded_sequence", "pad_packed_sequence"))


def _unroll(g: Any, call: Call) -> Any:
    return unroll_recurrent(call.op, g, *call.inputs, outputs=call.outputs, **call.attrs)


# What torch.export does not take.
PACKED = dict.fromkeys(
    GATES, (Form("lengths", lambda call: call.operand(4) is not None, _unroll),)
)  # fmt: skip


@legalizations.for_each(list(GATES))
def legalize_recurrent(op, g, x, w, r, b=None, lengths=None, *states, layout: int,
                       outputs: int = 1, **form):  # fmt: skip
    """A module has constant weights and the usual activations, and no lengths backwards only."""
    operands = (x, w, r, b, lengths, *states)
    form |= {"layout": layout, "outputs": outputs}
    is_constant = all(v is None or v.tensor is not None for v in (w, r, b))
    has_peepholes = len(states) > 2 and states[2] is not None
    usual = _has_usual_form(op, form)
    is_packed_backwards = lengths is not None and form.get("direction") == "reverse"
    if not is_constant or is_packed_backwards or has_peepholes or not usual:
        return unroll_recurrent(op, g, *operands, **form)
    return time_first(op, g, *operands, **form) if layout else None


def _has_usual_form(op: str, form: dict[str, Any]) -> bool:
    if form.get("clip") or form.get("input_forget"):
        return False
    if op == "GRU" and not form.get("linear_before_reset"):
        return False
    names = tuple(form.get("activations") or ())
    each = names[: len(names) // 2] if form.get("direction") == "bidirectional" else names
    if op == "RNN":
        return not names or (set(names) in ({"Tanh"}, {"Relu"}))
    ways = names == each * 2 if form.get("direction") == "bidirectional" else True
    return not names or (each == USUAL[op] and ways)


@writes.for_each(
    list(GATES), ignore=("activation_alpha", "activation_beta", "linear_before_reset", "layout")
)
def write_recurrent(
    op: str, t: TorchBuilder, x: Value, w: Value, r: Value, b: Value | None = None,
    lengths: Value | None = None, *states: Value | None, hidden_size: int,
    direction: str = "forward", activations: tuple[str, ...] = (),
):  # fmt: skip
    ways = 2 if direction == "bidirectional" else 1
    options = {"nonlinearity": "relu"} if "Relu" in activations else {}
    arrays = (w, r, b)
    y, *last = _emit_module(op, t, x, arrays, states, hidden_size, direction, lengths, **options)
    if ways == 1:
        return (t[".unsqueeze"](y, 1), *last)
    steps, batch = t.size(x, 0), t.size(x, 1)
    y = t[".permute"](t[".reshape"](y, steps, batch, ways, hidden_size), 0, 2, 1, 3)
    return (y, *last)


@writes("ProjectedLSTM")
def write_projected_lstm(
    t: TorchBuilder, x: Value, w: Value, r: Value, projection: Value, b: Value | None = None,
    *states: Value | None, direction: str,
):  # fmt: skip
    """A composite operator: ``serde.decompositions.composites``."""
    _, width, hidden = projection.static_shape
    arrays = (w, r, b, projection)
    return tuple(_emit_module("LSTM", t, x, arrays, states, hidden, direction, proj_size=width))


def _emit_module(
    op: str, t: TorchBuilder, x: Value, arrays: tuple[Value | None, ...],
    initial: tuple[Value | None, ...], hidden: int, direction: str, lengths: Value | None = None,
    **options: Any,
) -> list[Value]:  # fmt: skip
    """The outputs, of both directions side by side, and the states in the end.

    Sequences of several lengths are packed for the module.
    """
    w, r, b, *_ = arrays
    assert w is not None and r is not None
    ways = 2 if direction == "bidirectional" else 1
    width = r.static_shape[2]
    states = [v for v in initial if v is not None]
    if op == "LSTM" and len(states) == 1:
        hidden_state, cell = (*initial, None)[:2]
        states = [t[".new_zeros"](x, (ways, t.size(x, 1), size)) if v is None else v
                  for v, size in ((hidden_state, width), (cell, hidden))]  # fmt: skip
    backwards = direction == "reverse"
    x_read = set_type(t.torch.flip(x, (0,)), x.dtype, x.shape) if backwards else x
    if lengths is not None:
        counts = t[".to"](lengths, "cpu", DType.INT64)
        x_read = t[PACK](x, counts, enforce_sorted=False)
    call: list[Any] = [x_read]
    if states:
        call.append(tuple(states) if op == "LSTM" else states[0])
    y, *last = t.module(
        f"nn.{op}", (), (w.static_shape[2], hidden), outputs=3 if op == "LSTM" else 2,
        parameters=dict(_list_arrays(op, t, arrays, hidden, ways)), call=call,
        bias=None if b is not None else False, bidirectional=True if ways == 2 else None, **options,
    )  # fmt: skip
    if lengths is not None:
        y, _ = t[PAD](y, total_length=t.size(x, 0), outputs=2)
    set_type(y, x.dtype, (*(x.shape or (None,) * 3)[:2], ways * width))
    return [t.torch.flip(y, (0,)) if backwards else y, *last]


def _list_arrays(
    op: str, t: TorchBuilder, arrays: tuple[Value | None, ...], hidden: int, ways: int
) -> Iterator[tuple[str, Value]]:
    """The arrays of a layer by PyTorch's names."""
    w, r, b, projection = (*arrays, None)[:4]
    assert w is not None and r is not None
    gates = GATES[op]
    count = len(gates)
    for way in range(ways):
        suffix = "l0_reverse" if way else "l0"
        for name, array in (("ih", w), ("hh", r)):
            shape = (count * hidden, array.static_shape[2])
            change = _reorder(gates, hidden, way)
            begin = way * math.prod(shape)
            yield f"weight_{name}_{suffix}", derive(t, array, change, shape, begin)
        for at, name in enumerate(("ih", "hh") if b is not None else ()):
            assert b is not None
            change = _reorder(gates, hidden, way, at * count * hidden)
            begin = (2 * way + at) * count * hidden
            yield f"bias_{name}_{suffix}", derive(t, b, change, (count * hidden,), begin)
        if projection is not None:
            rows = projection.static_shape[1:]
            begin = way * math.prod(rows)
            yield f"weight_hr_{suffix}", derive(t, projection, itemgetter(way), rows, begin)


def _reorder(
    gates: tuple[int, ...], hidden: int, way: int, start: int = 0
) -> Callable[[np.ndarray], np.ndarray]:  # type: ignore[type-arg]
    """Rows of one direction, gate by gate in PyTorch's order."""

    def change(array: np.ndarray) -> np.ndarray:  # type: ignore[type-arg]
        rows = array[way][start : start + len(gates) * hidden]
        parts = [rows[g * hidden : (g + 1) * hidden] for g in gates]
        require(
            all(len(p) == hidden for p in parts), "a recurrent layer whose arrays are too short"
        )
        return np.concatenate(parts)

    return change
