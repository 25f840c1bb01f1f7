"""Fourier transforms and what is computed of them are LiteRT's."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest

import serde
from serde.bridges.litert import LitertWorker
from serde.errors import Unconvertible
from serde.formats.tflite.io.schema import enums
from serde.ir.graph import Tensor
from testing.onnx_live import LEVELS, run_at
from testing.pt2.run import run_onnx
from testing.tflite.models import Case, Operand, Result, build, describe_tensor, write
from tests.tflite.litert_live import why_not

PARTS = ("COMPLEX_ABS", "IMAG", "REAL")
REALS = (*PARTS, "CAST")  # whose results are floats
needs_litert = pytest.mark.skipif(bool(why_not()), reason=why_not() or "there is one")


def make_transform(shape, lengths, steps) -> tuple[bytes, np.ndarray]:
    """A model of a transform, and of operators that each read the result before; what it is fed.

    ``steps`` are operators with the constants that they read too.
    """
    x = np.random.default_rng(3).standard_normal(shape).astype(np.float32)
    operands = [Operand(x), Operand(np.asarray(lengths, np.int32), True)]
    model = build(Case("RFFT2D", operands, [Result("complex64")]))
    (graph,) = model["subgraphs"]
    tensors, result = graph["tensors"], graph["outputs"]
    for op, numbers in steps:
        inputs = [*result]
        for array in (np.asarray(n, np.int32) for n in numbers):
            entry = describe_tensor(f"c{len(tensors)}", np.int32, Operand(array, True))
            inputs.append(len(tensors))
            tensors.append({**entry, "buffer": len(model["buffers"])})
            model["buffers"].append({"data": Tensor.of(array)})
        code, dtype = enums()["BuiltinOperator"][op], "float32" if op in REALS else "complex64"
        result = [len(tensors)]
        tensors.append(describe_tensor(f"r{len(tensors)}", dtype, Result(dtype)))
        graph["operators"].append({"opcode_index": len(model["operator_codes"]),
                                   "inputs": inputs, "outputs": result})  # fmt: skip
        model["operator_codes"].append(
            {"deprecated_builtin_code": min(code, 127), "builtin_code": code, "version": 1}
        )
    graph["outputs"] = result
    return write(model), x


@needs_litert
@pytest.mark.parametrize(("shape", "lengths"), [
    ((3, 8), [1, 8]), ((2, 1, 8), [1, 8]), ((4, 8), [4, 8]), ((2, 3, 5, 7), [4, 8]),
    ((6, 20), [4, 16]),
])  # fmt: skip
@pytest.mark.parametrize("part", PARTS)
def test_parts_of_transforms_are_litert_s(part, shape, lengths, tmp_path: Path) -> None:
    model, x = make_transform(
        shape, lengths, [("RESHAPE", [[-1, lengths[1] // 2 + 1]]), (part, [])]
    )
    (tmp_path / "m.tflite").write_bytes(model)
    (expected,) = LitertWorker().run(str(tmp_path / "m.tflite"), [x], delegates=False)
    graph = serde.load(tmp_path / "m.tflite")
    serde.save(graph, tmp_path / "m.onnx")
    for level in LEVELS:
        (got,) = run_at(level, tmp_path / "m.onnx", {graph.inputs[0].name: x})
        np.testing.assert_allclose(got, expected, rtol=0, atol=1e-5 * np.abs(expected).max())


@needs_litert
@pytest.mark.parametrize("steps", [
    [("SQUEEZE", [])], [("EXPAND_DIMS", [[-1]]), ("SQUEEZE", [])], [("EXPAND_DIMS", [0])],
    [("EXPAND_DIMS", [[1]]), ("RESHAPE", [[-1]])],
])  # fmt: skip
@pytest.mark.parametrize("part", ["CAST", "IMAG"])
def test_axes_of_one_come_and_go(part, steps, tmp_path: Path) -> None:
    model, x = make_transform((3, 1, 8), [1, 8], [*steps, (part, [])])
    (tmp_path / "m.tflite").write_bytes(model)
    (expected,) = LitertWorker().run(str(tmp_path / "m.tflite"), [x], delegates=False)
    serde.save(serde.load(tmp_path / "m.tflite"), tmp_path / "m.onnx")
    (got,) = run_onnx(tmp_path / "m.onnx", [x])
    np.testing.assert_allclose(got, expected, rtol=0, atol=1e-5 * np.abs(expected).max())


def test_other_operators_on_complex_numbers_are_refused(tmp_path: Path) -> None:
    model, _ = make_transform((2, 8), [2, 8], [("NEG", []), ("REAL", [])])
    (tmp_path / "m.tflite").write_bytes(model)
    with pytest.raises(Unconvertible, match="NEG.*complex numbers: take their parts"):
        serde.load(tmp_path / "m.tflite")
