"""MXNet models: symbol JSON and parameter files, read and written without MXNet."""

from __future__ import annotations

import json
import os
from collections.abc import Mapping, Sequence
from dataclasses import replace
from functools import partial
from pathlib import Path
from typing import Any

from serde.decompositions.random_source import with_random
from serde.errors import Unconvertible, require
from serde.ir.graph import DType, Graph
from serde.passes.cut_inputs import cut
from serde.plugins import Format
from serde.spec.onnx_builder import OnnxBuilder

from . import from_ir, ops, target
from .bind.bind_params import bind_params, refuse_missing_parameters
from .bind.declared import Said
from .bind.placeholders import with_placeholders
from .infer_shapes.begin_states import with_sizes_of_zeros
from .infer_shapes.failures import refuse_given_shapes
from .infer_shapes.infer_inputs import complete_inputs
from .infer_shapes.shape_checks import check_shapes
from .io.discover import claims, find
from .io.params import Params
from .io.symbol_json import Symbol, parse_symbol
from .io.symbol_writer import check_target, encode
from .ops.output_layers import plain_kernels
from .ops.quantization.layers import floating
from .ops.random.sampling import draws
from .passes.custom_ops import (
    CUSTOM,
    Rules,
    each_node,
    own_rules,
    taken_along,
    told_apart,
    with_rules,
)
from .passes.drop_labels import drop_labels, drop_unread_labels
from .passes.inference_mode import notes
from .passes.mark_requantized import told_requantized
from .passes.strip_nms import with_suppression
from .rules import reads

__all__ = ["FORMAT", "decode", "decode_symbol", "encode", "ops", "to_ir"]
# Metadata keys of a decoded graph.
PATH, VERSION, VARIABLES = "mxnet.path", "mxnet.version", "mxnet.variables"
NUMPY_SHAPES = "mxnet.numpy_shapes"
KERNELS = ("onednn", "plain")


def decode(
    path: str | os.PathLike[str], *, params: str | os.PathLike[str] | None = None,
    epoch: int | None = None, ignore_extra: bool = False, match_params: bool = False,
    outputs: Sequence[str] | None = None,
) -> Graph:  # fmt: skip
    """Read an MXNet model: variables with an array are constants, the others inputs.

    ``path`` is a ``-symbol.json``, the prefix before it, a folder or an archive with one model;
    ``params`` a parameter file, found beside the symbol where it is not given, of the last epoch
    or the one named. ``ignore_extra`` allows arrays that a variable without one may have meant.
    ``match_params`` pairs arrays with variables of other names, by kind, shape and order. With
    ``outputs``, names of values or layers, arrays that these do not depend on are not looked at.
    """
    files = find(Path(path), params, epoch)
    symbol = parse_symbol(files.symbol, files.symbol_path)
    return decode_symbol(
        symbol, files.params, files.symbol_path, ignore_extra, files.searched, match_params,
        outputs,
    )  # fmt: skip


def decode_symbol(
    symbol: Symbol, params: Params | None, path: str, ignore_extra: bool = False,
    searched: str = "", match_params: bool = False, outputs: Sequence[str] | None = None,
) -> Graph:  # fmt: skip
    """The graph of a symbol and its parameters; ``path`` is what errors call it.

    ``searched`` tells what was looked for where there are no parameters.
    """
    if outputs and params is not None and params.names and not match_params:
        symbol, params = _cut(symbol, params, outputs)
    graph = bind_params(symbol, params, path, ignore_extra, searched, match_params)
    said = {
        name: [about.shape, about.dtype and about.dtype.value]
        for name, about in symbol.variables.items()
        if about != Said()
    }
    name = Path(path).name.removesuffix(".json").removesuffix("-symbol") or "symbol"
    told = {PATH: path, VERSION: str(symbol.version), VARIABLES: json.dumps(said),
            NUMPY_SHAPES: str(int(symbol.has_numpy_shapes))}  # fmt: skip
    return replace(graph, name=name, metadata={**graph.metadata, **told})


def _cut(symbol: Symbol, params: Params, outputs: Sequence[str]) -> tuple[Symbol, Params]:
    """The part of a symbol that ``outputs`` depend on, and the arrays but those of the rest.

    Inputs of the rest are still inputs: callers may tell their shapes.
    """
    graph = cut(symbol.graph, outputs)
    read = {v.name for v in graph.inputs}
    arrays = params.by_name()
    rest = {v.name for v in symbol.graph.inputs} - read
    graph = replace(graph, inputs=tuple(
        v for v in symbol.graph.inputs if v.name in read or v.name not in arrays
    ))  # fmt: skip
    variables = {n: about for n, about in symbol.variables.items() if n in read}
    kept = [at for at, name in enumerate(params.plain_names) if name not in rest]
    part = replace(
        params,
        names=tuple(params.names[at] for at in kept),
        tensors=tuple(params.tensors[at] for at in kept),
    )
    return Symbol(graph, variables, symbol.version), part


