"""Whether results are the same, up to the rounding that the graph itself amplifies."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import replace
from functools import partial
from itertools import pairwise
from typing import Any

import numpy as np

from serde.ir.graph import DType

from .domains import is_float, magnitude
from .evaluate import Rejected, run_bodies, run_step
from .program import Array, Program, Step, dtype_of, is_fed

TOLERANCES = {  # relative, and absolute in terms of the largest number
    DType.FLOAT64: 1e-6, DType.FLOAT32: 1e-4, DType.FLOAT16: 1e-2, DType.BFLOAT16: 6e-2,
    DType.FLOAT8E4M3FN: 0.3, DType.FLOAT8E5M2: 0.6,
}  # fmt: skip
NOISE = {DType.FLOAT64: 1e-7, DType.FLOAT32: 5e-6, DType.FLOAT16: 2e-3, DType.BFLOAT16: 1.6e-2}
RUNS = 40
EXACT = frozenset(  # operators whose results every runtime has to round alike
    "Abs Cast CastLike Ceil Clip Compress Concat ConcatFromSequence Constant ConstantOfShape "
    "DepthToSpace Dropout Expand EyeLike Flatten Floor Gather GatherElements GatherND Identity "
    "MaxPool GlobalMaxPool Max MaxUnpool Min Neg OneHot Pad Range ReduceMax ReduceMin Relu Reshape "
    "ReverseSequence Round ScatterElements ScatterND SequenceAt SequenceConstruct SequenceErase "
    "SequenceInsert Shape Sign Slice SpaceToDepth Split SplitToSequence Squeeze TensorScatter Tile "
    "TopK Transpose Trilu Unique Unsqueeze Where DequantizeLinear QuantizeLinear".split()
)
SUMS = frozenset(  # operators that add up or round: their error is in terms of their operands
    "Attention AveragePool BatchNormalization Conv ConvTranspose CumSum DFT DeformConv Det "
    "DynamicQuantizeLinear Einsum "
    "GRU Gemm GlobalAveragePool GridSample GroupNormalization InstanceNormalization LRN LSTM "
    "LayerNormalization LpNormalization MatMul Mean MeanVarianceNormalization RNN "
    "RMSNormalization ReduceL1 ReduceL2 ReduceLogSum ReduceLogSumExp ReduceMean ReduceProd "
    "ReduceSum ReduceSumSquare Resize RoiAlign RotaryEmbedding STFT Sum Col2Im "
    "LogSoftmax Softmax NegativeLogLikelihoodLoss SoftmaxCrossEntropyLoss AffineGrid".split()
)

ABSOLUTE = frozenset(  # operators whose kernels are exact in terms of 1, not of their result
    "Acos Acosh Asin Asinh Atan Atanh BlackmanWindow Cos Cosh DFT Elu Erf GRU Gelu HammingWindow "
    "HannWindow HardSigmoid HardSwish LSTM LayerNormalization Log LogSoftmax Mish RNN STFT Selu "
    "Sigmoid Sin Sinh Softmax SoftmaxCrossEntropyLoss Softplus SwiGLU Swish Tan Tanh".split()
)

COARSE = frozenset(
    "DFT GRU LSTM LogSoftmax RNN STFT SoftmaxCrossEntropyLoss Softplus".split()
)  # by an order of magnitude more
ZEROS = frozenset(  # exact operators of whose zeros the standard tells no sign
    "Ceil Clip Floor GlobalMaxPool Max MaxPool Min ReduceMax ReduceMin Relu Round Sign "
    "Where".split()  # ONNX Runtime adds up both sides: of -0 it makes 0
)
SPECTRA = frozenset(("DFT", "STFT"))  # whose results are all sums of the same
GATED = frozenset(("Gelu", "Mish"))  # an operand times what is exact in terms of 1


def as_returned(value: Array) -> Array:
    """A value as a runtime returns it."""
    return value if is_fed(value) else value.astype(np.float32)


def differing(expected: Array, got: Array, dtype: DType) -> Array | str | None:
    """Where two arrays differ, or how else; None if they are the same."""
    if isinstance(expected, list) or isinstance(got, list):
        if not isinstance(expected, list) or not isinstance(got, list) or len(got) != len(expected):
            return "another number of tensors"
        diffs = (differing(a, b, dtype) for a, b in zip(expected, got, strict=True))
        return next((f for f in diffs if f is not None), None)
    got = np.asarray(got)
    if expected.shape != got.shape:
        return f"shape {got.shape} instead of {expected.shape}"
    if expected.dtype != got.dtype and not {expected.dtype.kind, got.dtype.kind} <= set("OUS"):
        return f"{got.dtype} instead of {expected.dtype}"
    if dtype not in TOLERANCES:  # those of fewer bits are returned as floats
        apart = expected.astype(str) != got.astype(str) if dtype.kind == "S" else expected != got
        return apart if apart.any() else None
    with np.errstate(all="ignore"):
        a, b = expected.astype(np.float64), got.astype(np.float64)
        tolerance = TOLERANCES[dtype]
        scale = np.abs(a[np.isfinite(a)]).max(initial=0)
        close = np.isclose(
            b, a, rtol=tolerance, atol=0.1 * tolerance * scale + 1e-30, equal_nan=True
        )
        # a result at the end of the range may round to infinity
        top = float(np.finfo(np.float32).max) if expected.dtype.itemsize > 2 else 65504.0
        near = (np.abs(a) > 0.99 * top) & (np.abs(b) > 0.99 * top) & (np.sign(a) == np.sign(b))
    apart = ~(close | near)
    return apart if apart.any() else None


def perturb(value: Array, rng: np.random.Generator, unit: float = 0.0) -> Array:
    """A float array with rounding errors, relative and in terms of ``unit``; others as they are.

    What is smaller than the error may be rounded to 0.
    """
    if isinstance(value, list) or dtype_of(value) not in NOISE:
        return value
    with np.errstate(all="ignore"):
        noise = NOISE[dtype_of(value)]
        errors = noise * rng.uniform(-1, 1, (2, *value.shape))
        result = value.astype(np.float64) * (1 + errors[0]) + 0.05 * unit * errors[1]
        lost = (np.abs(result) <= 0.05 * unit * noise) & (rng.random(value.shape) < 0.5)
        return np.asarray(np.where(lost, 0.0, result).astype(value.dtype))


def unit_of(op: str, operands: Iterable[Array], results: Iterable[Array]) -> float:
    """In terms of what the results of an operator are exact, besides themselves."""
    unit = 10.0 if op in COARSE else float(op in ABSOLUTE)
    scaled = [*(results if op in SPECTRA else ()), *(operands if op in GATED else ())]
    sizes = (magnitude(x[np.isfinite(x)]) for x in scaled if is_float(x))
    return unit * max(1.0, max(sizes, default=1.0))


def run_with_noise(program: Program, values: dict[str, Array], seed: int) -> dict[str, Array]:
    """All values where every step rounds otherwise."""
    rng = np.random.default_rng(seed)
    new_values = {n: values[n] for n in (*program.dims, *program.constants)}
    for step in program.steps:
        run_noisy_step(rng, step, new_values, program.opset)
    return new_values


def run_noisy_step(
    rng: np.random.Generator, step: Step, values: dict[str, Array], opset: int
) -> None:
    """Compute a step with errors in its result, and in the operands of one that adds up."""
    if step.bodies:
        operands = [values[n] if n else None for n in step.inputs]
        results = run_bodies(step, operands, values, opset, partial(run_noisy_step, rng))
        values.update(zip(step.outputs, results, strict=False))
        return
    exact = {n: values[n] for n in step.inputs if n}
    if step.op in SUMS or (step.op == "QuantizeLinear" and is_half(values[step.inputs[0]])):
        values.update({n: perturb(a, rng) for n, a in exact.items()})
    if step.op == "Resize" and values[step.inputs[0]].dtype.kind in "iu":
        run_noisy_resize(rng, step, values, opset)
        return
    if step.op == "Unique":
        values[step.inputs[0]] = merge_near(rng, values[step.inputs[0]])
    run_step(step, values, opset)
    if step.op == "Equal" and is_float(values[step.inputs[0]]):
        values[step.outputs[0]] ^= find_near(rng, *(values[n] for n in step.inputs))
    values.update(exact)
    outputs = [n for n in step.outputs if n]
    if step.op.startswith("QLinear"):  # a quotient at the middle is rounded up or down
        for name in outputs:
            values[name] = values[name] ^ rng.integers(0, 2, values[name].shape, values[name].dtype)
    if step.op not in EXACT:
        unit = unit_of(step.op, exact.values(), (values[n] for n in outputs))
        values.update({n: perturb(values[n], rng, unit) for n in outputs})
    if step.op in ZEROS or step.op not in EXACT:
        values.update({n: turn_zeros(values[n], rng) for n in outputs})


def turn_zeros(value: Array, rng: np.random.Generator) -> Array:
    """A float array whose zeros have any sign."""
    if isinstance(value, list) or not is_float(value):
        return value
    turned = (value == 0) & (rng.random(value.shape) < 0.5)
    return np.asarray(np.where(turned, -value, value))


def find_near(rng: np.random.Generator, a: Array, b: Array) -> Array:
    """Some of the floats that differ by no more than errors of rounding."""
    with np.errstate(all="ignore"):
        x, y = a.astype(np.float64), b.astype(np.float64)
        noise = NOISE.get(dtype_of(a), 0.0)
        near = (x != y) & np.isclose(x, y, rtol=2 * noise, atol=noise)
        return near & (rng.random(near.shape) < 0.5)


def merge_near(rng: np.random.Generator, x: Array) -> Array:
    """Floats some of which are made equal to neighbours within errors of rounding."""
    if not is_float(x) or x.size < 2:
        return x
    order = np.argsort(x, axis=None)
    flat = x.ravel().copy()
    for a, b in pairwise(order):
        if find_near(rng, flat[a : a + 1], flat[b : b + 1]).any():
            flat[b] = flat[a]
    return flat.reshape(x.shape)


def is_half(x: Array) -> bool:
    """Whether an array is of floats of 16 bits, which runtimes compute with in 16 or 32."""
    return dtype_of(x) in (DType.FLOAT16, DType.BFLOAT16)


def run_noisy_resize(
    rng: np.random.Generator, step: Step, values: dict[str, Array], opset: int
) -> None:
    """Resize integers as floats with errors, which are cut off in the end."""
    x, y = values[step.inputs[0]], step.outputs[0]
    values[step.inputs[0]] = x.astype(np.float32)
    run_step(replace(step, session=None), values, opset)
    values[step.inputs[0]] = x
    ends = np.iinfo(x.dtype)
    exact = perturb(values[y], rng, max(1.0, magnitude(x)))
    values[y] = np.trunc(exact).clip(ends.min, ends.max).astype(x.dtype)


def is_unstable(
    program: Program, values: dict[str, Array], output: str, apart: Array | str, got: Array
) -> bool:
    """Whether a difference is within what errors of rounding make of the graph itself."""
    expected = values[output]
    spread: Any = 0.0
    for seed in range(RUNS):
        try:
            noisy = run_with_noise(program, values, seed)[output]
        except Rejected:
            return True  # a hair's breadth from being undefined
        if isinstance(expected, list) or noisy.shape != expected.shape:
            if differing(expected, noisy, dtype_of(expected)) is not None:
                return True  # which elements there are depends on rounding
            continue
        if isinstance(apart, str):
            continue
        with np.errstate(all="ignore"):
            off = np.abs(noisy.astype(np.float64) - expected.astype(np.float64))
            same = (noisy == expected) | ((noisy != noisy) & (expected != expected))
            spread = np.fmax(spread, np.where(same, 0.0, np.where(np.isnan(off), np.inf, off)))
    if isinstance(apart, str) or isinstance(expected, list) or dtype_of(expected).kind == "S":
        return False
    with np.errstate(all="ignore"):
        off = np.abs(np.asarray(got).astype(np.float64) - expected.astype(np.float64))
        excused = (spread == np.inf) | (off <= (20 if is_float(expected) else 2) * spread)
    return bool((excused | ~apart).all())


def describe(expected: Array, got: Array, apart: Array | str) -> str:
    """A difference in one line."""
    if isinstance(apart, str):
        return apart
    if isinstance(expected, list):
        return "other elements of a sequence"
    a, b = expected[apart].ravel()[:3], np.asarray(got)[apart].ravel()[:3]
    return f"{int(apart.sum())} of {apart.size}: {b.tolist()} instead of {a.tolist()}"


def compare(
    program: Program, values: dict[str, Array], results: Mapping[str, Array]
) -> tuple[str, str, str]:
    """``right``, ``unstable`` or ``differs``, with the output and how it differs."""
    kind = "right", "", ""
    for name in program.outputs:
        expected, got = as_returned(values[name]), results[name]
        apart = differing(expected, got, dtype_of(values[name]))
        if apart is None:
            continue
        if not is_unstable(program, values, name, apart, got):
            return "differs", name, describe(expected, got, apart)
        kind = "unstable", name, describe(expected, got, apart)
    return kind
