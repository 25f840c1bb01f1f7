"""Shapes and types of inputs nothing was said of, from the operators that read them.

A ``Convolution`` with a two-dimensional kernel and a known weight makes ``(N, C, H, W)``.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace

from serde.errors import ConversionError, UsageError
from serde.graph import Dim, DType, Graph, Node, Shape, Value
from serde.passes.replacing import replace_values

from .params import TYPES
from .rules import parse

INTS = tuple[int, ...]
SPACE = {1: ("W",), 2: ("H", "W"), 3: ("D", "H", "W")}
# Operators whose (first) output has the shape and type of their first input.
SAME_SHAPE = frozenset(
    "Activation BatchNorm Dropout LeakyReLU LRN InstanceNorm L2Normalization clip relu sigmoid tanh "
    "_plus_scalar _minus_scalar _rminus_scalar _mul_scalar _div_scalar _rdiv_scalar _copy identity "
    "BlockGrad _power_scalar softmax log_softmax amp_cast Cast exp log sqrt square abs negative "
    "_PlusScalar _MinusScalar _MulScalar _DivScalar _RMinusScalar _RDivScalar".split()
)
DEPTH = 64  # how far down an input is followed


def complete_inputs(graph: Graph, variables: Mapping[str, Mapping[str, str]]) -> Graph:
    """Return ``graph`` with a shape and a type on every input that operators tell one of.

    Raises:
        UsageError: naming the inputs whose rank nothing determines.
    """
    readers: dict[Value, list[tuple[Node, int]]] = {}
    for node in graph.nodes:
        for at, value in enumerate(node.inputs):
            if value is not None:
                readers.setdefault(value, []).append((node, at))
    instead = {}
    for value in graph.inputs:
        attrs = variables.get(value.name, {})
        shape = value.shape or _said(attrs) or _shape(value, readers, DEPTH)
        dtype = value.dtype or _dtype_said(attrs) or _dtype(value, readers, DEPTH)
        instead[value] = Value(value.name, dtype or DType.FLOAT32, shape)
    renewed = replace_values(graph, instead)
    return replace(renewed, inputs=tuple(instead[v] for v in graph.inputs))


def refuse_unknown(graph: Graph) -> None:
    """Ask for the shapes of inputs that the graph reads and nothing tells the rank of."""
    read = graph.uses()
    unknown = [v.name for v in graph.inputs if v.shape is None and v in read]
    if unknown:
        raise UsageError(
            f"the shape of {', '.join(map(repr, unknown))} cannot be told from the operators: "
            f"give it, as in --input {unknown[0]}=N,3,224,224"
        )


def _said(attrs: Mapping[str, str]) -> Shape | None:
    if "__shape__" not in attrs:
        return None
    dims = parse(INTS, attrs["__shape__"])
    return tuple(d if d > 0 else None for d in dims) or None


def _dtype_said(attrs: Mapping[str, str]) -> DType | None:
    flag = attrs.get("__dtype__", "-1")
    code = parse(int, flag)
    return TYPES[code] if 0 <= code < len(TYPES) else None


def _shape(
    value: Value, readers: Mapping[Value, list[tuple[Node, int]]], depth: int
) -> Shape | None:
    if value.shape is not None or depth == 0:
        return value.shape
    for node, at in readers.get(value, ()):
        found = _asked(node, at, readers, depth) if at == 0 else None
        if found is not None:
            return found
    return None


def _asked(
    node: Node, at: int, readers: Mapping[Value, list[tuple[Node, int]]], depth: int
) -> Shape | None:
    """The shape an operator asks of its first operand."""
    try:
        if node.op in ("Convolution", "Deconvolution"):
            return _image(node)
        if node.op == "Pooling" and "kernel" in node.attrs:
            return _spatial(None, len(parse(INTS, node.attrs["kernel"])), node)
        if node.op == "FullyConnected" and _weight(node) is not None:
            flat = node.attrs.get("flatten", "True") in ("True", "1")
            return ("N", _weight(node)[1]) if flat else None  # type: ignore[index]
        if node.op == "RNN":
            return ("T", "N", _features(node))
        if node.op == "Embedding":
            below = _shape(node.outputs[0], readers, depth - 1)
            return None if below is None else below[:-1]
        if node.op in ("SwapAxis", "swapaxes"):
            return _swapped(node, _shape(node.outputs[0], readers, depth - 1))
    except ConversionError:
        return None
    return _shape(node.outputs[0], readers, depth - 1) if node.op in SAME_SHAPE else None


def _weight(node: Node) -> tuple[int, ...] | None:
    w = node.inputs[1] if len(node.inputs) > 1 else None
    return w.tensor.shape if w is not None and w.tensor is not None else None


def _image(node: Node) -> Shape | None:
    weight = _weight(node)
    kernel = parse(INTS, node.attrs["kernel"])
    channels: Dim = None
    if weight is not None:
        groups = parse(int, node.attrs.get("num_group", "1"))
        first = node.attrs.get("layout", "None")
        inner = -1 if str(first).endswith("C") else 1
        channels = weight[0] if node.op == "Deconvolution" else weight[inner] * groups
    return _spatial(channels, len(kernel), node)


def _spatial(channels: Dim, count: int, node: Node) -> Shape | None:
    if count not in SPACE:
        return None
    if str(node.attrs.get("layout", "None")).endswith("C"):
        return ("N", *SPACE[count], channels)
    return ("N", channels, *SPACE[count])


def _features(node: Node) -> Dim:
    """The features an RNN reads, from the number of its parameters."""
    flat = node.inputs[1] if len(node.inputs) > 1 else None
    if flat is None or flat.tensor is None:
        return None
    h, layers = parse(int, node.attrs["state_size"]), parse(int, node.attrs["num_layers"])
    d = 2 if node.attrs.get("bidirectional", "False") in ("True", "1") else 1
    g = {"lstm": 4, "gru": 3}.get(str(node.attrs["mode"]), 1)
    rest = flat.tensor.size - (layers - 1) * d * g * h * (d * h + h) - layers * d * 2 * g * h
    features = rest // (d * g * h) - h
    return features if features > 0 else None


def _swapped(node: Node, shape: Shape | None) -> Shape | None:
    if shape is None:
        return None
    a, b = (parse(int, node.attrs.get(k, "0")) for k in ("dim1", "dim2"))
    dims = list(shape)
    dims[a], dims[b] = dims[b], dims[a]
    return tuple(dims)


def _dtype(
    value: Value, readers: Mapping[Value, list[tuple[Node, int]]], depth: int
) -> DType | None:
    """The element type of the weight an input meets, where it is a float's."""
    if depth == 0:
        return None
    for node, at in readers.get(value, ()):
        if at != 0:
            continue
        w = node.inputs[1] if len(node.inputs) > 1 else None
        meets = node.op in ("Convolution", "Deconvolution", "FullyConnected", "RNN")
        if meets and w is not None and w.dtype is not None:
            return w.dtype
        if node.op in SAME_SHAPE and node.op not in ("Cast", "amp_cast"):
            found = _dtype(node.outputs[0], readers, depth - 1)
            if found is not None:
                return found
    return None
