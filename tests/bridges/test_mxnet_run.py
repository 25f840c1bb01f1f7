"""MXNet run on the arrays that a conversion bound, for ``--verify``."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

import serde
from serde.bridges import mxnet as bridge
from serde.errors import SerdeError
from testing.mxnet.written import params_bytes
from testing.mxnet_live import live_mxnet, run_symbol

RNG = np.random.default_rng(6)


def array(*shape: int) -> np.ndarray:
    return RNG.uniform(-1, 1, shape).astype("float32")


def network(s) -> Any:
    x = s.Activation(s.FullyConnected(s.var("data"), num_hidden=4, name="a"), act_type="tanh")
    x = s.broadcast_add(x, s.var("shift"))
    return s.SoftmaxOutput(s.FullyConnected(x, num_hidden=3, name="b"), name="softmax")


ARRAYS = {
    "a_weight": array(4, 5), "a_bias": array(4), "b_weight": array(3, 4), "b_bias": array(3),
    "shift": array(1, 4),
}  # fmt: skip
BLOCK = {  # the names of save_parameters, in another order of use
    "shift": ARRAYS["shift"],
    **{n.replace("_", "."): a for n, a in ARRAYS.items() if n != "shift"},
}
WHOLE = {**ARRAYS, "data": array(6, 5), "softmax_label": array(6)}
HALF = {n: a.astype("float16") for n, a in ARRAYS.items()}
LIST = [a for n, a in ARRAYS.items() if n != "shift"]
SHAPE = {"data": (2, 5)}
# What the file holds; the options a conversion reads it with.
READING: dict[str, tuple[Any, dict[str, Any]]] = {
    "plain": (ARRAYS, {}),
    "a mapping": (None, {"params": ARRAYS}),
    "matched": (BLOCK, {"match_params": True}),
    "matched up to a layer": (BLOCK, {"match_params": True, "outputs": ["a"]}),
    "matched, one input fixed": (BLOCK, {"match_params": True, "set_inputs": {"data": array(2, 5)}}),
    "without names": (LIST, {"inputs": {**SHAPE, "shift": (1, 4)}}),
    "saved whole, without names": (
        [WHOLE[n] for n in ("data", "a_weight", "a_bias", "shift", "b_weight", "b_bias",
                            "softmax_label")], {},
    ),
    "saved whole": (WHOLE, {}),
    "saved whole, of any batch": (WHOLE, {"inputs": {"data": ("N", 5)}}),
    "saved whole, begun at the data": (WHOLE, {"cut_inputs": ["data"]}),
    "saved whole, fixed": (WHOLE, {"set_inputs": {"data": array(2, 5)}}),
    "begun in the middle": (ARRAYS, {"cut_inputs": ["a"]}),
    "a part": (ARRAYS, {"cut_inputs": ["a_output"], "outputs": ["b"]}),
    "up to a layer": (ARRAYS, {"outputs": ["b"]}),
    "a weight as an input": (ARRAYS, {"inputs": {**SHAPE, "shift": (1, 4)}}),
    "more arrays": ({**ARRAYS, "b_weights": array(1)}, {"ignore_extra": True}),
    "in other bits": (HALF, {"inputs": {"data": ((2, 5), "float32")}}),
    "float32 of half": (HALF, {"fp32": True, "inputs": {"data": ((2, 5), "float32")}}),
    "renamed": (WHOLE, {"rename": {"data": "image"}}),
    "plain kernels": (BLOCK, {"match_params": True, "kernels": "plain"}),
}  # fmt: skip


def save(folder, arrays: Any) -> str:
    network(live_mxnet().sym).save(str(folder / "m-symbol.json"))
    if arrays is not None:
        (folder / "m-0000.params").write_bytes(params_bytes(arrays))
    return str(folder / "m-symbol.json")


@pytest.mark.parametrize("name", READING)
def test_the_reference_has_the_arrays_of_the_conversion(name: str, tmp_path) -> None:
    arrays, options = READING[name]
    path = save(tmp_path, arrays)
    report = serde.convert(
        path, tmp_path / "m.onnx", verify=True, **{"inputs": SHAPE, **options}
    )  # fmt: skip
    assert report.verification.done, report.verification.statement
    assert report.ok and report.verification.outputs


def test_a_missing_parameter_is_not_zeros(tmp_path) -> None:
    arrays = {n: a for n, a in ARRAYS.items() if n != "b_weight"}
    path = save(tmp_path, arrays)
    feeds = {"data": array(2, 5)}
    with pytest.raises(SerdeError, match="'b_weight' has no array. Give it among"):
        bridge.run(path, feeds)
    (got,) = bridge.run(path, {**feeds, "b_weight": ARRAYS["b_weight"]})
    (expected,) = run_symbol(
        network(live_mxnet().sym).tojson(), ARRAYS, {**feeds, "softmax_label": array(2)}
    )
    assert np.array_equal(got, expected)


def test_begun_at_one_of_several_outputs(tmp_path) -> None:
    s = live_mxnet().sym
    parts = s.split(
        s.FullyConnected(s.var("data"), num_hidden=4, name="a"), num_outputs=2, name="p"
    )
    symbol = s.Group([parts[0] * 2 + parts[1], parts[1]])
    half = array(2, 2)
    feeds = {"p_output0": array(2, 2), "p_output1": half}
    first, second = bridge.run(
        symbol, feeds, params=ARRAYS, cut_inputs=["p_output0", "p_output1"]
    )  # fmt: skip
    assert np.allclose(first, feeds["p_output0"] * 2 + half) and np.array_equal(second, half)
