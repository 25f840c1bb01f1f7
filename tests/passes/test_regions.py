"""Quantized regions: what ``emit_region`` writes, ``find_regions`` finds, in each of its variants."""

from __future__ import annotations

import numpy as np
import pytest
from onnx.reference import ReferenceEvaluator

from serde.formats.onnx.writer import to_proto
from serde.ir.graph import DType
from serde.legalize.convert import lower_to
from serde.passes.qlinear_ops import use_qlinear_ops
from serde.passes.regions import Quantization, Quantized, emit_region, find_regions
from serde.spec.onnx_builder import OnnxBuilder
from testing.onnx_live import PLAIN, run_at

RANDOM = np.random.default_rng(0)
# Of 7 bits: where a processor lacks VNNI, sums of two larger products saturate.
WEIGHTS = RANDOM.integers(-64, 65, (4, 3, 3, 3)).astype("int8")
BIAS = RANDOM.integers(-3000, 3000, 4).astype("int32")
BYTES = RANDOM.integers(0, 256, (2, 3, 6, 5)).astype("uint8")
STEPS = np.array([0.01, 0.02, 0.005, 0.03], "float32")
ZERO, LOWEST = np.uint8(3), np.uint8(0)
STEP, FINAL = np.float32(0.25), np.float32(0.5)
CHANGES = {  # of the form: what is left out, computed at run time, or added
    "per tensor": {"steps": np.float32(0.01)},
    "per channel": {},
    "no zero points": {"zero": None, "weight_zero": None, "final_zero": None},
    "a scale of the model": {"step": "input"},
    "a scale of the model, no bias": {"step": "input", "bias": False},
    "a bias in another unit": {"unit": 2},
    "Relu, which the range is": {"activation": "Relu", "final_zero": LOWEST},
    "Relu": {"activation": "Relu"},
    "Clip": {"activation": "Clip"},
    "int8 from uint8": {"final_zero": np.int8(-128), "activation": "Relu"},
}
KERNELS = {  # those with an operator of integers
    "per tensor", "per channel", "no zero points", "Relu, which the range is",
    "a scale of the model, no bias",
}  # fmt: skip


def convolution(
    steps=STEPS, zero=ZERO, step=STEP, unit=1, bias=True, activation="",
    weight_zero=0, final_zero=ZERO,
):  # fmt: skip
    """A graph of a region, its operands and the quantization of its result."""
    g = OnnxBuilder("g")
    scale = g.input("scale", DType.FLOAT32, ()) if isinstance(step, str) else g.const(step)
    weight_zeros = None if weight_zero is None else g.const(np.zeros(np.shape(steps), np.int8))
    x, *forms = (
        Quantization(scale, zero if zero is None else g.const(zero)),
        Quantization(g.const(steps), weight_zeros, 0),
        Quantization(g.const(np.float32(STEP * steps * unit)), None, 0),
    )
    values = [g.const(WEIGHTS), g.const(BIAS)][: 1 + bias]
    data = Quantized(g.input("x", DType.UINT8, BYTES.shape), x)
    operands = [data, *map(Quantized, values, forms)]
    after = {"Relu": g.Relu, "Clip": lambda y: g.Clip(y, -1.0, 6.0)}.get(activation, lambda y: y)
    result = Quantization(g.const(FINAL), final_zero if final_zero is None else g.const(final_zero))
    y = emit_region(g, lambda *reals: after(g.Conv(*reals, pads=(1, 1, 1, 1))), operands, result)
    return g.build([y]), operands, result


def feeds_of(graph):
    feeds = {"x": BYTES, "scale": np.asarray(STEP)}
    return {v.name: feeds[v.name] for v in graph.inputs}


@pytest.mark.parametrize("name", CHANGES)
def test_the_view_finds_what_the_emitter_writes(name):
    change = CHANGES[name]
    graph, operands, result = convolution(**change)
    ((value, region),) = find_regions(graph).items()
    assert value is graph.outputs[0]
    assert region.layer.op == "Conv"
    assert [v.value for v in region.operands] == [v.value for v in operands]
    pairs = zip((*(v.form for v in region.operands), region.result), (*(v.form for v in operands), result),
                strict=True)  # fmt: skip
    assert all(found.is_same(given, 4) for found, given in pairs)
    assert (region.activation.op if region.activation else "") == change.get("activation", "")
    assert region.cuts_negative == (change.get("final_zero", ZERO) in (None, LOWEST, np.int8(-128)))
    is_counted = "unit" not in change and not (change.get("step") and change.get("bias", True))
    assert region.has_counted_bias == is_counted


@pytest.mark.parametrize("name", CHANGES)
def test_a_region_is_the_integer_operator_that_it_stands_for(name):
    """Where there is one; the numbers are those of ONNX Runtime and onnx's reference."""
    graph, *_ = convolution(**CHANGES[name])
    fused = use_qlinear_ops(graph, units=False, by_channel=True)
    is_by_channel = "steps" not in CHANGES[name]
    ops = [n.op for n in fused.nodes]
    assert (ops == ["QLinearConv"]) == (is_by_channel and name in KERNELS)
    proto = to_proto(lower_to(graph, 21))
    expected = ReferenceEvaluator(proto).run(None, feeds_of(graph))[0]
    for lowered in (lower_to(graph, 11), lower_to(fused, 13)):
        (got,) = run_at(PLAIN, to_proto(lowered), feeds_of(graph))
        assert got.dtype == expected.dtype
        assert np.abs(got.astype(int) - expected).max() <= 1


def test_layers_of_floats_are_no_regions():
    g = OnnxBuilder("g")
    x, scale = g.input("x", DType.FLOAT32, (2, 3)), g.const(np.float32(0.1))
    assert find_regions(g.build([g.QuantizeLinear(g.Relu(x), scale)])) == {}


def test_other_operands_stay_what_they_are():
    g = OnnxBuilder("g")
    form = Quantization(g.const(np.float32(0.1)), g.const(np.int8(0)))
    data, shape = Quantized(g.input("x", DType.INT8, (2, 3)), form), g.const(np.array([3, 2]))
    y = emit_region(g, lambda real, shape: g.Reshape(real, shape), [data, shape], form)
    ((_, region),) = find_regions(g.build([y])).items()
    assert (region.layer.op, region.operands, region.activation) == ("Reshape", (data, shape), None)


def test_a_relu_by_itself_is_the_layer():
    g = OnnxBuilder("g")
    form = Quantization(g.const(np.float32(0.1)), g.const(np.int8(0)))
    data = Quantized(g.input("x", DType.INT8, (2, 3)), form)
    ((_, region),) = find_regions(g.build([emit_region(g, g.Relu, [data], form)])).items()
    assert (region.layer.op, region.operands, region.activation) == ("Relu", (data,), None)
