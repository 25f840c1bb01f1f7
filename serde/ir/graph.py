"""The graph every format meets in: plain data, no framework and no protobuf."""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, field
from importlib import import_module
from itertools import chain
from types import MappingProxyType
from typing import Any, NamedTuple, Union, cast

import numpy as np

from serde.errors import ConversionError, shorten_tracebacks
from serde.ir.dtype import BYTES as BYTES
from serde.ir.dtype import DType as DType
from serde.ir.printer import (
    describe_graph,
    describe_node,
    describe_tensor,
    describe_value,
    print_graph,
)

IR_OPSET = 28  # the newest opset onnx 1.23 defines; the IR's operators are those of this opset
Dim = int | str | None  # a size, a named size, or unknown
Shape = tuple[Dim, ...]
DYNAMIC = frozenset({str, type(None)})  # types of the dimensions that are no sizes
Attr = Union[int, float, str, bytes, tuple[Any, ...], "Tensor", "Graph", "AttrRef"]
EMPTY: Mapping[str, Any] = MappingProxyType({})
RUNNER = "serde.verification.run_model"  # above the IR: named as entry points are


def _empty() -> Mapping[str, Any]:
    return EMPTY


class Run(NamedTuple):
    """Neighbouring elements of a constant: the names of the weights that they are of, how many.

    Where they are neighbours in one weight too, ``begin`` is the first of them there, ``shape``
    that of the weight, ``is_ordered`` tells whether they are in its order, and ``whole`` is the
    weight, where it is at hand.
    """

    names: tuple[str, ...]
    size: int
    begin: int | None = None
    shape: tuple[int, ...] = ()
    is_ordered: bool = True
    whole: Tensor | None = None


Origins = tuple[Run, ...]


@dataclass(frozen=True, eq=False, slots=True)
class Call:
    """One call of a function the source defines, which a reader inlined.

    ``params`` are the values of the source's graph that were given, each with its parameter's name.
    ``fused`` tells a function that a compiler made of neighbours and nobody named.
    """

    name: str
    params: tuple[tuple[Value, str], ...] = ()
    fused: bool = False


@dataclass(unsafe_hash=True, slots=True)
class Source:
    """Where a node came from, as the user would look for it, and what was written about it.

    ``calls`` are those it is inside of, outermost first; ``metadata`` are pairs that its file has,
    ``results`` the names of its results that the file has more to say of.
    """

    format: str
    op: str
    name: str
    doc: str = field(default="", compare=False)
    calls: tuple[Call, ...] = ()
    metadata: tuple[tuple[str, str], ...] = field(default=(), compare=False)
    results: tuple[str, ...] = field(default=(), compare=False)

    def __str__(self) -> str:
        return f"{self.format} node {self.name!r} ({self.op})"


@dataclass(unsafe_hash=True, slots=True)
class FileSlice:
    """``nbytes`` bytes of ``path`` from ``offset``, little-endian and row-major as in ONNX.

    ``file`` is the device and inode of the file that was looked at, if a reader set it: a file
    that took its place is not read.
    """

    path: str
    offset: int
    nbytes: int
    file: tuple[int, int] | None = None


@dataclass(eq=False, slots=True, repr=False)
class Tensor:
    """A constant whose bytes are fetched only when someone looks at them.

    ``load`` returns the array of ``dtype`` and ``shape``; ``where`` is set when the bytes lie
    in a file as they are, so that a writer can copy them without reading them.
    """

    dtype: DType
    shape: tuple[int, ...]
    load: Callable[[], np.ndarray[Any, Any]]
    where: FileSlice | None = None
    __repr__ = describe_tensor

    @classmethod
    def of(cls, array: np.ndarray[Any, Any]) -> Tensor:
        """Hold ``array`` itself, which none who loads it can write into."""
        view = np.asarray(array).view()
        view.flags.writeable = False
        return cls(DType.of(view.dtype), view.shape, lambda: view)

    @property
    def size(self) -> int:
        """Number of elements."""
        return math.prod(self.shape)

    @property
    def nbytes(self) -> int:
        """Bytes in a file, 2- and 4-bit elements packed; 0 for strings."""
        return (math.prod(self.shape) * self.dtype.bits + 7) // 8


SIZES = "give numbers for sizes (--static, --input)"


