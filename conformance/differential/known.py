"""Differences that are the runtimes' own, each with a narrow predicate and the evidence."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np

from .domains import Array, has_nan, is_finite, magnitude
from .program import Program

BOUNDING = frozenset(
    "Celu Clip Elu HardSigmoid HardSwish Max Min Mish Selu Softplus ThresholdedRelu".split()
)


@dataclass(frozen=True)
class Known:
    """A difference of one runtime: the directions it is seen in, and why it is no fault of ours."""

    directions: tuple[str, ...]
    applies: Callable[[Program, str], bool]  # to the program and how it differs
    reason: str


def list_values(program: Program) -> list[Any]:
    """What is read and computed in each run: tensors, and lists of those of a sequence."""
    return [v for values in program.data for v in values.values()]


def list_tensors(program: Program) -> list[Array]:
    """The same, without sequences."""
    return [v for v in list_values(program) if isinstance(v, np.ndarray)]


def turns_empty(program: Program, how: str) -> bool:
    """Whether a run has a tensor without elements."""
    parts = (v if isinstance(v, list) else [v] for v in list_values(program))
    return any(np.size(a) == 0 for part in parts for a in part)


def has_empty_value(program: Program, how: str) -> bool:
    """Whether a run has a tensor without elements, and the runtime fails."""
    return how.startswith("cannot run") and turns_empty(program, how)


def fails_to_reshape_nothing(program: Program, how: str) -> bool:
    """Whether a tensor turns out to have no elements, and a Reshape fails."""
    return "eshape" in how and has_empty_value(program, how)


def lacks_empty(program: Program, how: str) -> bool:
    """Whether a tensor turns out to have no elements, and PyTorch says that it needs some."""
    texts = ("to have non-zero size", "sizes should be greater than 0")
    return any(text in how for text in texts) and has_empty_value(program, how)


def gathers_no_rows(program: Program, how: str) -> bool:
    """Whether a result of no rows has other sizes behind."""
    return how.startswith("shape (0, ") and any(s.op in ("Loop", "Scan") for s in program.steps)


def has_large_gelu(program: Program, how: str) -> bool:
    """Whether a Gelu or a HardSwish reads numbers whose cube is beyond their type."""
    operands = [values[s.inputs[0]] for s in program.steps if s.op in ("Gelu", "HardSwish")
                for values in program.data]  # fmt: skip
    with np.errstate(over="ignore", invalid="ignore"):
        return any(not np.isfinite(x * x * x).all() for x in operands)


def broadcasts_nothing(program: Program, how: str) -> bool:
    """Whether a tensor turns out to have no elements, and TVM's size of a broadcast is 1."""
    return "max(any_dim" in how and has_empty_value(program, how)


def compares_nan(program: Program, how: str) -> bool:
    """Whether NaN is compared: TVM 0.17 has Equal([NaN], [0]) true, of three elements false."""
    operands = [n for s in program.steps if s.op in ("Equal", "NonZero") for n in s.inputs]
    arrays = [values[n] for n in operands for values in program.data]
    return any(has_nan(x) for x in arrays)


def takes_none_of(program: Program, how: str) -> bool:
    """Whether the largest are counted in the run, and are none."""
    counts = [s.inputs[1] for s in program.steps if s.op == "TopK"]
    return any(not np.all(values[n]) for n in counts for values in program.data)


def ranks_equal(program: Program, how: str) -> bool:
    """Whether TopK reads equal elements along an axis whose size differs between runs."""
    for step in program.steps:
        if step.op != "TopK":
            continue
        axis = step.attrs.get("axis", -1)
        read = [np.sort(values[step.inputs[0]], axis=axis) for values in program.data]
        if len({x.shape[axis] for x in read}) > 1 and any(
            (np.diff(np.moveaxis(x, axis, -1).astype(np.float64)) == 0).any() for x in read
        ):
            return True
    return False


