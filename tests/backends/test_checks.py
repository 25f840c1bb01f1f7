"""What a vendor's function gets and gives is compared with the manifest, part by part."""

from __future__ import annotations

import sys

import numpy as np
import onnx
import pytest

import serde
from serde.backends.checks import check_finite, check_values
from serde.backends.manifest import PartInfo, TensorInfo
from serde.backends.runner import Hybrid
from serde.errors import SerdeError
from serde.legalize.target import Target

PART = PartInfo("p", "accelerator")
WRONG = [
    (np.zeros((2, 3), np.float64), "part 'p': 'v' is of float64. Make it float32"),
    (np.zeros((2,), np.float32), "part 'p': 'v' has the shape [2]. Make it [N, 3]"),
    (np.zeros((2, 4), np.float32), "part 'p': 'v' has the shape [2, 4]. Make it [N, 3]"),
    ([[1.0]], "part 'p': 'v' is a list. Give an array"),
]


@pytest.mark.parametrize("value, message", WRONG)
def test_other_values_are_refused(value, message):
    with pytest.raises(SerdeError) as error:
        check_values(PART, [TensorInfo("v", "float32", ["N", 3])], [value])
    assert str(error.value) == message


def test_sizes_by_name_and_sequences_are_any():
    infos = [TensorInfo("v", "float32", ["N", 3]), TensorInfo("s", "float32", None, ["sequence"])]
    check_values(PART, infos, [np.zeros((5, 3), np.float32), []])


def test_results_that_are_not_finite_are_counted():
    array = np.array([np.nan, 1, -np.inf], np.float32)
    for value in (array, array.astype("bfloat16"), [np.ones(2, np.float32), array]):
        with pytest.raises(SerdeError, match="it: 2 of the 3 elements of its result 'v' are not"):
            check_finite("it", {"v": value})
    check_finite("it", {"v": np.ones(3, np.float32), "n": np.ones(2, np.int64), "s": ["a"]})


@pytest.fixture
def folder(tmp_path):
    onnx.save(onnx.parser.parse_model(
        '<ir_version: 8, opset_import: ["": 17]> g (float[2] x) => (float[2] y) '
        "{ a = Relu(x) b = Sin(a) y = Relu(b) }"
    ), tmp_path / "m.onnx")  # fmt: skip
    serde.partition(tmp_path / "m.onnx", Target("t", 17, {"Relu": {}})).save(tmp_path / "parts")
    return tmp_path / "parts"


def load_relu(path):
    return lambda feeds: [np.maximum(v, 0) for v in feeds.values()]


def test_each_part_is_timed(folder):
    model = Hybrid(folder, {"accelerator": load_relu})
    model({"x": np.float32([1, -1])})
    assert model.seconds.keys() == {"accelerator_0", "remainder_0", "accelerator_1"}
    assert all(s > 0 for s in model.seconds.values())


def fail(path):
    def run(feeds):
        raise ZeroDivisionError("no driver")

    return run


def end(path):
    return lambda feeds: sys.exit("no licence")


@pytest.mark.parametrize("load, message", [
    (fail, "part 'accelerator_0': its runtime failed with ZeroDivisionError: no driver"),
    (end, f"part 'accelerator_0': {__file__}, line {end.__code__.co_firstlineno + 1}: the code exits "
          "with SystemExit('no licence'). Let it return, or raise an error"),
    (lambda path: 1 / 0, "part 'accelerator_0': its runtime cannot load it: ZeroDivisionError: "
                          "division by zero"),
    (lambda path: lambda feeds: {"z": 1}, "part 'accelerator_0': its runtime gives no 'a'; it "
                                          "gives 'z'"),
    (lambda path: lambda feeds: 1.0, "part 'accelerator_0': its runtime gives a float. Return a "
                                     "list, or arrays by name"),
    (lambda path: lambda feeds: [np.zeros(2)], "part 'accelerator_0': 'a' is of float64. Make it "
                                               "float32"),
])  # fmt: skip
def test_the_part_at_fault_is_named(folder, load, message):
    with pytest.raises(SerdeError) as error:
        Hybrid(folder, {"accelerator": load})({"x": np.float32([1, -1])})
    assert str(error.value) == message


def test_infinities_are_refused_where_they_arise(folder):
    def load_infinite(path):
        return lambda feeds: [np.full(2, np.inf, np.float32)]

    with pytest.raises(SerdeError, match="part 'accelerator_0': 2 of the 2 elements"):
        Hybrid(folder, {"accelerator": load_infinite}, finite=True)({"x": np.float32([1, -1])})


@pytest.mark.parametrize("by_name", [True, False])
def test_a_runtime_may_use_its_memory_again(tmp_path, by_name):
    """Results of before stay what they were: of turns of a loop, and of whole runs."""
    text = """<ir_version: 8, opset_import: ["": 17]> g (float[2] x) => (float[3,2] y) {
        m = Constant<value_int = 3>() s, y = Loop (m, , x) <body = turn (int64 i, bool k,
        float[2] u) => (bool l, float[2] v, float[2] w) {
            l = Identity(k) v = Add(u, u) w = Relu(v) }>
    }"""
    onnx.save(onnx.parser.parse_model(text), tmp_path / "m.onnx")
    backend = Target("t", 17, {"Relu": {}})
    serde.partition(tmp_path / "m.onnx", backend, control_flow="inside").save(tmp_path / "parts")
    memory = np.zeros(2, np.float32)

    def load(path):
        def run(feeds):
            (x,) = feeds.values()
            np.maximum(x, 0, out=memory)
            return {"w": memory} if by_name else [memory]

        return run

    model, x = Hybrid(tmp_path / "parts", {"accelerator": load}), np.float32([1, -1])
    first = model({"x": x})["y"]
    model({"x": 5 * x})
    np.testing.assert_array_equal(first, [[2, 0], [4, 0], [8, 0]])


@pytest.mark.parametrize(
    "nodes", ["a = Relu(x) y = Sub(a, x)", "n = Neg(x) a = Relu(n) y = Sub(a, n)"]
)
def test_a_runtime_may_write_into_what_it_is_given(tmp_path, nodes):
    """Neither the caller's arrays change, nor the values that other parts read."""
    text = f'<ir_version: 8, opset_import: ["": 17]> g (float[2] x) => (float[2] y) {{ {nodes} }}'
    onnx.save(onnx.parser.parse_model(text), tmp_path / "m.onnx")
    serde.partition(tmp_path / "m.onnx", Target("t", 17, {"Relu": {}})).save(tmp_path / "parts")

    def load(path):
        return lambda feeds: [np.maximum(v, 0, out=v) for v in feeds.values()]

    x = np.float32([1, -1])
    expected = serde.run(tmp_path / "m.onnx", {"x": x})
    outputs = Hybrid(tmp_path / "parts", {"accelerator": load})({"x": x})
    np.testing.assert_array_equal(x, [1, -1])
    np.testing.assert_array_equal(outputs["y"], expected["y"])