def to_ir(
    graph: Graph, *, rules: Rules | None = None, random: str = "refuse",
    custom_domain: str | None = None, custom_outputs: Mapping[str, Any] | None = None,
    nms: str = "full", integers: str = "exact", dequantize: bool = False, kernels: str = "onednn",
    outputs: Sequence[str] | None = None, missing_weights: str = "refuse",
) -> Graph:  # fmt: skip
    """Rewrite an MXNet graph into the IR, with all its inputs but labels.

    Outputs that only training needs are left out, unless the caller named the ``outputs``.

    ``rules`` are rules by operator, taken before those there are, or a table instead of it. With
    a ``custom_domain`` operators MXNet does not define are kept, in that domain; what they compute
    has the shapes ``custom_outputs`` says.

    ``random`` says what becomes of operators that draw random numbers: with ``refuse`` they are
    not converted, with ``onnx`` the runtime draws them, with ``input`` they are made of noise that
    is an input of the model. With ``nms="none"`` a detector gives the boxes and scores that its
    last suppression would choose from. Fused integer layers compute with integers in units of 1
    between a dequantisation and a quantisation, which give those of MXNet bit for bit; with
    ``integers="qdq"``, or where they are to be dequantised (``dequantize``), they compute with the
    numbers those stand for. With ``missing_weights="infer"``, for checks, ones of the shapes that
    are inferred stand for weights of which no file was found. Where MXNet's kernels disagree, the
    results are those of ``kernels``: of the ``onednn`` ones, as released, or the ``plain`` ones of
    a build without oneDNN.

    Raises:
        MalformedFile: for parameters without a value. UsageError: for inputs without a shape.
        Unconvertible: for every node no rule takes.
    """
    metadata = graph.metadata
    own = own_rules(rules) | ({CUSTOM} if custom_domain is not None else set())
    graph = drop_labels(graph, outputs is not None, own)
    graph = with_suppression(graph, nms)
    said = {
        name: Said(shape and tuple(shape), dtype and DType(dtype))
        for name, (shape, dtype) in json.loads(metadata.get(VARIABLES, "{}")).items()
    }
    if missing_weights == "infer":
        graph = with_placeholders(graph, said, metadata.get(PATH, graph.name))
    else:
        refuse_missing_parameters(graph, metadata.get(PATH, graph.name))
    complete = complete_inputs(graph, said)
    if metadata.get(NUMPY_SHAPES) != "1":
        complete = with_sizes_of_zeros(complete)
    require(integers in ("exact", "qdq"), f"integers={integers!r} is neither of exact, qdq")
    exact = integers == "exact" and not dequantize
    require(kernels in KERNELS, f"kernels={kernels!r} is neither of {', '.join(KERNELS)}")
    known = reads if exact else reads.joined(floating.rules)
    known = known if kernels == "onednn" else known.joined(plain_kernels.rules)
    table = with_random(with_rules(known, complete, rules), draws, random)
    table = table.guarded(partial(check_shapes, metadata.get(NUMPY_SHAPES) == "1"))
    complete = told_apart(complete, table)
    if exact:
        complete = told_requantized(complete, table)
    if custom_domain is not None:
        complete, table = taken_along(complete, table, custom_domain, custom_outputs or {})
    try:
        done = drop_unread_labels(table.rewrite(complete, OnnxBuilder(graph.name)))
    except Unconvertible as error:
        refuse_given_shapes(graph, said, error, table)
        raise
    kept = {k: v for k, v in metadata.items() if k == VERSION}
    told = dict.fromkeys((*done.notes, *notes(each_node(complete))))
    return replace(done, metadata=kept, notes=tuple(told))


FORMAT = Format(
    name="mxnet",
    suffixes=("-symbol.json",),
    claims=claims,
    decode=decode,
    to_ir=to_ir,
    from_ir=from_ir.from_ir,
    encode=encode,
    options={
        "decode": frozenset({"params", "epoch", "ignore_extra", "match_params", "outputs"}),
        "to_ir": frozenset(
            {
                "rules",
                "random",
                "custom_domain",
                "custom_outputs",
                "nms",
                "integers",
                "dequantize",
                "outputs",
                "missing_weights",
                "kernels",
            }
        ),
        "from_ir": frozenset({"mxnet"}),
        "encode": frozenset({"mxnet", "write_epoch"}),
    },
    tables=(reads, target.writes),
    check_target=check_target,
)