def bounds_nan(program: Program, how: str) -> bool:
    """Whether an operator that takes the larger or the lesser of two has NaN among its operands."""
    operands = [n for s in program.steps if s.op in BOUNDING for n in s.inputs if n]
    return any(
        isinstance(values[n], np.ndarray) and has_nan(values[n])
        for n in operands
        for values in program.data
    )


def resizes_to_one(program: Program, how: str) -> bool:
    """Whether TVM's own code fails on an image of one element."""
    return "reduce() of empty iterable" in how and any(s.op == "Resize" for s in program.steps)


def has_non_finite_value(program: Program, how: str) -> bool:
    """Whether a run has NaN or an infinity."""
    return not all(map(is_finite, list_tensors(program)))


def has_nan_value(program: Program, how: str) -> bool:
    """Whether a run has NaN."""
    return any(map(has_nan, list_tensors(program)))


def exceeds_int32(program: Program, how: str) -> bool:
    """Whether a run has an integer that 32 bits do not hold."""
    integers = (a for a in list_tensors(program) if a.dtype.kind in "iu" and a.size)
    return any(not -(2**31) <= a.min() <= a.max() < 2**31 for a in integers)


def wraps_int32(program: Program, how: str) -> bool:
    """Whether a product of int32 is one that 32 bits do not hold."""
    factors = [s.inputs for s in program.steps if s.op == "Mul"]
    pairs = [[values[n] for n in names] for names in factors for values in program.data]
    products = [np.multiply(a, b, dtype=np.int64) for a, b in pairs if a.dtype == np.int32]
    return any(p.size and not -(2**31) <= p.min() <= p.max() < 2**31 for p in products)


def has_least_value(program: Program, how: str) -> bool:
    """Whether a run has a float32 so small that kernels which flush it take it for 0."""
    least = np.finfo(np.float32).tiny
    arrays = (a for a in list_tensors(program) if a.dtype == np.float32)
    return any(bool(((a != 0) & (np.abs(a) < least)).any()) for a in arrays)


def turns_far(program: Program, how: str) -> bool:
    """Whether a periodic function has more turns, or a Tan more height, than float32 digits."""
    steps = [s for s in program.steps if s.op in ("Cos", "Sin", "Tan")]
    names = [s.inputs[0] for s in steps] + [s.outputs[0] for s in steps if s.op == "Tan"]
    return any(magnitude(values[n]) > 1e3 for n in names for values in program.data)


def slices_dynamically(program: Program, how: str) -> bool:
    """Whether MXNet fails in a slice."""
    return "sub-memory" in how and any(step.op == "Slice" for step in program.steps)


def bodies_without_shapes(program: Program, how: str) -> bool:
    """Whether MXNet finds no shape in a loop or a branch."""
    has_body = any(step.bodies for step in program.steps)
    return has_body and ("InferShape failed" in how or "Shape is unknown" in how)


def slices_to_nothing(program: Program, how: str) -> bool:
    """Whether MXNet refuses a slice without elements, of a size that the run tells."""
    return program.is_symbolic and "Invalid begin, end" in how


def normalizes_nan(program: Program, how: str) -> bool:
    """Whether a softmax has NaN or infinity among its operands."""
    operators = ("LogSoftmax", "Softmax", "SoftmaxCrossEntropyLoss")
    operands = [s.inputs[0] for s in program.steps if s.op in operators]
    arrays = [values[name] for name in operands for values in program.data]
    return any(has_nan(x) or bool((x == np.inf).any()) for x in arrays)


def attends_nan(program: Program, how: str) -> bool:
    """Whether NaN or an infinity is among the operands of an attention."""
    operands = [n for s in program.steps if s.op == "Attention" for n in s.inputs if n]
    return any(not is_finite(values[n]) for n in operands for values in program.data)


def quantizes_infinity(program: Program, how: str) -> bool:
    """Whether a number is beyond its type once it is divided by a scale."""
    pairs = [s.inputs[:2] for s in program.steps if s.op == "QuantizeLinear"]
    with np.errstate(all="ignore"):
        largest = [magnitude(values[x]) / max(float(np.abs(values[y]).min(initial=1)), 1e-30)
                   for x, y in pairs for values in program.data]  # fmt: skip
    return any(number > np.finfo(np.float32).max for number in largest)


