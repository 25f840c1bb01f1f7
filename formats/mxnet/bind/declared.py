"""What nodes and operators declare of variables, before anything is inferred."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator, Mapping
from typing import Any, NamedTuple

from serde.errors import REQUIRED, ConversionError
from serde.ir.geometry import Ints, check_sizes
from serde.ir.graph import DType, Graph, Node, Shape

from ..io.params import TYPES
from ..operators import describe
from ..rules import parse

Attrs = Mapping[str, Any]

SUFFIXES = (
    "_weight", "_bias", "_gamma", "_beta", "_moving_mean", "_moving_var", "_running_mean",
    "_running_var", "_parameters",
)  # fmt: skip

TRAINING = frozenset({"__init__", "__lr_mult__", "__wd_mult__", "lr_mult", "wd_mult"})


def is_parameter_name(name: str) -> bool:
    """Whether a variable of that name is a parameter, whatever reads it."""
    return name.endswith(SUFFIXES)


def is_channels_last(attrs: Attrs) -> bool:
    """Whether an operator's ``layout`` has the channels last."""
    return str(attrs.get("layout")).endswith("C")


def _convolution(attrs: Attrs, x: Shape | None = None) -> tuple[Shape, ...]:
    count, kernel = parse(int, attrs["num_filter"]), parse(Ints, attrs["kernel"])
    last = is_channels_last(attrs)
    channels = None if x is None else x[-1 if last else 1]
    if isinstance(channels, int):
        channels //= parse(int, attrs.get("num_group", "1"))
    per_group = channels if isinstance(channels, int) else None
    return ((count, *kernel, per_group) if last else (count, per_group, *kernel)), (count,)


def _deconvolution(attrs: Attrs, x: Shape | None = None) -> tuple[Shape, ...]:
    count, kernel = parse(int, attrs["num_filter"]), parse(Ints, attrs["kernel"])
    per_group, last = count // parse(int, attrs.get("num_group", "1")), is_channels_last(attrs)
    channels = None if x is None else x[-1 if last else 1]
    channels = channels if isinstance(channels, int) else None
    return ((channels, *kernel, per_group) if last else (channels, per_group, *kernel)), (count,)


def _fully_connected(attrs: Attrs, x: Shape | None = None) -> tuple[Shape, ...]:
    count = parse(int, attrs["num_hidden"])
    sizes = () if x is None else x[1:] if parse(bool, attrs.get("flatten", "True")) else x[-1:]
    numbers = [d for d in sizes if isinstance(d, int)]
    known = sizes and len(numbers) == len(sizes)
    return (count, math.prod(numbers) if known else None), (count,)


def _embedding(attrs: Attrs, x: Shape | None = None) -> tuple[Shape, ...]:
    return ((parse(int, attrs["input_dim"]), parse(int, attrs["output_dim"])),)


# Shapes of an operator's parameters, as its attributes tell them, and its data's shape where that
# is given; others are rows.
SHAPES: dict[str, Callable[..., tuple[Shape, ...]]] = {
    "Convolution": _convolution,
    "Convolution_v1": _convolution,
    "Deconvolution": _deconvolution,
    "Embedding": _embedding,
    "FullyConnected": _fully_connected,
}


def find_expected_shapes(graph: Graph) -> Iterator[tuple[str, Node, Shape | None]]:
    """Each parameter a node reads: its name, the node, and the shape that node's attributes ask.

    Sizes the attributes leave open are None, as is a shape they do not tell.
    """
    for node in graph.nodes:
        positions = describe(node.op).parameters
        shapes = _shapes(node, len(positions)) if positions else ()
        for at, shape in zip(positions, shapes, strict=True):
            operand = node.inputs[at] if at < len(node.inputs) else None
            if operand is not None:
                yield operand.name, node, shape


def list_parameters(graph: Graph) -> set[str]:
    """The names of all that nodes read as parameters."""
    layers = ((n, describe(n.op).parameters) for n in graph.nodes)
    return {
        v.name for n, positions in layers if positions
        for at, v in enumerate(n.inputs) if at in positions and v is not None
    }  # fmt: skip


def read_shapes(node: Node) -> tuple[Shape, ...]:
    """The shapes of parameters that the attributes of a node of ``SHAPES`` tell.

    Raises:
        ConversionError: for one that lacks an attribute they need, or has it wrong.
    """
    try:
        return SHAPES[node.op](node.attrs)
    except KeyError as error:
        raise ConversionError(REQUIRED.format(error.args[0])) from error


def _shapes(node: Node, count: int) -> tuple[Shape | None, ...]:
    if node.op not in SHAPES:
        return ((None,),) * count
    try:
        return read_shapes(node)
    except (ConversionError, ZeroDivisionError):
        return (None,) * count  # its rule will say what is wrong with the attributes


def is_compatible_shape(shape: Shape, expected: Shape | None) -> bool:
    """Whether ``shape`` is as expected, in all that is."""
    if expected is None or len(shape) != len(expected):
        return expected is None
    return all(e is None or d == e for d, e in zip(shape, expected, strict=True))


class Declared(NamedTuple):
    """What the node of a variable says of it; a size it leaves open is None.

    ``is_trained`` where it says how the variable is trained or initialized, as Gluon does of each
    parameter.
    """

    shape: Shape | None = None
    dtype: DType | None = None
    is_trained: bool = False


def read_declared(attrs: Mapping[str, str], np_shape: bool) -> Declared:
    """Read ``__shape__`` (dynamic sizes: 0, or -1 with NumPy shapes) and ``__dtype__``."""
    is_trained = not TRAINING.isdisjoint(attrs)
    if "__shape__" not in attrs and "__dtype__" not in attrs:
        return Declared(is_trained=is_trained)
    dims = parse(Ints | None, attrs.get("__shape__", "None"))
    shape: Shape | None = None
    check_sizes("it", dims or (), least=-1)
    if dims or (dims is not None and np_shape):
        shape = tuple(None if d < 0 or (d == 0 and not np_shape) else d for d in dims)
    code = parse(int, attrs.get("__dtype__", "-1"))
    return Declared(shape, TYPES[code] if 0 <= code < len(TYPES) else None, is_trained)
