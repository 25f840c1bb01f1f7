"""``cond``, ``while_loop`` and ``scan``, sizes by name, and what a trace refuses."""

from __future__ import annotations

import json
import math
import operator

import numpy as np
import onnx
import pytest

import serde
from serde.errors import SerdeError
from tests.frontends.tracing import compare

X = np.random.default_rng(3).normal(size=(4, 3)).astype("f4")
HALF = np.float32(0.5)
BUFFER = np.zeros((4, 3), np.float32)


def square_root(x):
    y = np.abs(x) + 1
    return serde.while_loop(
        lambda s: np.max(np.abs(s[0] * s[0] - y)) > 1e-3,
        lambda s: ((s[0] + y / s[0]) / 2, s[1] + 1),
        (y, np.int64(0)),
    )


def relu_in_branches(x):
    def step(state, row):
        return serde.cond(row.sum() > 0, lambda s: s + row, lambda s: s * HALF, state), state

    return serde.scan(step, np.zeros(3, np.float32), x)


LOOPS = {
    "cond": lambda x: serde.cond(x.sum() > 0, lambda v: v * 2, lambda v: v - 1, x),
    "several": lambda x: serde.cond(
        x.sum() < 0, lambda v: (v * 2, v.sum(0)), lambda v: (v, v[0]), x
    ),
    "captured": lambda x: serde.cond(x.sum() < 0, lambda: x * 2, lambda: np.zeros_like(x)),
    "while_loop": square_root,
    "growing": lambda x: serde.while_loop(
        lambda s: s.shape[0] < 20, lambda s: np.concatenate([s, s]), x
    ),
    "scan": lambda x: serde.scan(lambda s, e: (s * HALF + e, s.sum()), np.zeros(3, np.float32), x),
    "reverse": lambda x: serde.scan(lambda s, e: (s * HALF + e, s), x[0], x, reverse=True),
    "length": lambda x: serde.scan(lambda s, e: (s + x[0], s), x[1], length=x.shape[0]),
    "nested": relu_in_branches,
}


@pytest.mark.parametrize("names", [None, {4: "N"}], ids=["static", "named"])
@pytest.mark.parametrize("case", LOOPS)
def test_loops(case, names, tmp_path):
    compare(LOOPS[case], X, path=tmp_path / "m.onnx", names=names)


def test_python_loops_unroll(tmp_path):
    def run(x):
        total = np.zeros(3, np.float32)
        for row in x:
            total = total * HALF + row
        return total

    compare(run, X, path=tmp_path / "m.onnx")