@dataclass(eq=False, slots=True, repr=False)
class Value:
    """One tensor flowing through a graph. Identity is the object; the name is a label.

    ``shape`` None is an unknown rank. ``tensor`` is set for constants. ``shape_data`` holds what
    is known of the contents of a small integer tensor (a computed shape), sizes by name included.
    ``name_is_original`` marks a weight whose name is the source's own, and stays; ``origins`` are
    the weights that a constant was made of, in runs of its elements.
    ``container`` lists what is around the tensor, outermost first: ``("optional", "sequence")``,
    ``("map:int64",)``, ``("sparse",)``.
    """

    name: str
    dtype: DType | None = None
    shape: Shape | None = None
    tensor: Tensor | None = None
    shape_data: tuple[Dim, ...] | None = None
    container: tuple[str, ...] = ()
    name_is_original: bool = False
    origins: Origins = ()
    __repr__ = describe_value

    @property
    def ranked_shape(self) -> Shape:
        """The shape, or a refusal when not even the rank is known."""
        if self.shape is None:
            raise ConversionError(f"needs the rank of {self.name!r}: give the shapes of the inputs")
        return self.shape

    @property
    def rank(self) -> int:
        """Number of dimensions."""
        return len(self.ranked_shape)

    @property
    def static_shape(self) -> tuple[int, ...]:
        """The shape, all of it static."""
        if not self.is_static:
            shown = "unknown" if self.shape is None else show_shape(self.shape)
            raise ConversionError(
                f"needs the static shape of {self.name!r}, which is {shown}: {SIZES}"
            )
        return self.shape  # type: ignore[return-value]

    @property
    def type(self) -> DType:
        """The element type, or a refusal when it is unknown."""
        if self.dtype is None:
            raise ConversionError(f"needs the element type of {self.name!r}")
        return self.dtype

    @property
    def is_static(self) -> bool:
        """Whether every dimension is a known number."""
        return self.shape is not None and DYNAMIC.isdisjoint(map(type, self.shape))

    def array(self) -> np.ndarray[Any, Any]:
        """The contents of a constant."""
        if self.tensor is None:
            raise ConversionError(f"needs {self.name!r} to be a constant: make it one, or {SIZES}")
        return self.tensor.load()

    def ints(self) -> tuple[int, ...]:
        """The elements of a constant integer value, flattened."""
        try:
            return tuple(int(i) for i in self.array().ravel())
        except (ValueError, OverflowError):  # of a float that is no number
            raise ConversionError(f"needs {self.name!r} to hold integers") from None


@dataclass(eq=False, slots=True, repr=False)
class Node:
    """One operator call. ``sources`` has several entries after a fusion.

    Nodes, sources and tensors are never changed, only replaced. They are not ``frozen``: that makes
    each of them four times as slow to make, and there is one for every layer and weight.
    """

    op: str
    inputs: tuple[Value | None, ...]
    outputs: tuple[Value, ...]
    attrs: Mapping[str, Attr] = field(default_factory=_empty)
    domain: str = ""
    name: str = ""
    sources: tuple[Source, ...] = ()
    _graphs: tuple[Graph, ...] = field(init=False, repr=False)
    __repr__ = describe_node

    def __post_init__(self) -> None:
        attrs = self.attrs
        self._graphs = ()
        if attrs and Graph in map(type, attrs.values()):
            self._graphs = tuple([v for v in attrs.values() if isinstance(v, Graph)])

    @property
    def qualified_op(self) -> str:
        """The operator, behind its domain where that is not the default: ``com.acme:Foo``."""
        return f"{self.domain}:{self.op}" if self.domain else self.op

    def graphs(self) -> tuple[Graph, ...]:
        """The subgraphs among the attributes."""
        return self._graphs