def has_other_type(program: Program, how: str) -> bool:
    """Whether the reference has another type than the operator."""
    return how.startswith("bfloat16 instead of float")


def scales_by_one(program: Program, how: str) -> bool:
    """Whether groups of channels have one scale, which the standard has of each channel."""
    return "weight to be a vector of size equal to the number of channels" in how


def normalizes_one(program: Program, how: str) -> bool:
    """Whether PyTorch refuses a group of one element, whose normalization is its bias."""
    return "more than 1 value per channel" in how


def looks_up_from_the_back(program: Program, how: str) -> bool:
    """Whether rows of a table are looked up by indices below 0."""
    indices = [s.inputs[1] for s in program.steps if s.op == "Gather"]
    is_below = any((values[n] < 0).any() for n in indices for values in program.data)
    return "index out of range in self" in how and is_below


def bounds_infinity(program: Program, how: str) -> bool:
    """Whether infinity is bounded by nothing, of which ONNX Runtime makes the largest number."""
    operands = [s.inputs[0] for s in program.steps if s.op == "Clip"]
    return any(not is_finite(values[n]) for n in operands for values in program.data)


def divides_by_least(program: Program, how: str) -> bool:
    """Whether a rest is taken of a divisor that is 0, or nearly so."""
    divisors = [s.inputs[1] for s in program.steps if s.op == "Mod"]
    arrays = [values[n] for n in divisors for values in program.data]
    return any(x.dtype.kind == "f" and bool((np.abs(x) < 1e-30).any()) for x in arrays)


def multiplies_infinity(program: Program, how: str) -> bool:
    """Whether a product of finite numbers overflows before one that is 0 is multiplied."""
    pairs = ((s.inputs[0], s.outputs[0]) for s in program.steps if s.op == "ReduceProd")
    return any(
        is_finite(values[x]) and has_nan(values[y]) for x, y in pairs for values in program.data
    )


def has_empty_range(program: Program, how: str) -> bool:
    """Whether a runtime counts a range or a slice whose step leads away from its end."""
    is_so = "storage allocation failure" in how or "instead of (0,)" in how
    return is_so and any(
        step.op in ("Range", "Slice") and np.size(values[step.outputs[0]]) == 0
        for values in program.data
        for step in program.steps
    )


