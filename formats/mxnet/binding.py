"""Variables of a symbol ↔ arrays of a parameter file."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from difflib import get_close_matches

from serde.errors import MalformedFile
from serde.graph import Graph, Node, Shape, Tensor, Value, show_shape
from serde.passes.replacing import replace_values

from .params import Params
from .rules import parse
from .symbol import Symbol

# Operands that are parameters: where one is bound to no array, it is missing, not an input.
PARAMETERS = {
    "BatchNorm": (1, 2, 3, 4),
    "Convolution": (1, 2),
    "Deconvolution": (1, 2),
    "Embedding": (1,),
    "FullyConnected": (1, 2),
    "InstanceNorm": (1, 2),
    "GroupNorm": (1, 2),
    "LayerNorm": (1, 2),
    "LeakyReLU": (1,),
    "RNN": (1,),
}
INTS = tuple[int, ...]


def bind(symbol: Symbol, params: Params | None, path: str, ignore_extra: bool = False) -> Graph:
    """The symbol's graph with its variables bound to arrays; the rest stay inputs.

    Raises:
        MalformedFile: listing arrays that have the wrong shape or belong to no variable.
    """
    graph = symbol.graph
    if params is None:
        return graph
    held = params.by_name() if params.names else _by_order(graph, params)
    wanted = {v.name: v for v in graph.inputs}
    wrong = list(_misshapen(symbol, held))
    extra = sorted(set(held) - set(wanted))
    if wrong:
        listing = "".join(f"\n  {line}" for line in wrong)
        raise MalformedFile(params.path, f"parameters of the wrong shape for {path}:{listing}")
    if extra and not ignore_extra:
        free = sorted(_parameters(graph) - set(held))
        listing = "".join(f"\n  {n}{_match(n, held[n], free, symbol)}" for n in extra[:50])
        raise MalformedFile(
            params.path,
            f"{len(extra)} array(s) belong to no variable of {path} (ignore_extra allows them):"
            f"{listing}",
        )
    instead = {
        v: Value(name, held[name].dtype, held[name].shape, held[name])
        for name, v in wanted.items()
        if name in held
    }
    bound = replace_values(graph, instead)
    return replace(bound, inputs=tuple(v for v in graph.inputs if v not in instead))


def _by_order(graph: Graph, params: Params) -> dict[str, Tensor]:
    """Arrays without names, in the order of the parameters in the symbol."""
    names = [v.name for v in graph.inputs if v.name in _parameters(graph)]
    if len(names) != len(params.tensors):
        raise MalformedFile(
            params.path, f"{len(params.tensors)} arrays without names for {len(names)} parameters"
        )
    return dict(zip(names, params.tensors, strict=True))


def _parameters(graph: Graph) -> set[str]:
    """Names of the variables that stand where parameters do."""
    return {
        node.inputs[at].name  # type: ignore[union-attr]
        for node in graph.nodes
        for at in PARAMETERS.get(node.op, ())
        if at < len(node.inputs) and node.inputs[at] is not None
    }


def missing(graph: Graph, given: Mapping[str, object]) -> list[str]:
    """Inputs of ``graph`` that are parameters, and not among those ``given`` as inputs."""
    names = _parameters(graph)
    return [v.name for v in graph.inputs if v.name in names and v.name not in given]


def refuse_missing_parameters(graph: Graph, path: str, params: Params | None) -> None:
    """Raise MalformedFile for parameters that nothing gives a value."""
    absent = missing(graph, {v.name: v for v in graph.inputs if v.shape is not None})
    if not absent:
        return
    held = params.by_name() if params is not None else {}
    used = {v.name for v in graph.constants()}
    free = [n for n in held if n not in used]
    lines = []
    for name in absent[:50]:
        close = get_close_matches(name, free, 1)
        lines.append(f"\n  {name}" + (f" (the file has {close[0]!r})" if close else ""))
    source = "no parameter file was found" if params is None else f"{params.path} has not"
    raise MalformedFile(path, f"{len(absent)} parameter(s) are missing; {source}:{''.join(lines)}")


def _misshapen(symbol: Symbol, held: Mapping[str, Tensor]):  # type: ignore[no-untyped-def]
    seen = set()
    for name, attrs in symbol.variables.items():
        said = _said(attrs)
        if name in held and said is not None and not _fits(held[name].shape, said):
            seen.add(name)
            yield f"{name} has {show_shape(held[name].shape)}, its variable says {show_shape(said)}"
    for node in symbol.graph.nodes:
        for at, expected in _expected(node).items():
            operand = node.inputs[at] if at < len(node.inputs) else None
            if operand is None or operand.name not in held or operand.name in seen:
                continue
            shape = held[operand.name].shape
            if not _fits(shape, expected):
                seen.add(operand.name)
                yield (
                    f"{operand.name} has {show_shape(shape)}, {node.op} {node.name!r} takes "
                    f"{show_shape(expected)}"
                )


def _said(attrs: Mapping[str, str]) -> Shape | None:
    if "__shape__" not in attrs:
        return None
    dims = parse(INTS, attrs["__shape__"])
    return tuple(None if d <= 0 else d for d in dims) or None


def _fits(shape: Shape, expected: Shape) -> bool:
    return len(shape) == len(expected) and all(
        e is None or d == e for d, e in zip(shape, expected, strict=True)
    )


def _expected(node: Node) -> dict[int, Shape]:
    """Shapes an operator's own attributes ask of its parameters."""
    attrs = node.attrs
    if node.op in ("Convolution", "Deconvolution") and {"num_filter", "kernel"} <= attrs.keys():
        count, kernel = parse(int, attrs["num_filter"]), parse(INTS, attrs["kernel"])
        last = str(attrs.get("layout", "None")).endswith("C")
        if node.op == "Deconvolution" or last:
            return {2: (count,)}
        return {1: (count, None, *kernel), 2: (count,)}
    if node.op == "FullyConnected" and "num_hidden" in attrs:
        count = parse(int, attrs["num_hidden"])
        return {1: (count, None), 2: (count,)}
    if node.op == "Embedding" and {"input_dim", "output_dim"} <= attrs.keys():
        return {1: (parse(int, attrs["input_dim"]), parse(int, attrs["output_dim"]))}
    return {}


def _match(name: str, tensor: Tensor, free: list[str], symbol: Symbol) -> str:
    """The variable an array that belongs to none was most likely meant for."""
    shape = show_shape(tensor.shape)
    close = get_close_matches(name, free, 1, 0.5)
    return f" {shape}" + (f": perhaps {close[0]!r}" if close else "")
