"""What the operands of a node must be to each other, beyond what onnx's inference checks.

The numbers of channels, hidden units and the like that two operands of an operator share are
compared where both are known as numbers. Sizes by name and unknown ones are taken for right.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from math import prod
from typing import Any, NamedTuple

from serde.errors import ConversionError, require
from serde.ir.dim_expr import shape_data_of
from serde.ir.geometry import may_be_same
from serde.ir.graph import Dim, Shape, Value, show_shape
from serde.spec.schema import Operator

HINT = "Check the shapes given for the inputs (--input)."
Factors = Mapping[str, int]
Templates = tuple[str, ...]
# What a template calls a size, and what messages do.
WORDS = {
    "1": "values for the points of the kernel", "B": "samples", "C": "channels",
    "D": "directions", "E": "elements for each head", "G": "groups", "H": "hidden units",
    "I": "input features", "J": "classes", "K": "key heads", "L": "boxes",
    "M": "output channels", "P": "past positions", "Q": "query heads", "S": "query positions",
    "T": "positions", "V": "elements for each head of V", "Y": "rows", "Z": "columns",
}  # fmt: skip


class Call(NamedTuple):
    """One use of an operator: what its checks look at."""

    operator: Operator
    inputs: Sequence[Value | None]
    attrs: Mapping[str, Any]

    def shape(self, at: int) -> Shape | None:
        """The shape of an operand that is a tensor of known rank."""
        value = self.inputs[at] if at < len(self.inputs) else None
        return None if value is None or value.container else value.shape

    def show(self, at: int) -> str:
        """An operand as messages call it."""
        value, formal = self.inputs[at], self.operator.input(at).name
        return f"{formal} {value and value.name!r} of shape {show_shape(self.shape(at))}"


class Check(NamedTuple):
    """The axes of operands, as templates, and which sizes others divide.

    In a template each axis has a letter that stands for the size, ``*`` a factor for an axis that
    many times as long, ``/`` a factor for one that many times as short; ``...`` is for any further
    axes, ``.`` for one that is not compared. ``factors`` gives the numbers, of letters too where an
    attribute says them.
    """

    templates: Templates | Callable[[Call], Templates]
    factors: Callable[[Call], Factors] = lambda call: {}
    divisors: Mapping[str, str] | None = None  # letters, and the factor that divides the size


def check_operands(
    operator: Operator, inputs: Sequence[Value | None], attrs: Mapping[str, Any]
) -> None:
    """Refuse operands whose sizes contradict each other.

    Raises:
        ConversionError: with both operands and both sizes.
    """
    call = Call(operator, inputs, attrs)
    if (check := CHECKS.get(operator.name)) is not None:
        _check_sizes(call, check)
    if (rule := RULES.get(operator.name)) is not None:
        rule(call)


def templates_of(call: Call, check: Check) -> Templates:
    """The templates of a check, which may depend on the call."""
    return check.templates if isinstance(check.templates, tuple) else check.templates(call)


def _check_sizes(call: Call, check: Check) -> None:
    factors, templates = check.factors(call), templates_of(call, check)
    seen: dict[str, tuple[int, int | str]] = {}  # the size of a letter, and which operand has it
    for name, size in factors.items():
        if name in WORDS:
            seen[name] = size, "the operator's attributes ask for"
    for at, template in enumerate(templates):
        for letter, size, written in sizes_of(call, at, template, factors):
            known, first = seen.setdefault(letter, (size, at))
            if size != known:
                raise ConversionError(
                    f"{_where(call, first)} {known} {WORDS[letter]}, but {call.show(at)} {written} "
                    f"{size}. {HINT}"
                )
    for letter, factor in (check.divisors or {}).items():
        size, first = seen.get(letter, (0, ""))
        divisor = factors.get(factor, 1)
        if divisor <= 0 or size % divisor != 0:
            raise ConversionError(
                f"{_where(call, first)} {size} {WORDS[letter]}, which {factor}={divisor} does not "
                f"divide. {HINT}"
            )


def _where(call: Call, first: int | str) -> str:
    """What has a size: an operand, or what is said of the attributes."""
    return first if isinstance(first, str) else f"{call.show(first)} has"


def sizes_of(
    call: Call, at: int, template: str, factors: Factors
) -> Iterator[tuple[str, int, str]]:
    """The letters of an operand's axes, the sizes those tell of them, and the verb for it."""
    for axis, size in axes_of(call, at, template):
        if not isinstance(size, int):
            continue
        letter, sign, factor = axis[0], axis[1:2], factors.get(axis[2:])
        if sign and factor is None:
            continue
        if sign == "*":
            factor = factor or 1
            if size % factor:
                raise ConversionError(
                    f"{call.show(at)} has an axis of {size}, no multiple of {factor}. {HINT}"
                )
            yield letter, size // factor, "has"
        else:
            yield letter, size * (factor or 1), "takes" if sign else "has"