KNOWN = (
    Known(
        ("ONNX, lowered", "ONNX, raised again", "Relay, read again", "Relay"),
        fails_to_reshape_nothing,
        "Relay's reshape, and ONNX's below opset 14, have no size 0: they fail where a tensor "
        "turns out empty in the run",
    ),
    Known(
        ("Relay",), has_empty_range,
        "TVM's arange and strided_slice of dynamic sizes count below 0 where the step leads away "
        "from the end, and fail",
    ),
    Known(
        ("Relay",), broadcasts_nothing,
        "TVM takes the larger of two dynamic sizes as that of their broadcast: of 0 and 1, too",
    ),
    Known(
        ("Relay",), compares_nan,
        "TVM's equal of NaN and 0 is true where it computes element by element, not in vectors",
    ),
    Known(("Relay",), takes_none_of, "TVM's topk of a computed number of 0 takes all"),
    Known(
        ("MXNet",), bodies_without_shapes,
        "MXNet infers the shapes of loops and branches before they run: those of data fail",
    ),
    Known(
        ("MXNet",), slices_to_nothing,
        "MXNet has no tensors without elements: a slice of a dynamic size is an error then",
    ),
    Known(("Relay",), resizes_to_one, "TVM resizes no image to one element"),
    Known(
        ("Relay", "Relax"), bounds_nan,
        "TVM's max, min and clip of NaN and a number is the number",
    ),
    Known(
        ("MXNet",), slices_dynamically,
        "MXNet's slice of a dynamic size fails where a bound lies before the front",
    ),
    Known(
        ("MNN",), turns_empty,
        "MNN has no tensors without elements: one that is empty only at run time is an error, or "
        "has an element",
    ),
    Known(
        ("tract",), has_empty_value,
        "tract fails at ranges and slices that turn out empty in the run",
    ),
    Known(
        ("PyTorch",), lacks_empty,
        "PyTorch has no extreme of an axis, and no image, that turns out empty in the run",
    ),
    Known(
        ("PyTorch",), gathers_no_rows,
        "rows of a loop without turns have sizes that only the turns tell: they are 0 in PyTorch",
    ),
    Known(
        ("PyTorch",), has_large_gelu,
        "PyTorch's gelu and hardswish of numbers whose cube is infinite are NaN or infinite",
    ),
    Known(
        ("PyTorch",), quantizes_infinity,
        "what infinity is as an integer, the standard does not tell",
    ),
    Known(
        ("PyTorch",), has_other_type,
        "onnx.reference computes Det and AffineGrid of bfloat16 in other types",
    ),
    Known(("PyTorch",), scales_by_one, "onnx.reference repeats a scale that is too short"),
    Known(
        ("PyTorch",), normalizes_one,
        "PyTorch normalizes no group of one element",
    ),
    Known(
        ("PyTorch",), looks_up_from_the_back,
        "nn.Embedding takes no indices of an input from the back; an error tells so",
    ),
    Known(
        ("PyTorch",), bounds_infinity,
        "ONNX Runtime's Clip without bounds makes the largest number of infinity",
    ),
    Known(
        ("PyTorch",), divides_by_least,
        "a rest of a division by 0 is NaN in PyTorch, and 0 in ONNX Runtime",
    ),
    Known(
        ("PyTorch",), attends_nan,
        "PyTorch's fused attention gives 0 where all scores of a place are NaN",
    ),
    Known(
        ("OpenVINO",), ranks_equal,
        "OpenVINO ranks equal elements along axes of dynamic sizes in any order",
    ),
    Known(
        ("OpenVINO",), has_nan_value,
        "OpenVINO's bounds, exponentials and comparisons of NaN are numbers",
    ),
    Known(("tract",), has_nan_value, "tract's bounds and approximations of NaN are numbers"),
    Known(
        ("PyTorch",), multiplies_infinity,
        "a product that overflows before a factor is 0 is NaN or 0: PyTorch has another order",
    ),
    Known(
        ("MNN", "OpenVINO"), exceeds_int32,
        "MNN and OpenVINO compute int64 in 32 bits",
    ),
    Known(
        ("MNN",), wraps_int32,
        "a product of int32 that overflows is the least number in MNN, and does not wrap around",
    ),
    Known(
        ("MNN", "ncnn"), has_non_finite_value,
        "MNN and ncnn do not keep NaN and infinities that turn up at run time",
    ),
    Known(
        ("LiteRT",), has_non_finite_value,
        "XNNPACK's kernels make finite numbers of NaN and infinities: log(inf) is 88.7, exp(NaN) 0",
    ),
    Known(
        ("LiteRT",), has_empty_value,
        "LiteRT fails at ranges, and at results, that turn out empty in the run",
    ),
    Known(("LiteRT",), has_least_value, "XNNPACK takes subnormal numbers for 0"),
    Known(
        ("LiteRT",), turns_far,
        "LiteRT's sine and cosine are off by 1e-7, which a quotient of them enlarges, and by more "
        "for large numbers",
    ),
    Known(
        ("MXNet",), normalizes_nan,
        "MXNet's softmax of NaN is 0, and its log_softmax of numbers beside infinity -inf",
    ),
    Known(
        ("PyTorch",), normalizes_nan,
        "ONNX Runtime's softmax of float64 leaves NaN out of the sum, PyTorch's is NaN",
    ),
    Known(
        ("MXNet",), has_empty_value,
        "MXNet has no tensors without elements: one that is empty only at run time is an error",
    ),
)  # fmt: skip


def find_known(program: Program, direction: str, how: str) -> str | None:
    """The reason of a known difference, if this is one."""
    return next(
        (k.reason for k in KNOWN if direction in k.directions and k.applies(program, how)), None
    )
