"""Operators, read and run in ONNX Runtime, compute what LiteRT does."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest

import serde
from serde.bridges.litert import LitertWorker
from serde.errors import Unconvertible
from serde.formats.tflite.to_ir import reads
from serde.ir.graph import DType
from testing.pt2.run import compare, run_onnx
from testing.tflite.cases import as_feeds, c, case, f, i, list_cases, q, w
from testing.tflite.models import Case, Operand, build, write
from testing.tflite.whole_models import make_branch, make_loop, make_variable
from tests.tflite.litert_live import why_not

needs_litert = pytest.mark.skipif(bool(why_not()), reason=why_not() or "there is one")
CASES = list_cases()
TOLERANCE, STEPS = 1e-5, 1  # of floats, of their largest; of integers that stand for numbers


@pytest.fixture(scope="module")
def worker() -> LitertWorker:
    """One process for all files."""
    return LitertWorker()


def write_case(case: Case, folder: Path) -> Path:
    path = folder / "m.tflite"
    path.write_bytes(write(build(case)))
    return path


def differs(expected, got) -> str:
    """How outputs differ, or nothing."""
    if expected.dtype.kind not in "iu" or expected.dtype.itemsize > 2:
        return compare(got, expected, TOLERANCE)
    if (expected.shape, expected.dtype) != (got.shape, got.dtype):
        return f"{got.dtype}{got.shape}, not {expected.dtype}{expected.shape}"
    steps = np.abs(expected.astype(int) - got)
    return f"differs by {steps.max()} steps" if steps.max() > STEPS else ""


@needs_litert
@pytest.mark.parametrize("case", CASES, ids=[f"{k}-{c.op}" for k, c in enumerate(CASES)])
def test_an_operator_computes_what_litert_does(case, worker, tmp_path: Path) -> None:
    path = write_case(case, tmp_path)
    expected = worker.run(str(path), case.feeds(), delegates=False)
    serde.save(serde.load(path), tmp_path / "m.onnx")
    got = run_onnx(tmp_path / "m.onnx", as_feeds(case))
    assert len(got) >= len(expected)
    assert [differs(a, b) for a, b in zip(expected, got, strict=False)] == [""] * len(expected)


def test_every_rule_is_of_an_operator_that_has_a_case_or_says_why_not() -> None:
    without = set(reads.rules) - {case.op for case in CASES}
    assert without == WITHOUT


# What models of one operator do not reach: subgraphs have tests below, others elsewhere.
CUSTOM = {
    "AudioSpectrogram", "Convolution2DTransposeBias", "Landmarks2TransformMatrix",
    "MaxPoolingWithArgmax2D", "MaxUnpooling2D", "Mfcc", "TFLite_Detection_PostProcess",
    "TransformLandmarks", "TransformTensorBilinear",
}  # fmt: skip
COMPLEX = {"RFFT2D"} | {
    f"complex.{op}" for op in "CAST COMPLEX_ABS EXPAND_DIMS IMAG REAL RESHAPE SQUEEZE".split()
}
WITHOUT = COMPLEX | CUSTOM | {"CALL", "DENSIFY", "IF", "WHILE", "STABLEHLO_COMPOSITE"}
REFUSED = {
    "random": (case("RANDOM_UNIFORM", c([2, 3])), "draws random numbers"),
    "complex": (
        case("RFFT2D", f(2, 4), c([2, 4]), to="complex64"), "of complex numbers",
    ),
    "a table": (case("HASHTABLE_LOOKUP", c([1]), c([1]), f(1)), "keeps a table of keys"),
    "no scale": (case("TANH", i(2, 3, dtype="int8")), "has no scale"),
    "a scale of 0": (case("TANH", q(2, 3, scale=0.0)), "not positive"),
    "both ways": (
        case("RESIZE_BILINEAR", f(1, 4, 5, 2), c([7, 3]), align_corners=True,
             half_pixel_centers=True),
        "align_corners and half_pixel_centers",
    ),
    "no stride": (case("AVERAGE_POOL_2D", f(1, 4, 5, 2)), "Give numbers above 0"),
    "blocks": (case("FULLY_CONNECTED", f(1, 4), w(2, 4), weights_format=1), "shuffled blocks"),
    "an unknown kind": (case("ADD", f(3), f(3), fused_activation_function=5), "fused activation 5"),
}  # fmt: skip


@pytest.mark.parametrize("name", REFUSED)
def test_what_cannot_be_read_is_refused(name, tmp_path: Path) -> None:
    case, reason = REFUSED[name]
    with pytest.raises(Unconvertible, match=reason):
        serde.load(write_case(case, tmp_path))


def test_a_custom_operator_is_refused_by_its_name(tmp_path: Path) -> None:
    model = build(case("ADD", f(3), f(3)))
    model["operator_codes"] = [{"builtin_code": 32, "custom_code": "Landmarks"}]
    model["subgraphs"][0]["operators"][0] = {"inputs": [0, 1], "outputs": [2]}
    (tmp_path / "m.tflite").write_bytes(write(model))
    with pytest.raises(Unconvertible, match="'Landmarks' is a custom operator"):
        serde.load(tmp_path / "m.tflite")

    def add(g, x, y):
        return g.Add(x, y)

    graph = serde.load(tmp_path / "m.tflite", rules={"Landmarks": add})
    assert [n.op for n in graph.nodes] == ["Add"]


OPEN = {
    "BATCH_TO_SPACE_ND": [(8, 3, 4, 2), (16, 5, 1, 2)],
    "SPACE_TO_BATCH_ND": [(1, 3, 5, 2), (2, 5, 3, 2)],
}


@needs_litert
@pytest.mark.parametrize("is_constant", [True, False])
@pytest.mark.parametrize("op", OPEN)
def test_blocks_of_open_sizes_are_read(op, is_constant, worker, tmp_path: Path) -> None:
    ends = Operand(np.array([[1, 0], [0, 1]], np.int32), is_constant)
    first = Operand(f(*OPEN[op][0]).array, signature=(-1, -1, -1, 2))
    path = write_case(case(op, first, c([2, 2]), ends), tmp_path)
    serde.save(serde.load(path), tmp_path / "m.onnx")
    for shape in OPEN[op]:
        feeds = [f(*shape).array, *([] if is_constant else [ends.array])]
        expected = worker.run(str(path), feeds, delegates=False)
        got = run_onnx(tmp_path / "m.onnx", feeds)
        assert [differs(a, b) for a, b in zip(expected, got, strict=True)] == [""]


@needs_litert
@pytest.mark.parametrize("condition", [True, False])
def test_branches_are_read(condition, worker, tmp_path: Path) -> None:
    inputs = [Operand(np.asarray(condition)), f(3), f(3)]
    compare_model(make_branch(inputs), [v.array for v in inputs], worker, tmp_path)


@needs_litert
def test_loops_are_read(worker, tmp_path: Path) -> None:
    first = Operand(np.asarray(1.5, np.float32))
    compare_model(make_loop(first), [first.array], worker, tmp_path)


@needs_litert
@pytest.mark.parametrize("is_changed", [True, False])
def test_variables_by_name_are_read(is_changed, worker, tmp_path: Path) -> None:
    (tmp_path / "m.tflite").write_bytes(write(make_variable(is_changed)))
    graph = serde.load(tmp_path / "m.tflite")
    assert [v.name for v in graph.inputs] == (["x", "count"] if is_changed else ["x"])
    assert ["feed 2.0 at first" in note for note in graph.notes] == [True] * is_changed
    serde.save(graph, tmp_path / "m.onnx")
    state = [np.full(3, 2, np.float32)] * is_changed
    loaded = worker.load(path=str(tmp_path / "m.tflite"), delegates=False)  # keeps its variables
    for x in (f(3).array, f(3).array):
        ((expected,), _) = worker.time_runs(loaded, [x])
        got, *state = run_onnx(tmp_path / "m.onnx", [x, *state])
        np.testing.assert_allclose(got, expected, 1e-6)


@needs_litert
def test_variables_of_integers_keep_their_scale(worker, tmp_path: Path) -> None:
    scales = {"x": 0.02, **dict.fromkeys(("first", "v", "z"), 0.05)}
    (tmp_path / "m.tflite").write_bytes(write(make_variable(True, scales)))
    graph = serde.load(tmp_path / "m.tflite")
    assert [v.dtype for v in (*graph.inputs, *graph.outputs)] == [DType.INT8] * 4
    serde.save(graph, tmp_path / "m.onnx")
    state = [np.full(3, 2, np.int8)]
    loaded = worker.load(path=str(tmp_path / "m.tflite"), delegates=False)
    for x in np.int8([[90, -50, 7], [33, -128, 127], [5, 6, -7]]):
        ((expected,), _) = worker.time_runs(loaded, [x])
        got, *state = run_onnx(tmp_path / "m.onnx", [x, *state])
        np.testing.assert_array_equal(got, expected)


def test_variables_of_several_scales_are_refused(tmp_path: Path) -> None:
    scales = {"x": 0.02, "first": 0.05, "v": 0.05, "z": 0.04}
    (tmp_path / "m.tflite").write_bytes(write(make_variable(True, scales)))
    with pytest.raises(Unconvertible, match="keeps a variable by name"):
        serde.load(tmp_path / "m.tflite")


def compare_model(model, feeds, worker, folder: Path) -> None:
    path = folder / "m.tflite"
    path.write_bytes(write(model))
    expected = worker.run(str(path), feeds, delegates=False)
    serde.save(serde.load(path), folder / "m.onnx")
    got = run_onnx(folder / "m.onnx", feeds)
    assert [differs(a, b) for a, b in zip(expected, got, strict=True)] == [""] * len(expected)