def axes_of(call: Call, at: int, template: str) -> Iterator[tuple[str, Dim]]:
    """What a template has for the axes of an operand that are compared, and their sizes."""
    shape, axes = call.shape(at), template.split()
    if shape is None or (len(axes) != len(shape) and "..." not in axes):
        return
    if "..." in axes and len(shape) < len(axes) - 1:
        return
    for axis, size in zip(axes, shape, strict=False):
        if axis == "...":
            return
        if axis != ".":
            yield axis, size


def _group_factors(call: Call) -> Factors:
    return {"group": call.attrs.get("group", 1)}


def _recurrent_factors(gates: int) -> Callable[[Call], Factors]:
    def factors(call: Call) -> Factors:
        directions = 2 if call.attrs.get("direction") == "bidirectional" else 1
        counts = {"gates": gates, "both": 2 * gates, "peepholes": 3, "D": directions}
        hidden = call.attrs.get("hidden_size")
        return counts if hidden is None else {**counts, "H": hidden}

    return factors


def _recurrent_templates(call: Call) -> Templates:
    first, state = ("B T I", "B D H") if call.attrs.get("layout") else ("T B I", "D B H")
    return first, "D H*gates I", "D H*gates H", "D H*both", "B", state, state, "D H*peepholes"


def _head_factors(call: Call) -> Factors:
    shape = call.shape(0)
    if shape is not None and len(shape) == 4:
        key = call.shape(1)
        keys = key[1] if key is not None and len(key) == 4 else None
        return {"kv_num_heads": keys} if isinstance(keys, int) else {}
    return {n: v for n, v in call.attrs.items() if n in ("q_num_heads", "kv_num_heads")}


def _attention_templates(call: Call) -> Templates:
    past = "B K P E", "B K P V"
    if len(call.shape(0) or ()) == 4:
        return "B Q S E", "B K T E", "B K T V", "...", *past
    return "B S E*q_num_heads", "B T E*kv_num_heads", "B T V*kv_num_heads", "...", *past


def _offset_factors(call: Call) -> Factors:
    """Two offsets and one factor for each point of the kernel and each group."""
    kernel = call.shape(1)
    sizes: Sequence[Dim] = call.attrs.get("kernel_shape") or (kernel or ())[2:]
    numbers = [n for n in sizes if isinstance(n, int)]
    counts = _group_factors(call)
    if kernel is None or len(numbers) < len(kernel) - 2:
        return counts
    points = prod(numbers) * call.attrs.get("offset_group", 1)
    return {**counts, "offsets": 2 * points, "points": points, "1": 1}


def _block_factors(call: Call) -> Factors:
    size = call.attrs.get("blocksize", 1)
    return {"blocksize": size, "blocksize²": size * size}


def _batch_normalization_templates(call: Call) -> Templates:
    """Below opset 9 ``spatial=0`` has a parameter for each element of a sample."""
    parameters = ("C",) * 4 if call.attrs.get("spatial", 1) else ()
    return "B C ...", *parameters


def _group_normalization_templates(call: Call) -> Templates:
    """Below opset 21 there is a scale and a bias for each group."""
    parameter = "C" if call.operator.since >= 21 else "G"
    return "B C ...", parameter, parameter


def _num_group_factors(call: Call) -> Factors:
    groups = call.attrs.get("num_groups", 1)
    return {"num_groups": groups, "G": groups}


