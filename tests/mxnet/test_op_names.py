"""Names of operators and outputs, beside MXNet's own answers."""

from __future__ import annotations

import json
from functools import cache
from typing import Any

import pytest

from serde.formats.mxnet.bind.op_names import CANONICAL
from serde.formats.mxnet.io.symbol_json import parse_symbol
from testing.mxnet import written
from testing.mxnet_live import live_mxnet, registered_ops, symbol_of

# Attributes that operators ask for, with a value that will do, by name.
SOME: dict[str, Any] = {
    "kernel": "(1,1)", "num_filter": 1, "num_hidden": 1, "act_type": "relu", "shape": "(1,)",
    "axis": 0, "dtype": "float32", "num_outputs": 3, "state_size": 2, "num_layers": 1,
    "mode": "lstm", "pool_type": "max", "scalar": 1, "p": 0.5, "nsize": 3, "reps": "(2,)",
    "repeats": 2, "begin": "(0,)", "end": "(1,)", "a_min": 0, "a_max": 1, "depth": 3,
    "input_dim": 3, "output_dim": 3, "dim": 0, "num_args": 2, "heads": 1, "indices": "(1,)",
    "sample_type": "nearest", "scale": 2, "transform_type": "affine", "key": "a",
    "pad_width": "(0,0,0,0,1,1,1,1)", "threshold": 0.1, "spatial_scale": 1, "size": "(1,)",
    "pooled_size": "(1,1)", "sampler_type": "bilinear", "block_size": 2, "N": 2, "value": 1,
    "start": 0, "stype": "default", "num": 2, "high": 1, "low": 0, "loc": 0, "stop": 1,
}  # fmt: skip
CASES = [  # operators whose outputs depend on their attributes
    ("SliceChannel", {"num_outputs": 1}),
    ("SliceChannel", {"num_outputs": 3}),
    ("_split_v2", {"indices": "(1,)", "sections": 0}),
    ("_split_v2", {"indices": "(0, 1)", "sections": 0}),
    ("_split_v2", {"indices": "(0, 1, 2)"}),
    ("_split_v2", {"indices": "()", "sections": 1}),
    ("_split_v2", {"indices": "()", "sections": 3}),
    ("amp_multicast", {"num_outputs": 1}),
    ("amp_multicast", {"num_outputs": 2}),
    ("topk", {}),
    *(("topk", {"ret_typ": kind}) for kind in ("value", "indices", "mask", "both")),
    *((op, {"output_mean_var": True}) for op in ("BatchNorm", "LayerNorm", "GroupNorm")),
    ("RNN", {"state_size": 2, "num_layers": 1, "mode": "lstm", "state_outputs": True}),
    ("RNN", {"state_size": 2, "num_layers": 1, "mode": "gru", "state_outputs": True}),
    ("RNN", {"state_size": 2, "num_layers": 1, "mode": "gru"}),
    ("_contrib_Proposal", {"output_score": True}),
    ("_contrib_Proposal", {}),
    ("Pooling", {"kernel": "(2, 2)"}),
    ("Dropout", {}),
]


# Operators that are no layer of a model; some of them crash MXNet without a function of their own.
NOT_LAYERS = ("backward", "_Native", "_NDArray", "_CachedOp", "Custom", "_FusedOp", "_NoGradient",
              "_subgraph", "_sg_")  # fmt: skip


def check(op: str, attrs: dict[str, Any]) -> None:
    """Compare the names of all visible outputs, and of the first where only that is read."""
    mx = live_mxnet()
    for outputs in (None, 1):
        text = symbol_of(op, 0, attrs, outputs=outputs)
        expected = mx.sym.load_json(text).list_outputs()
        assert not expected or [v.name for v in parse_symbol(text).graph.outputs] == expected


@pytest.mark.parametrize(("op", "attrs"), CASES, ids=str)
def test_outputs_by_attributes(op: str, attrs: dict[str, Any]) -> None:
    check(op, attrs)


@cache
def _find_attrs() -> dict[str, dict[str, Any]]:
    """Attributes that will do, by operator, for those the table above has them for."""
    mx, by_op = live_mxnet(), {}
    for op in registered_ops():
        if any(part in op for part in NOT_LAYERS):
            continue
        attrs: dict[str, Any] = {}
        for _ in range(6):
            try:
                mx.sym.load_json(written.symbol([written.node(op, "op", [], **attrs)]))
            except mx.MXNetError as error:
                missing = str(error).partition("Required parameter ")[2].partition(" ")[0]
                if missing not in SOME or missing in attrs:
                    break
                attrs[missing] = SOME[missing]
            else:
                by_op[op] = attrs
                break
    return by_op


def test_outputs_of_every_operator() -> None:
    wrong = []
    for op, attrs in _find_attrs().items():
        try:
            check(op, attrs)
        except AssertionError as error:
            wrong.append(f"{op}: {error}")
    assert wrong == [] and len(_find_attrs()) > 600


def test_aliases() -> None:
    """Every second name stands for the operator MXNet saves in its place."""
    mx = live_mxnet()
    saved = {}
    for op, attrs in _find_attrs().items():
        text = written.symbol([written.node(op, "op", [], **attrs)])
        nodes = json.loads(mx.sym.load_json(text).tojson())["nodes"]
        saved[op] = next(n["op"] for n in nodes if n["name"] == "op")
    assert {op: name for op, name in saved.items() if name != CANONICAL.get(op, op)} == {}
    assert len([op for op, name in saved.items() if op != name]) > 200
