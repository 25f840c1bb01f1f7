"""Variables of a symbol ↔ arrays of a parameter file."""

from __future__ import annotations

from collections.abc import Collection, Iterator, Mapping, Sequence
from dataclasses import replace

from serde.errors import Listing, MalformedFile
from serde.ir.graph import Graph, Shape, Tensor, Value, show_shape
from serde.ir.replace_uses import replace_values
from serde.spec.weight_origins import mark_weight

from ..infer_shapes.merge_shapes import merge_shapes
from ..io.params import Params
from ..io.symbol_json import Symbol
from .declared import (
    SUFFIXES,
    Declared,
    find_expected_shapes,
    is_compatible_shape,
    is_parameter_name,
)
from .find_inputs import FoundInputs, find_inputs, find_labels
from .symbol_info import NO_PARAMETERS, SymbolInfo, symbol_info

SHOWN, FEW = 30, 5  # lines of a listing, names in a note
CLOSE = 0.85  # how alike the names of an input and of an array are, where one is misspelt
LEAVE_OUT = "--ignore-extra leaves them out; --match-params matches names by kind, shape and order"
Shapes = dict[str, "Shape | None"]


def bind_params(
    symbol: Symbol, params: Params | None, path: str, ignore_extra: bool = False,
    searched: str = "", match: bool = False, named: Collection[str] | None = (),
) -> Graph:  # fmt: skip
    """The symbol's graph with its variables bound to arrays; the rest stay inputs.

    Inputs of which the file has an array are inputs still, if they are ``named`` or operators read
    them as data, see ``find_inputs``; with None for ``named`` every array is a constant. ``match``
    pairs names that differ by kind, shape and order; the graph's notes tell how. Arrays that belong
    to no variable are left out, with a note. The graph's ``source_info`` is a ``SymbolInfo``.

    Raises:
        MalformedFile: listing arrays that have the wrong shape, or belong to no variable where one
            that has none was likely meant. UsageError: where nothing tells which are the inputs.
    """
    graph = symbol.graph
    info = SymbolInfo(path, symbol.variables, symbol.has_numpy_shapes)
    if params is None:
        where = f"no {searched} was found" if searched else NO_PARAMETERS
        return replace(graph, source_info=info._replace(searched=where))
    arrays, notes = _name_arrays(symbol, params, match, named or ())
    of_inputs: dict[str, Tensor] = {}
    if named is not None:
        shapes = {v.name: arrays[v.name].shape for v in graph.inputs if v.name in arrays}
        data = find_inputs(graph, symbol.variables, shapes, named, str(params.path))
        notes += tuple(_describe_inputs(data, shapes, params.path))
        of_inputs = {n: arrays.pop(n) for n in (*data.inputs, *data.labels)}
        types = {n: symbol.variables.get(n, Declared()) for n in of_inputs}
        typed = {
            n: d if d.dtype else d._replace(dtype=of_inputs[n].dtype) for n, d in types.items()
        }
        info = info._replace(variables={**symbol.variables, **typed}, input_arrays=of_inputs)
    known = {v.name for v in graph.inputs}
    unused = {n: t.shape for n, t in arrays.items() if n not in known}
    inputs = {*of_inputs, *(named or ())}
    _refuse_mismatches(symbol, params, path, arrays, unused, ignore_extra, inputs)
    instead = {
        v: mark_weight(Value(v.name, tensor.dtype, tensor.shape, tensor, name_is_original=True))
        for v in graph.inputs if (tensor := arrays.get(v.name)) is not None
    }  # fmt: skip
    bound = replace_values(graph, instead)
    if unused:
        notes += (_describe_unused(params, list(unused)),)
    return replace(
        bound,
        inputs=tuple(v for v in graph.inputs if v not in instead),
        source_info=info._replace(searched=f"{params.path} has not", unused=unused),
        notes=notes,
    )


def _name_arrays(
    symbol: Symbol, params: Params, match: bool, named: Collection[str]
) -> tuple[dict[str, Tensor], tuple[str, ...]]:
    """The arrays by the names of their variables, and notes of how these were found."""
    if not params.names:
        return _match_by_order(symbol, params, named) if params.tensors else {}, ()
    if not match:
        return params.by_name(), ()
    from .match_names import format_matches, match_arrays, rename_arrays

    matches = match_arrays(_find_parameters(symbol, named), params.by_name(), str(params.path))
    notes = (*format_matches(matches.names), *matches.notes)
    return rename_arrays(params, matches.names).by_name(), notes


def _find_parameters(symbol: Symbol, named: Collection[str]) -> Shapes:
    """All variables that are parameters, and what is known of their shapes."""
    return _find_missing(symbol.graph, named, symbol.variables)