CONVOLUTION = {"C": "group", "M": "group"}
CHECKS: Mapping[str, Check] = {
    "Attention": Check(_attention_templates, _head_factors, {"Q": "kv_num_heads"}),
    "BatchNormalization": Check(_batch_normalization_templates),
    "Conv": Check(("B C ...", "M C/group ...", "M"), _group_factors, CONVOLUTION),
    "ConvInteger": Check(("B C ...", "M C/group ..."), _group_factors, CONVOLUTION),
    "ConvTranspose": Check(("B C ...", "C M/group ...", "M"), _group_factors, {"C": "group"}),
    "DeformConv": Check(
        ("B C ...", "M C/group ...", "B 1*offsets ...", "M", "B 1*points ..."),
        _offset_factors,
        CONVOLUTION,
    ),
    "DepthToSpace": Check(("B C ...",), _block_factors, {"C": "blocksize²"}),
    "GRU": Check(_recurrent_templates, _recurrent_factors(3)),
    "GroupNormalization": Check(
        _group_normalization_templates, _num_group_factors, {"C": "num_groups"}
    ),
    "InstanceNormalization": Check(("B C ...", "C", "C")),
    "LSTM": Check(_recurrent_templates, _recurrent_factors(4)),
    "NonMaxSuppression": Check(("B L .", "B J L")),
    "QLinearConv": Check(
        ("B C ...", "", "", "M C/group ...", "", "", "", "", "M"), _group_factors, CONVOLUTION
    ),
    "RNN": Check(_recurrent_templates, _recurrent_factors(1)),
    "SoftmaxCrossEntropyLoss": Check(("B J ...", "B ...", "J")),
    "SpaceToDepth": Check((". . Y Z",), _block_factors, {"Y": "blocksize", "Z": "blocksize"}),
}


def _check_kernel(weight: int) -> Callable[[Call], None]:
    def check(call: Call) -> None:
        shape, kernel = call.shape(weight), call.attrs.get("kernel_shape")
        if shape is None or kernel is None or len(shape) != len(kernel) + 2:
            return
        fits = all(a == b for a, b in zip(shape[2:], kernel, strict=True) if isinstance(a, int))
        require(fits, f"{call.show(weight)} is not of kernel_shape={tuple(kernel)}")

    return check


def _check_broadcast(call: Call) -> None:
    """Parameters have sizes that broadcast to those of the data, both aligned at the end."""
    data = call.shape(0)
    for at in range(1, len(call.inputs)):
        shape = call.shape(at)
        if data is None or shape is None:
            continue
        pairs = zip(reversed(shape), reversed(data), strict=False)
        fits = all(1 in (a, b) or may_be_same(a, b) for a, b in pairs)
        require(fits, f"{call.show(at)} does not broadcast to {call.show(0)}. {HINT}")


def gemm_features(call: Call) -> list[tuple[Dim, Dim]]:
    """The sizes along which both matrices are multiplied, where they are matrices."""
    a, b = call.shape(0), call.shape(1)
    if a is None or b is None or len(a) != 2 or len(b) != 2:
        return []
    return [(a[0 if call.attrs.get("transA") else 1], b[1 if call.attrs.get("transB") else 0])]


def _check_gemm(call: Call) -> None:
    a, b, c = (call.shape(at) for at in range(3))
    if a is None or b is None or len(a) != 2 or len(b) != 2:
        return
    _require_features(call, *gemm_features(call))
    rows = a[1 if call.attrs.get("transA") else 0]
    columns = b[0 if call.attrs.get("transB") else 1]
    if c is None or call.operator.since < 7:  # C was broadcast as an attribute said
        return
    sizes = zip(reversed(c), (columns, rows), strict=False)
    fits = len(c) <= 2 and all(n == 1 or may_be_same(n, m) for n, m in sizes)
    product = show_shape((rows, columns))
    require(fits, f"{call.show(2)} does not broadcast to the product of shape {product}. {HINT}")


def matmul_features(call: Call) -> list[tuple[Dim, Dim]]:
    """The sizes along which both operands are multiplied."""
    a, b = call.shape(0), call.shape(1)
    return [(a[-1], b[max(len(b) - 2, 0)])] if a and b else []


def _check_matmul(call: Call) -> None:
    _require_features(call, *matmul_features(call))


def _require_features(call: Call, *pairs: tuple[Dim, Dim]) -> None:
    for left, right in pairs:
        require(
            may_be_same(left, right),
            f"{call.show(0)} has {left} features, but {call.show(1)} takes {right}. {HINT}",
        )