def sizes(x):
    n, half = len(x), x.shape[0] // 2
    middle = int(n * 0.5 + 0.5)
    return (np.zeros((int(n * 1.5), 2)), np.ones(n), np.arange(max(n // 2, 1)), x[:middle],
            x.reshape(half, 2, 3), np.full((n - 1, 1), 3), np.eye(n), np.asarray([n, half]),
            x.size, math.ceil(n / 3), n % 3, np.float32(2) * n, x * (1 / n), n == n)  # fmt: skip


def test_sizes_by_name_are_numbers(tmp_path):
    graph = compare(sizes, X, path=tmp_path / "m.onnx", names={4: "N"})
    assert graph.outputs[4].shape == ("N/2", 2, 3)


def leak_to_numpy(x):
    import numpy  # not the module's name: no stand-in

    return numpy.asarray(x)


def write_outer(x):
    y = x * 1

    def body(state):
        y[0] = 1
        return state + y

    return serde.while_loop(lambda s: s.sum() < 3, body, x)


REFUSED = {
    "float": (lambda x: float(x.sum()), "the values are known when the model runs"),
    "asarray": (leak_to_numpy, "np.asarray"),
    "if": (lambda x: x if x.sum() > 0 else -x, "serde.cond, serde.while_loop or serde.scan"),
    "size": (lambda x: x if x.shape[0] > 3 else -x, "known when the model runs"),
    "range": (lambda x: [x[i] for i in range(x.shape[0])], "the size N is known"),
    "iteration": (lambda x: list(x), "The first size has no number"),
    "input": (lambda x: operator.setitem(x, 0, 1) or x, "the caller's own.*x.copy()"),
    "svd": (lambda x: np.linalg.svd(x), r"\(np.linalg.svd\): this function cannot be traced"),
    "random": (lambda x: np.random.default_rng(0).permutation(x), "np.asarray|iteration|len"),
    "complex": (lambda x: x.astype(complex), "element type complex128"),
    "view": (lambda x: x.view(np.int32), "cannot be read as another type"),
    "result": (lambda x: "text", "the result output is a str"),
    "branches": (lambda x: serde.cond(x[0, 0] > 0, lambda: x, lambda: x[0]), "branches return"),
    "outer": (write_outer, "made outside of this branch or loop body"),
    "method": (lambda x: x.tobytes(), "ndarray.tobytes"),
    "math": (lambda x: math.sqrt(x[0, 0]), r"\(float\)"),
    "format": (lambda x: f"{x[0, 0]:.2f}", "unsupported format string"),
    "C extension": (lambda x: x.__array_interface__, "has no __array_interface__: the values are"),
    "buffer": (lambda x: np.frombuffer(x), "bytes-like object is required, not 'TracedArray'"),
    "library of Python": (lambda x: json.dumps(x), "TracedArray is not JSON serializable"),
    "vectorize": (lambda x: np.vectorize(math.sqrt)(x), "np.asarray"),
    "file": (lambda x: np.save("x.npy", x), "np.save.*cannot be traced"),
    "list": (lambda x: [1, 2, 3][x[0, 0].astype(int)], r"\(index\).*np.take"),
    "Python's sum": (lambda x: sum(x), r"\(iteration\)"),
    "repetition": (lambda x: [0] * x.shape[0], "repetition of a list"),
    "number of parts": (lambda x: np.split(x, x.shape[0]), "number of parts has to be a number"),
    "rank": (lambda x: x.reshape(x[:, 0].astype(int)), r"\(iteration\)"),
    "in place": (lambda x: x.__iadd__(1), "the caller's own.*x.copy()"),
    "sorted in place": (lambda x: x.sort(), "the caller's own.*x.copy()"),
    "out=": (lambda x: np.add(x, 1, out=x), "the caller's own.*x.copy()"),
    "view of the input": (lambda x: x[0].fill(1), "the caller's own.*x.copy()"),
    "random shape": (lambda x: np.random.normal(size=x.shape), "the size N is known when"),
    "ufunc": (lambda x: np.spacing(x), r"\(np.spacing\): this ufunc cannot be traced"),
    "object": (lambda x: x.astype(object), "element type object"),
    "installed package": (lambda x: onnx.numpy_helper.from_array(x), "the size N is known when"),
    "own mistake": (lambda x: x.shap, "has no attribute 'shap'"),
    "local": (lambda x: np.add(x, 1, out=BUFFER), "NumPy array"),
}


@pytest.mark.parametrize("case", REFUSED)
def test_refused_with_the_line(case):
    function, message = REFUSED[case]
    with pytest.raises((SerdeError, TypeError, AttributeError), match=message) as caught:
        serde.trace(function, ("N", 3))
    assert "test_control_flow.py:" in str(caught.value)


def test_numpy_errors_name_the_line():
    with pytest.raises(ValueError, match=r"broadcast together .*\(test_control_flow.py:\d+\)"):
        serde.trace(lambda x: x + np.zeros(4), (3,))


def test_nodes_have_the_line_they_came_from(tmp_path):
    graph = serde.trace(lambda x: np.sin(x) + 1, (3,))
    (sin, add) = graph.nodes
    assert sin.sources[0].op == "sin" and add.sources[0].op == "add"
    assert sin.sources[0].name.startswith("test_control_flow.py:")
    serde.save(graph, tmp_path / "m.onnx")
    node = onnx.load(tmp_path / "m.onnx").graph.node[0]
    metadata = {p.key: p.value for p in node.metadata_props}
    assert metadata["serde.source"].startswith("python sin test_control_flow.py:")
    assert str(tmp_path) not in str(metadata) and __file__ not in str(metadata)


def test_names_of_inputs_and_outputs():
    def decode(boxes, scores, threshold=0.5):
        return {"kept": boxes[scores > threshold], "best": scores.max()}

    graph = serde.trace(decode, (5, 4), scores=(5,))
    assert [v.name for v in graph.inputs] == ["boxes", "scores"]
    assert [v.name for v in graph.outputs] == ["kept", "best"]
    named = serde.trace(decode, {"scores": (5,), "boxes": (5, 4)})
    assert {v.name: v.shape for v in named.inputs} == {"boxes": (5, 4), "scores": (5,)}
    for specs, names in (
        (((5, 4), (5,)), {"boxes": (5, 4)}),
        (({"boxes": (5, 4)},), {"boxes": (5,)}),
    ):
        with pytest.raises(serde.UsageError, match="'boxes' is given twice: leave"):
            serde.trace(decode, *specs, **names)
    with pytest.raises(serde.UsageError, match=r"'boxes': 'wide' is no shape, .* give one, as \(2"):
        serde.trace(decode, "wide", (5,))
    both = serde.trace(lambda x: (x, x), (3,))
    assert [v.name for v in both.outputs] == ["output_0", "output_1"]


def test_names_of_the_module_are_put_back():
    serde.trace(lambda x: np.zeros(len(x)), ("N",))
    assert globals()["np"] is np and "len" not in globals() and np.zeros(2).shape == (2,)
    with pytest.raises(SerdeError):
        serde.trace(lambda x: float(x), (1,))
    assert type(np.ones(1)) is np.ndarray and "int" not in globals()
