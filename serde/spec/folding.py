"""Value of one node whose inputs are known.

Shape arithmetic (up to ``LIMIT`` elements) and lists of one number a channel are computed at once.
Operators that only arrange or convert a weight become a constant that is computed when it is
written. Nothing that would make a model larger by more than ``GROWN`` elements is folded, and
nothing that could cost more than its operands and results are large.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from serde.errors import ConversionError
from serde.ir.budget import active_budget
from serde.ir.geometry import slice_along
from serde.ir.graph import DType, Tensor, Value
from serde.spec.inference import Type
from serde.spec.number_traits import MATRIX_PRODUCTS
from serde.spec.schema import ELEMENT_TYPES, to_proto_attributes
from serde.spec.traits import ARRANGES, BROADCASTS, ELEMENTWISE, REDUCES

LIMIT = 1024  # elements
CHANNELS = 4096  # elements along one axis
GROWN = 1 << 19  # elements of a result that is larger than its operands
COUNTED = 1 << 14  # those of a Range
PRODUCT = 1 << 26  # multiplications that count as one more node
MOST_STEPS = 64  # nodes computed to load one constant; what they share is computed again
# Whose results are drawn; that onnx.reference has not alone; or of which it takes the logarithm of
# what underflows.
NOT_COMPUTED = frozenset({"Dropout", "Gelu", "ReduceLogSumExp"})
# Operators whose value for a weight is worth computing once, at writing, instead of in each run.
LAZY = (
    ELEMENTWISE | BROADCASTS | ARRANGES | REDUCES | MATRIX_PRODUCTS
    | {"BatchNormalization", "Concat", "LayerNormalization"}
) - NOT_COMPUTED  # fmt: skip
# Operators that may be computed: their cost is bounded by the sizes of operands and results, which
# that of windows, regions, patterns and random numbers is not.
COMPUTED = LAZY | frozenset(
    "ArgMax ArgMin BlackmanWindow CastLike ConstantOfShape CumProd CumSum EyeLike HammingWindow "
    "HannWindow Hardmax NonZero OneHot PRelu Range ScatterElements ScatterND Shape Size Softmax "
    "TopK Trilu Unique".split()
)
# Operators that repeat elements: who reads their result may do without.
REPEATING = frozenset({"ConstantOfShape", "Expand", "Tile"})
TYPED = frozenset({"Cast", "CastLike", "EyeLike"})  # whose operands do not tell the result's type
OLD_FORM = frozenset({"axes", "starts", "ends"})  # attributes that became operands
OLD_OPERANDS = {
    "Squeeze": ("axes",), "Unsqueeze": ("axes",), "Slice": ("starts", "ends", "axes"),
}  # fmt: skip
Array = np.ndarray[Any, Any]


def fold(
    op: str, opset: int, inputs: tuple[Value | None, ...], attrs: Mapping[str, Any],
    types: tuple[Type, ...],
) -> tuple[Tensor, ...] | None:  # fmt: skip
    """The outputs as constants, or None when the node must stay."""
    if op not in COMPUTED or not inputs:
        return None
    if any(v is not None and v.tensor is None for v in inputs):
        return None
    tensors = [v.tensor for v in inputs if v is not None and v.tensor is not None]
    if not _can_compute(op, tensors, types):
        return None
    sizes = [_size(t) for t in types]
    if any(s is None for s in sizes):
        small = op in FAST and all(t.size <= LIMIT for t in tensors)
        return _fold_now(op, opset, inputs, attrs, types) if small else None
    total = sum(s for s in sizes if s is not None)
    is_weight = op == "Transpose" and types[0].dtype is not None and types[0].dtype.kind == "f"
    if is_weight and (kept := _fold_lazily(op, opset, inputs, attrs, types)) is not None:
        return kept  # it may be wanted as it was
    most = _find_most(op, total, tensors, types)
    bits = sum(s * t.dtype.bits for s, t in zip(sizes, types, strict=True) if s and t.dtype)
    read = sum(t.size * t.dtype.bits for t in tensors)
    if total <= most and all(t.size <= most for t in tensors):
        is_small = bits <= max(read, 8 * LIMIT)
        if not is_small and not active_budget().affords((bits - read) // 8):
            return None
        return _fold_now(op, opset, inputs, attrs, types)
    if op in LAZY and bits <= read:
        return _fold_lazily(op, opset, inputs, attrs, types)
    return None


def _can_compute(op: str, tensors: Sequence[Tensor], types: Sequence[Type]) -> bool:
    """Whether all types are known, the cost is bounded and runtimes compute the same."""
    if any(t.container or t.shape is None or t.dtype is None for t in types):
        return False
    if op == "Einsum":
        return math.prod(t.size for t in tensors) <= PRODUCT
    # of flags ONNX Runtime writes 0 and 1, onnx.reference False and True
    return op != "Cast" or (tensors[0].dtype, types[0].dtype) != (DType.BOOL, DType.STRING)


def _find_most(op: str, total: int, tensors: Sequence[Tensor], types: Sequence[Type]) -> int:
    """How many elements operands and results may have that are computed at once."""
    shapes = [t.shape or () for t in tensors] + [t.shape or () for t in types]
    most = CHANNELS if all(len(shape) <= 1 for shape in shapes) else LIMIT
    if op in REPEATING or total <= sum(t.size for t in tensors):
        return most
    return max(most, COUNTED if op == "Range" else GROWN)


def _size(type_: Type) -> int | None:
    total = 1
    for dim in type_.shape or ():
        if not isinstance(dim, int):
            return None
        total *= dim
    return total


def _fold_now(
    op: str, opset: int, inputs: tuple[Value | None, ...], attrs: Mapping[str, Any],
    types: tuple[Type, ...],
) -> tuple[Tensor, ...] | None:  # fmt: skip
    try:
        arrays = evaluate(op, opset, inputs, attrs, len(types))
        outs = tuple(Tensor.of(np.asarray(a)) for a in arrays)
    except (ConversionError, OSError):
        raise
    except Exception:  # whatever the reference cannot compute is left to who runs the model
        return None
    return outs if all(map(_is_of, outs, types)) else None  # the reference has errors of its own


def _is_of(tensor: Tensor, type_: Type) -> bool:
    """Whether a result has the inferred element type and shape."""
    sizes = zip(tensor.shape, type_.shape or (), strict=False)
    return (
        tensor.dtype is type_.dtype
        and len(tensor.shape) == len(type_.shape or ())
        and all(a == b for a, b in sizes if isinstance(b, int))
    )


def _fold_lazily(
    op: str, opset: int, inputs: tuple[Value | None, ...], attrs: Mapping[str, Any],
    types: tuple[Type, ...],
) -> tuple[Tensor, ...] | None:  # fmt: skip
    loads = [LazyResult(op, opset, inputs, attrs, types, i) for i in range(len(types))]
    if loads[0].steps > MOST_STEPS:
        return None
    return tuple(
        Tensor(t.dtype, t.shape, load)  # type: ignore[arg-type]
        for t, load in zip(types, loads, strict=True)
    )


@dataclass(frozen=True, eq=False, slots=True)
class LazyResult:
    """One output of a node of constants, computed each time it is called."""

    op: str
    opset: int
    inputs: tuple[Value | None, ...]
    attrs: Mapping[str, Any]
    types: Sequence[Type]
    index: int

    @property
    def steps(self) -> int:
        """How many nodes a call computes; a large matrix product counts as many."""
        tensors = [v.tensor for v in self.inputs if v is not None and v.tensor is not None]
        inner = sum(t.load.steps for t in tensors if isinstance(t.load, LazyResult))
        if self.op != "MatMul":
            return 1 + inner
        return 1 + inner + (_size(self.types[0]) or 0) * (tensors[0].shape or (1,))[-1] // PRODUCT

    def __call__(self) -> Array:
        expected = self.types[self.index]
        array = self._compute()
        if array.shape != expected.shape or DType.of(array.dtype) is not expected.dtype:
            raise ConversionError(f"{self.op} of constants gave {array.dtype}{list(array.shape)}")
        return array

    def _compute(self) -> Array:
        try:
            arrays = evaluate(self.op, self.opset, self.inputs, self.attrs, len(self.types))
            return np.asarray(arrays[self.index])
        except (ConversionError, OSError):
            raise
        except Exception as error:
            raise ConversionError(f"{self.op} of constants cannot be computed: {error}") from error


def find_transpose_source(value: Value, perm: Sequence[int]) -> Value | None:
    """The constant that ``value`` is a transposition of, where ``perm`` would take it back."""
    loader = value.tensor.load if value.tensor is not None else None
    if not isinstance(loader, LazyResult) or loader.op != "Transpose":
        return None
    first: Any = loader.attrs["perm"]
    return loader.inputs[0] if [first[p] for p in perm] == list(range(len(perm))) else None


def evaluate(
    op: str, opset: int, inputs: tuple[Value | None, ...], attrs: Mapping[str, Any], outputs: int
) -> list[Array]:
    """Compute a node on the arrays of its constant inputs."""
    arrays = [None if v is None else v.array() for v in inputs]
    fast = FAST.get(op)
    if OLD_FORM & attrs.keys():
        arrays, fast = [*arrays, *_old_operands(op, attrs)], fast if op in OLD_OPERANDS else None
    with np.errstate(all="ignore"):  # infinities are results like others
        array = None if fast is None else fast(arrays, attrs)
        return [array] if array is not None else _reference(op, opset, arrays, attrs, outputs)


def _old_operands(op: str, attrs: Mapping[str, Any]) -> list[Array | None]:
    """The operands that older opsets hold in attributes."""
    names = OLD_OPERANDS.get(op, ())
    return [np.array(attrs[n], np.int64) if n in attrs else None for n in names]


def _reference(
    op: str, opset: int, arrays: list[Array | None], attrs: Mapping[str, Any], count: int
) -> list[Array]:
    from onnx import helper
    from onnx.reference import ReferenceEvaluator  # 0.1 s to import: only when needed

    names = ["" if a is None else f"i{n}" for n, a in enumerate(arrays)]
    half = next((a.dtype for a in arrays if a is not None and _is_half(a)), None)
    if half is not None and op not in TYPED:
        arrays = [a.astype(np.float32) if a is not None and _is_half(a) else a for a in arrays]
    outputs = [f"o{n}" for n in range(count)]
    node = helper.make_node(op, names, outputs, **to_proto_attributes(attrs))
    feeds = {n: a for n, a in zip(names, arrays, strict=True) if a is not None}
    results: list[Any] = [*ReferenceEvaluator(node, opsets={"": opset}).run(None, feeds)]
    if half is None or op in TYPED:
        return results
    return [y.astype(half) if y.dtype == np.float32 else y for y in results]


def _is_half(array: Array) -> bool:
    """Whether an array is of floats of 16 bits: sums and squares on the way overflow these."""
    return DType.of(array.dtype) in (DType.FLOAT16, DType.BFLOAT16)


def _binary(function: Callable[[Array, Array], Array]) -> Callable[[Any, Any], Array]:
    return lambda a, _: np.asarray(function(a[0], a[1]), a[0].dtype)


def _compare(function: Callable[[Array, Array], Array]) -> Callable[[Any, Any], Array]:
    return lambda a, _: function(a[0], a[1])


def _divide(a: Any, attrs: Any) -> Array | None:
    x, y = a
    if x.dtype.kind not in "iu":
        return np.asarray(x / y, x.dtype)
    if not y.all():
        raise ConversionError("Div divides integers by zero")
    quotient, rest = np.divmod(x, y)  # rounded down; the least integer has no absolute value
    return np.asarray(quotient + ((rest != 0) & ((x < 0) != (y < 0))), x.dtype)


def _slice(a: Any, attrs: Any) -> Array:
    x, starts, ends, axes, steps = (*a, None, None)[:5]
    axes = range(len(starts)) if axes is None else axes
    steps = np.ones(len(starts), np.int64) if steps is None else steps
    index: list[Any] = [slice(None)] * x.ndim
    for start, end, axis, step in zip(starts, ends, axes, steps, strict=True):
        index[int(axis)] = slice_along(x.shape[axis], int(start), int(end), int(step))
    return x[tuple(index)]  # type: ignore[no-any-return]


def _reshape(a: Any, attrs: Any) -> Array:
    x, shape = a
    if attrs.get("allowzero"):
        return x.reshape(tuple(shape))  # type: ignore[no-any-return]
    return x.reshape([x.shape[i] if d == 0 else d for i, d in enumerate(shape)])  # type: ignore


def _cast(a: Any, attrs: Any) -> Array | None:
    target, x = ELEMENT_TYPES[attrs["to"]], a[0]
    plain = "iub" if target.kind in "iu" else "iubf"
    if x.dtype.kind not in plain or target.kind not in "iubf" or target.bits < 8:
        return None
    if target.value.startswith("float8"):
        return None
    return x.astype(target.numpy)  # type: ignore[no-any-return]


def _range(a: Any, attrs: Any) -> Array:
    start, stop, step = (v.item() for v in a)
    if not (stop - start) / step <= GROWN:  # not a number, for one
        raise ValueError("more elements than are computed")
    kind: Any = a[0].dtype
    return np.arange(start, stop, step, dtype=kind)


def _one_hot(a: Any, attrs: Any) -> Array:
    """A choice: onnx.reference multiplies, and infinities times 0 are NaN."""
    index, depth, values = a[0].astype(np.int64), a[1].astype(np.int64), a[2]
    axis = attrs.get("axis", -1) % (index.ndim + 1)
    steps = np.arange(int(depth.item())).reshape([-1] + [1] * (index.ndim - axis))
    at = np.where(index < 0, index + depth.item(), index)
    return np.asarray(np.where(np.expand_dims(at, axis) == steps, values[1], values[0]))


def _gather_elements(a: Any, attrs: Any) -> Array:
    """The indices may be of fewer elements than the data along other axes."""
    x, index = a
    axis = attrs.get("axis", 0) % x.ndim
    cut = tuple(slice(None if i == axis else n) for i, n in enumerate(index.shape))
    return np.take_along_axis(x[cut], index.astype(np.int64), axis)


def _gather_nd(a: Any, attrs: Any) -> Array:
    x, index = a
    batch = attrs.get("batch_dims", 0)
    count = int(np.prod(x.shape[:batch], dtype=np.int64))
    rows = x.reshape((count, *x.shape[batch:]))
    places = np.moveaxis(index.reshape((count, *index.shape[batch:])), -1, 0)
    at = (np.arange(count).reshape((count, *[1] * (places.ndim - 2))), *places)
    picked = rows[at]
    return picked.reshape(index.shape[:batch] + picked.shape[1:])  # type: ignore[no-any-return]


def _scatter_nd(a: Any, attrs: Any) -> Array | None:
    x, index, updates = a
    if attrs.get("reduction", "none") != "none":
        return None
    result = x.copy()
    result[tuple(np.moveaxis(index, -1, 0))] = updates
    return result  # type: ignore[no-any-return]


def _squeeze(a: Any, attrs: Any) -> Array:
    axes = a[1] if len(a) > 1 and a[1] is not None else None
    return np.asarray(np.squeeze(a[0], None if axes is None else tuple(int(i) for i in axes)))


FAST: dict[str, Callable[[list[Any], Mapping[str, Any]], Array | None]] = {
    "Add": _binary(np.add),
    "Sub": _binary(np.subtract),
    "Mul": _binary(np.multiply),
    "Div": _divide,
    "Equal": _compare(np.equal),
    "Less": _compare(np.less),
    "Greater": _compare(np.greater),
    "Where": lambda a, _: np.where(a[0], a[1], a[2]),
    "Neg": lambda a, _: -a[0],
    "Abs": lambda a, _: np.abs(a[0]),
    "GatherElements": _gather_elements,
    "GatherND": _gather_nd,
    "ScatterND": _scatter_nd,
    "Gather": lambda a, attrs: np.take(a[0], a[1], axis=attrs.get("axis", 0)),
    "Concat": lambda a, attrs: np.concatenate(a, axis=attrs["axis"]),
    "Slice": _slice,
    "Reshape": _reshape,
    "Cast": _cast,
    "Squeeze": _squeeze,
    "Unsqueeze": lambda a, _: np.expand_dims(a[0], tuple(int(i) for i in np.ravel(a[1]))),
    "Transpose": lambda a, attrs: np.transpose(a[0], attrs.get("perm")),
    "OneHot": _one_hot,
    "Expand": lambda a, _: np.broadcast_to(
        a[0], np.broadcast_shapes(a[0].shape, tuple(int(i) for i in a[1]))
    ),
    "Range": _range,
    "ReduceProd": lambda a, attrs: (
        np.prod(a[0], keepdims=bool(attrs.get("keepdims", 1))).astype(a[0].dtype)
        if (len(a) == 1 or a[1] is None) and not attrs.get("noop_with_empty_axes")
        else None
    ),
}