def _check_scatter_nd(call: Call) -> None:
    data, indices, updates = (call.shape(at) for at in range(3))
    if data is None or not indices or updates is None or not isinstance(indices[-1], int):
        return
    depth = indices[-1]
    require(depth <= len(data), f"{call.show(1)} indexes more axes than {call.show(0)} has")
    expected = (*indices[:-1], *data[depth:])
    fits = _may_be_one_shape(expected, updates)
    require(fits, f"{call.show(2)} is not of shape {show_shape(expected)}. {HINT}")


def _check_along_axis(call: Call) -> None:
    """Indices have the rank of the data, and updates the shape of the indices."""
    data, indices, updates = (call.shape(at) for at in range(3))
    if data is None or indices is None:
        return
    require(len(data) == len(indices), f"{call.show(1)} has not the rank of {call.show(0)}")
    if updates is None:
        return
    require(
        _may_be_one_shape(indices, updates), f"{call.show(2)} is not of the shape of {call.show(1)}"
    )


def _check_reshape(call: Call) -> None:
    """The new shape has as many elements, where all sizes are numbers."""
    old, new = call.shape(0), shape_data_of(call.inputs[1] if len(call.inputs) > 1 else None)
    if old is None or new is None:
        return
    if not call.attrs.get("allowzero"):
        new = tuple(old[at] if d == 0 and at < len(old) else d for at, d in enumerate(new))
    known = all(isinstance(size, int) for size in (*old, *new)) and -1 not in new
    fits = not known or prod(old) == prod(new)  # type: ignore[arg-type]
    require(fits, f"{call.show(0)} has not as many elements as {show_shape(new)}. {HINT}")


def _check_scale(call: Call) -> None:
    """A scale for each slice along an axis, or one for all."""
    data, axis = call.shape(0), call.attrs.get("axis", 1)
    for at in range(1, len(call.inputs)):
        scale = call.shape(at)
        if data is None or scale is None or len(scale) != 1 or call.attrs.get("block_size"):
            continue
        if not -len(data) <= axis < len(data):
            continue
        size, count = data[axis], scale[0]
        fits = count == 1 or may_be_same(count, size)
        require(
            fits,
            f"{call.show(0)} has {size} slices along axis {axis}, but {call.show(at)} is for "
            f"{count}. {HINT}",
        )


def _check_lengths(call: Call) -> None:
    data, axis = call.shape(0), call.attrs.get("batch_axis", 1)
    lengths = call.shape(1)
    if data is None or lengths is None or len(lengths) != 1 or not axis < len(data):
        return
    fits = may_be_same(lengths[0], data[axis])
    require(fits, f"{call.show(1)} is not for the {data[axis]} sequences of {call.show(0)}. {HINT}")


def _check_same_shape(call: Call) -> None:
    a, b = call.shape(0), call.shape(1)
    if a is None or b is None:
        return
    require(
        _may_be_one_shape(a, b), f"{call.show(1)} is not of the shape of {call.show(0)}. {HINT}"
    )


def _may_be_one_shape(a: Shape, b: Shape) -> bool:
    """Whether nothing that is known keeps two shapes from being the same."""
    return len(a) == len(b) and all(map(may_be_same, a, b))


RULES: Mapping[str, Callable[[Call], None]] = {
    "Conv": _check_kernel(1),
    "ConvInteger": _check_kernel(1),
    "ConvTranspose": _check_kernel(1),
    "DeformConv": _check_kernel(1),
    "DequantizeLinear": _check_scale,
    "GatherElements": _check_along_axis,
    "Gemm": _check_gemm,
    "LayerNormalization": _check_broadcast,
    "MatMul": _check_matmul,
    "MatMulInteger": _check_matmul,
    "MaxUnpool": _check_same_shape,
    "PRelu": _check_broadcast,
    "QLinearConv": _check_kernel(3),
    "QuantizeLinear": _check_scale,
    "RMSNormalization": _check_broadcast,
    "Reshape": _check_reshape,
    "ReverseSequence": _check_lengths,
    "ScatterElements": _check_along_axis,
    "ScatterND": _check_scatter_nd,
}