def _refuse_mismatches(
    symbol: Symbol, params: Params, path: str, arrays: Mapping[str, Tensor],
    unused: Mapping[str, Shape], ignore_extra: bool, inputs: Collection[str],
) -> None:  # fmt: skip
    """Raise MalformedFile for arrays of the wrong shape, or of names that were likely misspelt."""
    wrong = list(_find_misshapen(symbol, arrays))
    extra = list(unused)
    is_wrong = bool(wrong or extra)
    known = {*arrays, *inputs}
    absent = _find_missing(symbol.graph, known, symbol.variables) if is_wrong else {}
    names = (v.name for v in symbol.graph.inputs if v.name not in known)
    misspelt = [n for n in names if _find_close(n, extra, CLOSE)]
    absent |= dict.fromkeys(n for n in misspelt if n not in absent)
    is_mistaken = any(_suggest_array(n, s, unused) for n, s in absent.items())
    if wrong or (is_mistaken and not ignore_extra):
        raise MalformedFile(
            params.path, _format_mismatches(path, wrong, extra, absent, arrays, ignore_extra)
        )


def _describe_inputs(data: FoundInputs, shapes: Mapping[str, Shape], path: str) -> Iterator[str]:
    """What to say of inputs whose arrays, of the last batch, lie in the parameter file."""
    if data.inputs:
        yield (
            f"taken as input, although {path} has an array of that name: "
            f"{_list_arrays(data.inputs, shapes)}; --set-input {data.inputs[0]}=FILE.npy makes "
            "it a constant"
        )
    if data.constants:
        yield (
            f"taken as constant, as no --input names it: {_list_arrays(data.constants, shapes)} "
            f"of {path}"
        )


def _list_arrays(names: Sequence[str], shapes: Mapping[str, Shape]) -> str:
    return ", ".join(f"{n!r} {show_shape(shapes[n])}" for n in names)


def _describe_unused(params: Params, extra: list[str]) -> str:
    """What to say of arrays that nothing reads, as MXNet does not either."""
    few = ", ".join(map(repr, extra[:FEW])) + (", …" if len(extra) > FEW else "")
    return f"{len(extra)} array(s) of {params.path} belong to no variable: {few} left out"


def refuse_missing_parameters(graph: Graph) -> None:
    """Raise MalformedFile for parameters that nothing gives a value, nor a caller a shape."""
    absent = missing_parameters(graph)
    if not absent:
        return
    info = symbol_info(graph)
    arrays = info.unused or {}
    lines = _format_lines(f"{n}{_show(s)}{_suggest_array(n, s, arrays)}" for n, s in absent.items())
    head = f"{len(absent)} parameter(s) are missing; {info.searched}:"
    advice = "give their file with --params, or the shape of one that is an input with --input"
    raise MalformedFile(info.path, Listing([head, *lines, advice]))


def missing_parameters(graph: Graph) -> Shapes:
    """Parameters that nothing gives a value, nor a caller a shape; what attributes ask of them."""
    info = symbol_info(graph)
    known = {v.name for v in graph.inputs if v.shape is not None}.union(info.input_arrays)
    return _find_missing(graph, known, info.variables)


def _find_missing(
    graph: Graph, available: Collection[str], variables: Mapping[str, Declared]
) -> Shapes:
    """Parameters among the inputs, by use, name or node, not ``available``, and their shapes."""
    shapes: Shapes = {}
    others = [v for v in graph.inputs if v.name not in available]
    for name, _, shape in find_expected_shapes(graph) if others else ():
        shapes.setdefault(name, shape)
    missing = {}
    for v in others:
        about = variables.get(v.name, Declared())
        is_parameter = v.name in shapes or is_parameter_name(v.name) or about.is_trained
        if is_parameter:
            missing[v.name] = merge_shapes(shapes.get(v.name), about.shape)
    return missing


def _find_misshapen(symbol: Symbol, arrays: Mapping[str, Tensor]) -> Iterator[str]:
    shapes = {n: t.shape for n, t in arrays.items()}
    seen = set()
    for name, variable in symbol.variables.items():
        if name in shapes and not is_compatible_shape(shapes[name], variable.shape):
            seen.add(name)
            yield f"{name}{_show(shapes[name])}: its variable says{_show(variable.shape)}"
    for name, node, shape in find_expected_shapes(symbol.graph):
        if name in shapes and name not in seen and not is_compatible_shape(shapes[name], shape):
            seen.add(name)
            yield f"{name}{_show(shapes[name])}: {node.op} {node.name!r} takes{_show(shape)}"


