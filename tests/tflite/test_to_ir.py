"""Operators, read and run in ONNX Runtime, compute what LiteRT does."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest

import serde
from serde.bridges.litert import LitertWorker
from serde.errors import Unconvertible
from serde.formats.tflite.encode import LAST_OLD_CODE
from serde.formats.tflite.io.schema import enums
from serde.formats.tflite.io.write_flatbuffer import union_number
from serde.formats.tflite.to_ir import reads
from serde.ir.graph import Tensor
from testing.pt2.run import compare, run_onnx
from testing.tflite.cases import as_feeds, c, case, f, i, list_cases, q, r, w
from testing.tflite.models import Case, Operand, build, write
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
DETECTION = "TFLite_Detection_PostProcess"
WITHOUT = {"CALL", "DENSIFY", "IF", "WHILE", "STABLEHLO_COMPOSITE", DETECTION}
REFUSED = {
    "random": (case("RANDOM_UNIFORM", c([2, 3])), "draws random numbers"),
    "complex": (case("RFFT2D", f(2, 4), c([2, 4])), "complex numbers"),
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


def call_subgraphs(op: str, options, bodies, inputs) -> dict:
    """A model whose operator runs subgraphs, which are lists of operators on named tensors."""
    model = build(case(op, *inputs, to=[r() for _ in inputs[op == "IF" :]], **options))
    codes = model["operator_codes"]
    for operators, names, outputs in bodies:
        tensors = sorted({n for _, a, b in operators for n in (*a, *b)} | {*names, *outputs})
        places = {n: k for k, n in enumerate(tensors)}
        made = []
        for kind, read, results in operators:
            code = enums()["BuiltinOperator"][kind]
            made.append({"opcode_index": len(codes), "inputs": [places[n] for n in read],
                         "outputs": [places[n] for n in results]})  # fmt: skip
            old = min(code, LAST_OLD_CODE)
            codes.append({"deprecated_builtin_code": old, "builtin_code": code, "version": 1})
        entries = [
            {"name": n, "type": enums()["TensorType"]["BOOL" if n == "go" else "FLOAT32"],
             "shape": () if n in ("go", "limit") else (3,), "has_rank": True}
            for n in tensors
        ]  # fmt: skip
        for entry in entries:
            if entry["name"] == "limit":
                entry["buffer"] = len(model["buffers"])
                model["buffers"].append({"data": Tensor.of(np.asarray(20, np.float32))})
                entry["shape"] = ()
        model["subgraphs"].append({
            "tensors": entries, "operators": made, "inputs": [places[n] for n in names],
            "outputs": [places[n] for n in outputs],
        })  # fmt: skip
    return model


ADDS = ([("ADD", ("x", "y"), ("z",))], ("x", "y"), ("z",))
SUBTRACTS = ([("SUB", ("x", "y"), ("z",))], ("x", "y"), ("z",))
SCALAR = Operand(np.asarray(1.5, np.float32))


@needs_litert
@pytest.mark.parametrize("condition", [True, False])
def test_branches_are_read(condition, worker, tmp_path: Path) -> None:
    inputs = [Operand(np.asarray(condition)), f(3), f(3)]
    options = {"then_subgraph_index": 1, "else_subgraph_index": 2}
    model = call_subgraphs("IF", options, [ADDS, SUBTRACTS], inputs)
    model["subgraphs"][0]["outputs"] = model["subgraphs"][0]["operators"][0]["outputs"] = [3]
    compare_model(model, [v.array for v in inputs], worker, tmp_path)


@needs_litert
def test_loops_are_read(worker, tmp_path: Path) -> None:
    goes_on = ([("LESS", ("x", "limit"), ("go",))], ("x",), ("go",))
    doubles = ([("ADD", ("x", "x"), ("z",))], ("x",), ("z",))
    options = {"cond_subgraph_index": 1, "body_subgraph_index": 2}
    model = call_subgraphs("WHILE", options, [goes_on, doubles], [SCALAR])
    for graph in model["subgraphs"]:
        for tensor in graph["tensors"]:
            tensor["shape"] = ()
    compare_model(model, [SCALAR.array], worker, tmp_path)


@needs_litert
@pytest.mark.parametrize("is_changed", [True, False])
def test_variables_by_name_are_read(is_changed, worker, tmp_path: Path) -> None:
    handle = [("VAR_HANDLE", (), ("h",))]
    model = call_subgraphs("CALL_ONCE", {"init_subgraph_index": 1}, [
        ([*handle, ("ASSIGN_VARIABLE", ("h", "first"), ())], (), ()),
        ([*handle, ("READ_VARIABLE", ("h",), ("v",)), ("ADD", ("x", "v"), ("z",)),
          *([("ASSIGN_VARIABLE", ("h", "z"), ())] if is_changed else [])], ("x",), ("z",)),
    ], [f(3)])  # fmt: skip
    once, (init, main) = model["subgraphs"][0]["operators"][0], model["subgraphs"][1:]
    for graph in (init, main):
        for tensor in graph["tensors"]:
            if tensor["name"] == "h":
                tensor |= {"type": enums()["TensorType"]["RESOURCE"], "shape": ()}
            elif tensor["name"] == "first":
                tensor["buffer"] = len(model["buffers"])
                model["buffers"].append({"data": Tensor.of(np.full(3, 2, np.float32))})
        handles = [o for o in graph["operators"] if not o["inputs"]]
        handles[0] |= {"builtin_options": ("VarHandleOptions", {"shared_name": "count"}),
                       "builtin_options_type": union_number("BuiltinOptions", "VarHandleOptions")}  # fmt: skip
    main["operators"].insert(0, {**once, "inputs": (), "outputs": ()})
    model["subgraphs"] = [main, init]
    (tmp_path / "m.tflite").write_bytes(write(model))
    graph = serde.load(tmp_path / "m.tflite")
    assert [v.name for v in graph.inputs] == (["x", "count"] if is_changed else ["x"])
    assert ["feed 2.0 at first" in note for note in graph.notes] == [True] * is_changed
    serde.save(graph, tmp_path / "m.onnx")
    state = [np.full(3, 2, np.float32)] * is_changed
    for x in (f(3).array, f(3).array):
        (expected,) = worker.run(str(tmp_path / "m.tflite"), [x], delegates=False)
        got, *state = run_onnx(tmp_path / "m.onnx", [x, *state])
        np.testing.assert_allclose(got, expected, 1e-6)


def compare_model(model, feeds, worker, folder: Path) -> None:
    path = folder / "m.tflite"
    path.write_bytes(write(model))
    expected = worker.run(str(path), feeds, delegates=False)
    serde.save(serde.load(path), folder / "m.onnx")
    got = run_onnx(folder / "m.onnx", feeds)
    assert [differs(a, b) for a, b in zip(expected, got, strict=True)] == [""] * len(expected)
