"""Inputs of written symbols as they are inferred, and operators that tell of them."""

from __future__ import annotations

from typing import Any

import numpy as np

from serde.formats.mxnet.bind.bind_params import bind_params
from serde.formats.mxnet.infer_shapes.infer_inputs import complete_inputs
from serde.formats.mxnet.io.params import parse_params
from serde.formats.mxnet.io.symbol_json import parse_symbol
from serde.formats.mxnet.passes.drop_labels import drop_labels
from serde.ir.printer import show_value
from serde.passes.cut_inputs import with_inputs
from testing.mxnet.written import node, params_bytes, symbol, variable

CONV = ("Convolution", {"kernel": "(3, 3)", "num_filter": 4})
CONV_WEIGHTS = {"convolution{}_weight": (4, 3, 3, 3), "convolution{}_bias": (4,)}
FC = ("FullyConnected", {"num_hidden": 4})
FC_LAST = ("FullyConnected", {"num_hidden": 4, "flatten": False})
FC_WEIGHTS = {"fullyconnected{}_weight": (4, 6), "fullyconnected{}_bias": (4,)}
LSTM = ("RNN", {"state_size": 5, "num_layers": 2, "mode": "lstm", "bidirectional": True})
LSTM_SIZE = 2 * (4 * 5 * (6 + 5) + 4 * 5 * (10 + 5)) + 2 * 2 * 2 * 4 * 5
EMBEDDING = ("Embedding", {"input_dim": 9, "output_dim": 6})
RELU = ("Activation", {"act_type": "relu"})


def weights(shapes: dict[str, tuple[int, ...]], number: int = 0, dtype: str = "float32"):
    return {n.format(number): np.ones(s, dtype) for n, s in shapes.items()}


def infer_inputs(text: str, arrays: Any = None, **inputs: Any) -> str:
    """The inputs of a symbol, but for labels, as they are printed."""
    symbol = parse_symbol(text)
    graph = bind_params(
        symbol, parse_params(params_bytes(arrays or {}), "m.params"), "m", searched=""
    )
    graph = drop_labels(with_inputs(graph, inputs))
    inputs_ = complete_inputs(graph, symbol.variables).inputs
    return ", ".join(show_value(v)[1:] for v in inputs_ if v.shape is not None)


def two(op: str, *after: Any, other: str = "mean", **attrs: Any) -> str:
    """A symbol of an operator of ``data`` and another, and then a convolution or so."""
    text = [variable("data"), variable(other), node(op, "both", [0, 1], **attrs)]
    for number, (name, options) in enumerate(after):
        text.append(node(name, f"after{number}", [len(text) - 1], **options))
    return symbol(text)
