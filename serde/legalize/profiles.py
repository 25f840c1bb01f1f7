"""What a group of consumers asks of an ONNX file beyond the standard."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from types import MappingProxyType
from typing import Any, NamedTuple

import numpy as np

from serde.errors import UsageError
from serde.ir.graph import DType, Graph, Node, Value, show_shape
from serde.legalize.convert import without_functions
from serde.passes.signed_integers import make_signed

INT32 = np.iinfo(np.int32)
QDQ: Mapping[str, Any] = MappingProxyType({"integers": "qdq"})
FOLDED: Mapping[str, Any] = MappingProxyType({"fold_batchnorm": True})
# Operators that runtimes lag behind with; each is decomposed into older ones.
RECENT = frozenset("Attention GroupNormalization RMSNormalization RotaryEmbedding Swish".split())


class Profile(NamedTuple):
    """The opset written unless one is asked for, and what the graph must keep to.

    ``decomposed`` operators are written as older ones; ``int32`` keeps 64-bit constants within 32
    bits; ``static`` refuses dimensions that have no number; ``functions`` says which functions of
    the source the file has too (``serde.rewrite.outline``). ``integer_kernels`` writes products of
    integers in units of 1 as ``QLinearConv`` and ``QLinearMatMul``, for consumers that have these.
    ``importer`` names what the file is legalized for: a consumer, or the target of a plug-in.
    ``signed`` quantizes by int8 in place of uint8. ``reading`` are options that sources are read
    with unless the caller gives them.
    """

    opset: int = 17
    decomposed: frozenset[str] = frozenset()
    int32: bool = False
    static: bool = False
    functions: str = "keep"
    integer_kernels: bool = False
    importer: str | None = None
    signed: bool = False
    reading: Mapping[str, Any] = MappingProxyType({})

    def write_options(self) -> dict[str, Any]:
        """The options ONNX is written with, unless others are given."""
        return {
            "opset": self.opset, "decomposed": self.decomposed, "functions": self.functions,
            "integer_kernels": self.integer_kernels,
            "importer": self.importer,
        }  # fmt: skip


PROFILES: Mapping[str, Profile] = MappingProxyType(
    {
        "generic": Profile(integer_kernels=True),
        "onnxruntime": Profile(
            21, functions="inline", integer_kernels=True, importer="onnxruntime"
        ),
        "tensorrt": Profile(
            int32=True, functions="inline", importer="tensorrt", signed=True, reading=QDQ
        ),
        "openvino": Profile(21, functions="inline", importer="openvino", reading=QDQ),
        "tract": Profile(21, functions="inline", importer="tract", reading={**QDQ, **FOLDED}),
        "mnn": Profile(functions="inline", importer="mnn", reading={**QDQ, **FOLDED}),
        "ncnn": Profile(functions="inline", importer="ncnn", reading={**QDQ, **FOLDED}),
        "onnx2torch": Profile(functions="inline", importer="onnx2torch", reading=QDQ),
        "coreml": Profile(21, functions="inline", importer="coreml", reading={**QDQ, **FOLDED}),
        "qnn": Profile(20, functions="inline", importer="qnn", reading={**QDQ, **FOLDED}),
        "relax": Profile(functions="inline", importer="relax"),
        "npu-static": Profile(
            13, RECENT | {"HardSwish", "Mish", "Gelu"}, True, True, "inline", reading=FOLDED
        ),
    }
)


def prepare(graph: Graph, profile: Profile) -> tuple[Graph, list[str]]:
    """Return an IR graph as the profile wants it, and a note for each thing changed or left."""
    notes: list[str] = []
    if profile.static:
        graph = without_functions(graph)
        refuse_open(graph)
    if profile.signed:
        graph = make_signed(without_functions(graph))
    if profile.int32:
        graph = within_int32(graph, notes)
    written = sorted({n.op for n in graph.all_nodes() if not n.domain} & profile.decomposed)
    if written:
        notes.append(f"{', '.join(written)} written as older operators")
    return graph, notes


def refuse_open(graph: Graph) -> None:
    """Raise UsageError for values with a dimension that is no number."""
    for value in graph.inputs:
        if not value.is_static:
            raise UsageError(
                f"the profile takes static shapes only, and input {value.name!r} is "
                f"{show_shape(value.shape)}: give its sizes (--input, --static)"
            )
    for node in graph.all_nodes():
        for value in node.outputs:
            if value.name and not value.container and not value.is_static:
                raise UsageError(
                    f"the profile takes static shapes only, and {value.name!r} ({node.op}) is "
                    f"{show_shape(value.shape)}"
                )


def within_int32(graph: Graph, notes: list[str]) -> Graph:
    """Move the far ends of slices to the ends of 32 bits; tell of other constants beyond them."""
    moved: list[str] = []
    done = _with_near_slices(graph, moved)
    if moved:
        notes.append(f"ends of {len(moved)} slice(s) moved within 32 bits")
    wide = [v.name for v in done.constants() if v.tensor is not None and v.tensor.size <= 1 << 20
            and v.dtype is DType.INT64 and _beyond(v)]  # fmt: skip
    if wide:
        notes.append(f"64-bit constants that do not fit in 32 bits: {', '.join(wide)}")
    return done


def _with_near_slices(graph: Graph, moved: list[str]) -> Graph:
    return replace(graph, nodes=tuple(_node(n, moved) for n in graph.nodes))


def _node(node: Node, moved: list[str]) -> Node:
    if node.op == "Slice" and not node.domain:
        return _slice(node, moved)
    bodies = {k: _with_near_slices(g, moved) for k, g in node.attrs.items() if isinstance(g, Graph)}
    return replace(node, attrs={**node.attrs, **bodies}) if bodies else node


def _slice(node: Node, moved: list[str]) -> Node:
    bounds = [_clip_constant(v) if at in (1, 2) else v for at, v in enumerate(node.inputs)]
    if all(a is b for a, b in zip(bounds, node.inputs, strict=True)):
        return node
    moved.append(node.name)
    return replace(node, inputs=tuple(bounds))


def _beyond(value: Value) -> bool:
    array = value.array()
    return array.size > 0 and bool(array.max() > INT32.max or array.min() < INT32.min)


def _clip_constant(value: Value | None) -> Value | None:
    if value is None or value.tensor is None or value.dtype is not DType.INT64:
        return value
    if not _beyond(value):
        return value
    from serde.ir.graph import Tensor

    tensor = Tensor.of(np.clip(value.array(), INT32.min, INT32.max))
    return Value(f"{value.name}_int32", tensor.dtype, tensor.shape, tensor)
