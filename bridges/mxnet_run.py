"""Runs a symbol of MXNet on the arrays that a conversion binds, in inference mode."""

from __future__ import annotations

import json
from collections.abc import Collection, Mapping, Sequence
from types import ModuleType
from typing import Any, NamedTuple

import numpy as np

from serde.errors import SerdeError
from serde.io.json_text import dump_line
from serde.ir.graph import Graph

FLOATS = frozenset({np.float16, np.float32, np.float64})


class Model(NamedTuple):
    """A symbol to run, and its arrays. Variables that are not ``needed`` are labels.

    It ends at values or layers of the names ``outputs``, or else at those of its heads whose
    numbers are in ``heads``.
    """

    text: str
    arrays: Mapping[str, np.ndarray[Any, Any]] = {}
    needed: Collection[str] = ()
    outputs: Sequence[str] | None = None
    heads: Sequence[int] | None = None


class PreparedSymbol:
    """A symbol as a function of the feeds, which gives its outputs in inference mode.

    Arrays become MXNet's once for feeds of the same shapes and types; auxiliary states, which
    custom operators may change, at each run.
    """

    def __init__(self, mx: ModuleType, model: Model) -> None:
        symbol = mx.sym.load_json(without_escapes(model.text))
        self.internals = symbol.get_internals()
        if model.outputs:
            symbol = cut_at_outputs(mx, self.internals, model.outputs)
        elif model.heads is not None and len(symbol) > 1:
            symbol = mx.sym.Group([symbol[i] for i in model.heads])
        self.mx, self.symbol, self.model = mx, symbol, model
        self.names = symbol.list_inputs()
        self.states = frozenset(symbol.list_auxiliary_states())
        self._key: Any = None
        self._arrays: dict[str, Any] = {}
        self._tensors: dict[str, Any] = {}
        self._op: Any = None

    def __call__(self, feeds: Any) -> list[Any]:
        """The outputs.

        Raises:
            SerdeError: where MXNet refuses the inputs, or a parameter has no array.
        """
        try:
            return self._run(feeds)
        except self.mx.base.MXNetError as error:
            lines = [line for line in str(error).splitlines() if line.strip()]
            reason = f"MXNet cannot run the model on these inputs: {lines[-1]}"
            raise SerdeError(reason) from error

    def infer_shape(
        self, value: str, shapes: Mapping[str, Sequence[int]]
    ) -> tuple[int, ...] | None:
        """The shape of a value inside, if MXNet tells it."""
        if self.internals.list_outputs().count(value) != 1:
            return None
        part = self.internals[value]
        read = frozenset(part.list_inputs())
        _, results, _ = part.infer_shape_partial(**{n: s for n, s in shapes.items() if n in read})
        shape = tuple(results[0]) if results else ()
        return shape if all(size > 0 for size in shape) else None

    def _run(self, feeds: Any) -> list[Any]:
        mx = self.mx
        if not mx.util.is_np_shape():  # which has no tensors without axes
            feeds = {n: np.reshape(a, 1) if np.ndim(a) == 0 else a for n, a in feeds.items()}
        feeds = {n: np.asarray(a) for n, a in feeds.items()}
        key = [(n, a.shape, a.dtype) for n, a in feeds.items()]
        if key != self._key:
            self._bind(feeds)
            self._key = key
        changing = {n: mx.nd.array(a, dtype=a.dtype) for n, a in feeds.items() if n in self.names}
        changing |= {n: mx.nd.array(a, dtype=a.dtype) for n, a in self._arrays.items()}
        tensors = {**self._tensors, **changing}
        with mx.autograd.predict_mode():
            result = self._op(*(tensors[n] for n in self.names))
        return [y.asnumpy() for y in (result if isinstance(result, list) else [result])]

    def _bind(self, feeds: Mapping[str, np.ndarray[Any, Any]]) -> None:
        """Make the tensors that all runs on feeds of these shapes and types share."""
        mx, fixed = self.mx, _bind_arrays(self.mx, self.symbol, self.model, feeds)
        self._arrays = {n: a for n, a in fixed.items() if n in self.states}
        self._tensors = {
            n: mx.nd.array(a, dtype=a.dtype) for n, a in fixed.items() if n not in self.states
        }
        self._op = mx.nd.CachedOp(self.symbol)


def cut_at_outputs(mx: ModuleType, internals: Any, outputs: Sequence[str]) -> Any:
    """The symbol that ends at values or layers of these names."""
    known = internals.list_outputs()
    return mx.sym.Group([
        internals[n if n in known else f"{n}_output"] for n in outputs
    ])  # fmt: skip