def _format_mismatches(
    path: str, wrong: list[str], extra: list[str], absent: Shapes, arrays: Mapping[str, Tensor],
    ignore_extra: bool,
) -> Listing:  # fmt: skip
    """All that is wrong, with the likely match of what has none."""
    parts = [f"its arrays do not fit {path}"]
    if wrong:
        parts += [f"{len(wrong)} of the wrong shape:", *_format_lines(wrong)]
    free = {n: arrays[n].shape for n in extra}
    if absent:
        lines = (f"{n}{_show(s)}{_suggest_array(n, s, free)}" for n, s in absent.items())
        head = f"{len(absent)} missing (--input NAME=SHAPE makes an input of one):"
        parts += [head, *_format_lines(lines)]
    if extra and not ignore_extra:
        lines = (f"{n}{_show(s)}{_suggest_array(n, s, absent)}" for n, s in free.items())
        head = f"{len(extra)} that belong to no variable ({LEAVE_OUT}):"
        parts += [head, *_format_lines(lines)]
    return Listing(parts)


def _format_lines(lines: Collection[str] | Iterator[str]) -> list[str]:
    shown = [f"  {line}" for line, _ in zip(lines, range(SHOWN + 1), strict=False)]
    return shown[:SHOWN] + (["  …"] if len(shown) > SHOWN else [])


def _show(shape: Shape | None) -> str:
    return "" if shape is None else f" {show_shape(shape)}"


def _find_close(name: str, names: Sequence[str], cutoff: float) -> Sequence[str]:
    """The name that is most alike, if any is."""
    if not names:
        return ()
    from difflib import get_close_matches

    return get_close_matches(name, names, 1, cutoff)


def _suggest_array(name: str, shape: Shape | None, free: Mapping[str, Shape | None]) -> str:
    """Which of ``free`` was most likely meant: of those that fit in shape the closest in name."""
    kind = _kind(name)
    fitting = [
        n for n, s in free.items()
        if _are_compatible(shape, s) and (not kind or _kind(n) in (kind, ""))
    ]  # fmt: skip
    close = _find_close(name, fitting, 0.5)
    if not close and len(fitting) == 1 and len(shape or ()) > 1 and free[fitting[0]] is not None:
        close = fitting
    return f": perhaps {close[0]!r}" if close else ""


def _kind(name: str) -> str:
    """``weight``, ``bias`` and so on, where a name ends so."""
    return next((s[1:] for s in SUFFIXES if name.endswith((s, "." + s[1:]))), "")


def _are_compatible(a: Shape | None, b: Shape | None) -> bool:
    if a is None or b is None:
        return True
    return len(a) == len(b) and all(None in (d, e) or d == e for d, e in zip(a, b, strict=True))


def _match_by_order(
    symbol: Symbol, params: Params, named: Collection[str]
) -> dict[str, Tensor]:  # fmt: skip
    """Arrays without names, in the order of the variables or in that in which Gluon numbers blocks;
    with the auxiliary states in their places or last.

    There are as many as parameters; as variables that are no labels and no ``named`` inputs; or as
    all variables, where an executor's were saved whole.

    Raises:
        MalformedFile: where neither order fits in number and shapes, or both do.
    """
    states = {
        v.name for node in symbol.graph.nodes if node.op.startswith("BatchNorm")
        for v in node.inputs[3:] if v is not None
    }  # fmt: skip
    parameters = [*_find_parameters(symbol, named)]
    variables = [v.name for v in symbol.graph.inputs]
    not_fed = _find_not_fed(symbol, named) if named else parameters
    count = len(params.tensors)
    names = next((n for n in (parameters, not_fed, variables) if len(n) == count), None)
    if names is None:
        raise MalformedFile(
            params.path,
            f"{count} arrays without names for {len(not_fed)} parameters. Name each input with "
            "--input, which other variables are parameters then, or save the arrays by name",
        )
    from .creation_order import sort_by_numbers

    created = sort_by_numbers([tuple(n.split("_")[:-1]) for n in names])
    by_number = sorted(names, key=lambda n: created[tuple(n.split("_")[:-1])])
    orders = {
        order for some in (names, by_number)
        for order in (tuple(some), tuple(sorted(some, key=states.__contains__)))
    }  # fmt: skip
    candidates = [dict(zip(order, params.tensors, strict=True)) for order in orders]
    fitting = [arrays for arrays in candidates if not list(_find_misshapen(symbol, arrays))]
    if len(fitting) != 1:
        how = "fit the parameters in no order" if not fitting else "fit them in several orders"
        raise MalformedFile(params.path, f"its arrays have no names, and {how}: save them by name")
    return fitting[0]


def _find_not_fed(symbol: Symbol, named: Collection[str]) -> list[str]:
    """The variables that are neither ``named`` inputs nor labels."""
    labels = find_labels(symbol.graph)
    fed = {*named, *labels.difference(_find_parameters(symbol, named))}
    return [v.name for v in symbol.graph.inputs if v.name not in fed]