@dataclass(frozen=True, eq=False, slots=True, repr=False)
class Graph:
    """A dataflow graph, nodes in topological order.

    ``opset`` is the version of the default ONNX domain; ``imports`` are those of other domains.
    Graphs held by attributes (``If``, ``Loop``, ``Scan``) use Values of the graphs around them
    directly. ``notes`` tell people what of its file the graph does not hold. ``source_info`` is
    what a reader hands to its own ``to_ir``, which drops it. ``explicit`` are
    operators and attributes of them that a file has though they are the defaults. ``files`` are
    those that it was read from, and that weights may still be read from. ``arrays`` are the weights
    that its file names, also those that no node reads.
    """

    name: str
    inputs: tuple[Value, ...]
    outputs: tuple[Value, ...]
    nodes: tuple[Node, ...]
    domain: str = ""
    opset: int = IR_OPSET
    functions: tuple[Function, ...] = ()
    metadata: Mapping[str, str] = field(default_factory=_empty)
    imports: Mapping[str, int] = field(default_factory=_empty)
    notes: tuple[str, ...] = ()
    source_info: object | None = None
    explicit: frozenset[tuple[str, str]] = frozenset()
    files: frozenset[str] = frozenset()
    arrays: tuple[Value, ...] = ()
    _facts: dict[str, Any] = field(init=False, repr=False, default_factory=dict)  # once computed
    __repr__ = describe_graph

    def all_nodes(self) -> Iterator[Node]:
        """Every node, those of subgraphs included, in no particular order."""
        stack: list[Graph] = [self]
        while stack:
            for node in stack.pop().nodes:
                yield node
                if node._graphs:
                    stack.extend(node._graphs)

    def ordered_nodes(self) -> Iterator[Node]:
        """Every node in the order of execution, those of subgraphs after the node they are of."""
        for node in self.nodes:
            yield node
            for body in node.graphs():
                yield from body.ordered_nodes()

    def all_values(self) -> Iterator[Value]:
        """Every constant, input and result, those of subgraphs included, in no particular order."""
        yield from self.constants()
        yield from self.inputs
        for node in self.all_nodes():
            yield from node.outputs
            for body in node._graphs:
                yield from body.inputs

    def constants(self) -> Iterator[Value]:
        """Every constant the nodes and outputs use, once, subgraphs included."""
        if "constants" not in self._facts:
            values = dict.fromkeys(chain.from_iterable(self._reads()))
            constants = [v for v in values if v is not None and v.tensor is not None]
            self._facts["constants"] = constants
        return iter(self._facts["constants"])

    def operators(self) -> frozenset[str]:
        """The operators of nodes, those of subgraphs included, whatever their domains."""
        if "operators" not in self._facts:
            self._facts["operators"] = frozenset([node.op for node in self.all_nodes()])
        return self._facts["operators"]  # type: ignore[no-any-return]

    def list_files(self) -> set[str]:
        """The files that weights lie in, or may."""
        places = (v.tensor.where for v in self.constants() if v.tensor is not None)
        return {place.path for place in places if place is not None} | self.files

    def _reads(self) -> list[tuple[Value | None, ...]]:
        """What each node, and then the outputs, read; those of subgraphs last."""
        reads: list[tuple[Value | None, ...]] = []
        stack: list[Graph] = [self]
        while stack:
            graph = stack.pop()
            reads += [node.inputs for node in graph.nodes]
            reads.append(graph.outputs)
            for node in graph.nodes:
                if node._graphs:
                    stack.extend(node._graphs)
        return reads

    def uses(self) -> Counter[Value]:
        """How often each value is read by nodes and outputs, subgraphs included."""
        count = Counter(chain.from_iterable(self._reads()))
        del count[None]
        return cast("Counter[Value]", count)

    @shorten_tracebacks
    def __call__(self, *arrays: Any, **named: Any) -> dict[str, Any]:
        """The outputs by name, for arrays in order or by name, as ``serde.run`` gives them."""
        run: Callable[..., dict[str, Any]] = import_module(RUNNER).run_graph
        return run(self, *arrays, **named)

    def __str__(self) -> str:
        return print_graph(self)

    def _repr_html_(self) -> str:
        """The picture that a notebook shows."""
        from serde.ir.picture.svg import show_in_notebook

        return show_in_notebook(self)


@dataclass(frozen=True, eq=False, slots=True)
class Function:
    """A function of the module, called by nodes whose ``domain`` and ``op`` are its own.

    ``attrs`` maps the attributes a call may set to their defaults, None where a call must set
    them; inside ``body`` they appear as ``AttrRef``.
    """

    domain: str
    name: str
    body: Graph
    attrs: Mapping[str, Attr | None] = field(default_factory=_empty)


@dataclass(frozen=True, slots=True)
class AttrRef:
    """Stands, in a function's body, for the value a call gives to attribute ``name``.

    ``kind`` is the ONNX attribute type's name (``INT``, ``FLOATS``, …).
    """

    name: str
    kind: str


def show_shape(shape: Shape | None) -> str:
    """Print a shape the way users write it: ``(N, 3, ?, 224)``."""
    if shape is None:
        return "(unknown rank)"
    return f"({', '.join('?' if d is None else str(d) for d in shape)})"