def without_escapes(text: str) -> str:
    """A symbol in which characters beyond ASCII stand for themselves: MXNet reads no ``\\u``."""
    return dump_line(json.loads(text)) if "\\u" in text else text


def with_plain_labels(text: str) -> str:
    """A symbol whose output layers have variables for labels, the shapes of which MXNet infers."""
    from serde.formats.mxnet.bind.op_names import CANONICAL
    from serde.formats.mxnet.operators import describe

    symbol = json.loads(text)
    nodes = symbol["nodes"]
    heads = [n for n in nodes
             if describe(CANONICAL.get(n["op"], n["op"])).unread and len(n["inputs"]) > 1
             and nodes[n["inputs"][1][0]]["op"] != "null"]  # fmt: skip
    if not heads:
        return text
    _add_variables(symbol, [f"{n['name']}/label" for n in heads])
    for at, head in enumerate(heads):
        head["inputs"][1] = [at, 0, 0]
    return dump_line(symbol)


def begin_at(text: str, graph: Graph, names: Sequence[str]) -> str:
    """A symbol with variables in place of the values of these names that layers make."""
    makers = {v.name: (n.name, i) for n in graph.nodes for i, v in enumerate(n.outputs)}
    values = [n if n in makers else f"{n}_output" for n in names]
    cuts = {makers[n]: n for n in values if n in makers}
    if not cuts:
        return text
    symbol = json.loads(text)
    _add_variables(symbol, list(cuts.values()))
    places = {place: at for at, place in enumerate(cuts)}
    layers = [node["name"] for node in symbol["nodes"]]
    for links in (*(n["inputs"] for n in symbol["nodes"]), symbol["heads"]):
        links[:] = [
            [at, 0, 0] if (at := places.get((layers[link[0]], link[1]))) is not None else link
            for link in links
        ]
    return dump_line(symbol)


def _add_variables(symbol: dict[str, Any], names: Sequence[str]) -> None:
    """Put variables before all nodes of a symbol."""
    moved = len(names)
    for links in (*(n["inputs"] for n in symbol["nodes"]), symbol["heads"]):
        links[:] = [[node + moved, *rest] for node, *rest in links]
    symbol["nodes"] = [*({"op": "null", "name": n, "inputs": []} for n in names), *symbol["nodes"]]
    symbol["arg_nodes"] = [i for i, n in enumerate(symbol["nodes"]) if n["op"] == "null"]
    symbol.pop("node_row_ptr", None)


def _bind_arrays(
    mx: ModuleType, symbol: Any, model: Model, feeds: Mapping[str, np.ndarray[Any, Any]]
) -> dict[str, np.ndarray[Any, Any]]:
    """The arrays of the variables that are no feeds, in the types that MXNet gives them."""
    values = {**model.arrays, **feeds}
    names = symbol.list_inputs()
    read = frozenset(names)
    if absent := [n for n in names if n in model.needed and n not in values]:
        raise SerdeError(
            f"MXNet cannot run the model: {', '.join(map(repr, absent))} has no array. "
            "Give it among the inputs, or the file of the parameters with --params"
        )
    if not mx.util.is_np_shape():
        values = {n: np.reshape(a, 1) if np.ndim(a) == 0 else a for n, a in values.items()}
    shapes = {n: a.shape for n, a in values.items() if n in read}
    arguments, _, states = symbol.infer_shape_partial(**shapes)
    every = symbol.list_arguments() + symbol.list_auxiliary_states()
    inferred = dict(zip(every, [*arguments, *states], strict=True))
    types = _infer_types(mx, symbol, {n: a for n, a in feeds.items() if n in read})
    fixed = {}
    for name in names:
        if name not in feeds:
            array = values.get(name)
            array = np.zeros(inferred[name], np.float32) if array is None else np.asarray(array)
            fixed[name] = array.astype(_cast_type(array.dtype, types.get(name)), copy=False)
    return fixed


def _infer_types(mx: ModuleType, symbol: Any, feeds: Mapping[str, Any]) -> dict[str, Any]:
    """The types that MXNet infers from those of the inputs; none where arrays contradict them."""
    try:
        arguments, _, states = symbol.infer_type_partial(**{n: a.dtype for n, a in feeds.items()})
    except mx.base.MXNetError:
        return {}
    names = symbol.list_arguments() + symbol.list_auxiliary_states()
    return dict(zip(names, [*(arguments or ()), *(states or ())], strict=False))


def _cast_type(dtype: Any, inferred: Any) -> Any:
    """The type that ``Module.set_params`` gives an array: floats become what is inferred."""
    both = {np.dtype(dtype).type, inferred}
    return inferred if both <= FLOATS else dtype
