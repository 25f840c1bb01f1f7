"""ONNX as a target of TVM's own partitioning (BYOC), in any TVM that has Relay, without C++.

A function that TVM partitions for ``onnx`` becomes an ONNX model inside the compiled library. The
library calls back into Python, where ONNX Runtime, or a function of a vendor, runs the model.
"""

from __future__ import annotations

import ctypes
import hashlib
import os
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any

import numpy as np

from serde.backends.description import Backend, get_backend, opset_backend
from serde.backends.partition import lower_for
from serde.errors import SerdeError, UsageError
from serde.ir.graph import Graph
from serde.passes import drop_dead
from serde.pipeline import load

NAME = "onnx"  # of the target, as AnnotateTarget takes it
RUN = "serde.onnx.run"  # the function that a compiled library calls
OPSET = 17
Array = np.ndarray[Any, Any]
Run = Callable[[Mapping[str, Array]], Any]
LoadModel = Callable[[bytes], Run]


@dataclass
class _Settings:
    """What parts are made for and run by, and those that are loaded, by the hash of their model."""

    backend: Backend = field(default_factory=lambda: opset_backend(OPSET))
    load_model: LoadModel | None = None
    runs: dict[str, tuple[list[str], Run]] = field(default_factory=dict)
    verdicts: dict[int, bool] = field(default_factory=dict)
    collected: dict[str, bytes] | None = None


SETTINGS = _Settings()


def register_codegen(backend: Any = None, load_model: LoadModel | None = None) -> None:
    """Register the pattern table, the operators' attributes, the code generator and its runtime.

    Args:
        backend: what is taken: see ``serde.partition``; every operator of opset 17 if left out.
        load_model: a function of the bytes of an ONNX model. What it returns is called with arrays
            by name, and returns the outputs in order. ONNX Runtime runs parts if left out.
    """
    import tvm
    from tvm.relay.op.contrib import register

    SETTINGS.backend = opset_backend(OPSET) if backend is None else get_backend(backend)
    SETTINGS.load_model = load_model
    SETTINGS.runs.clear()
    SETTINGS.verdicts.clear()
    tvm.register_func("relay.ext.onnx", generate_code, override=True)
    tvm.register_func(RUN, run_part, override=True)
    if register.get_pattern_table(NAME) is None:
        register.register_pattern_table(NAME, make_patterns)
        for name in tvm.ir.Op.list_op_names():
            if not name.startswith(("relax.", "tir.", "script")):
                tvm.ir.register_op_attr(name, f"target.{NAME}", takes_call)


def make_patterns() -> list[tuple[Any, ...]]:
    """Operators that one operator of ONNX computes, with a check of whether it is taken."""
    from tvm.relay.dataflow_pattern import is_op, wildcard

    patterns = []
    for op in ("nn.conv2d", "nn.dense"):
        product = is_op(op)(wildcard(), wildcard())
        patterns.append(
            (f"onnx.{op}_bias", is_op("nn.bias_add")(product, wildcard()), takes_pattern)
        )
    return patterns


def takes_call(call: Any) -> bool:
    """Whether the backend takes a call: it is converted and legalized by itself."""
    return _takes(call, 0)


def takes_pattern(call: Any) -> bool:
    """Whether the backend takes a call together with those that its operands are."""
    return _takes(call, 1)


def _takes(call: Any, depth: int) -> bool:
    import tvm

    try:
        function = _close_call(call, depth)
        key = tvm.ir.structural_hash(function, map_free_vars=True)
        if key not in SETTINGS.verdicts:
            SETTINGS.verdicts[key] = _is_taken(function)
        return SETTINGS.verdicts[key]
    except (tvm.TVMError, ValueError):  # a type that is not inferred
        return False


def _is_taken(function: Any) -> bool:
    try:
        return bool(_lower(function).nodes)
    except SerdeError:
        return False


def _close_call(call: Any, depth: int) -> Any:
    """A call as a function of its operands that are not constants, or of theirs at a depth of 1.

    Raises:
        ValueError: for shapes that are not static.
    """
    from tvm import relay

    params: list[Any] = []

    def replace(operand: Any, depth: int) -> Any:
        if isinstance(operand, relay.Constant):
            return operand
        if isinstance(operand, relay.Tuple):
            return relay.Tuple([replace(f, depth) for f in operand.fields])
        if depth and isinstance(operand, relay.Call):
            return close(operand, depth - 1)
        params.append(relay.var(f"p{len(params)}", _static_type(operand.checked_type)))
        return params[-1]

    def close(inner: Any, depth: int) -> Any:
        operands = [replace(a, depth) for a in inner.args]
        return relay.Call(inner.op, operands, inner.attrs, inner.type_args)

    _static_type(call.checked_type)
    return relay.Function(params, close(call, depth))


def _static_type(type_: Any) -> Any:
    import tvm

    for tensor in _tensor_types(type_):
        if not all(isinstance(d, tvm.tir.IntImm) for d in tensor.shape):
            raise ValueError("a shape is not static")
    return type_


def _lower(function: Any) -> Any:
    """A function of Relay in operators of the backend."""
    import tvm

    module = tvm.IRModule.from_expr(function)
    return lower_for(load(module), SETTINGS.backend.target)


def generate_code(function: Any) -> Any:
    """The module of a function that was partitioned for ``onnx``, with the model in it.

    Raises:
        SerdeError: for what the backend does not take.
    """
    import tvm
    from tvm import relay, te, tir

    from serde.formats.onnx.writer import to_proto

    symbol = str(function.attrs["global_symbol"])
    graph = load(tvm.IRModule.from_expr(relay.Function(function.params, function.body)))
    new_graph, layout = _distinct_outputs(graph)
    legal = SETTINGS.backend.prepare(lower_for(new_graph, SETTINGS.backend.target))
    model = to_proto(legal).SerializeToString()
    digest = hashlib.sha256(model).hexdigest()
    data = tvm.nd.array(np.frombuffer(model, np.uint8))
    types = [t for p in function.params for t in _tensor_types(p.checked_type)]
    operands = [te.placeholder(_sizes(t), t.dtype, name=f"i{n}") for n, t in enumerate(types)]
    results = list(_tensor_types(function.checked_type.ret_type))

    def call(inputs: Sequence[Any], outputs: Sequence[Any]) -> Any:
        model_bytes = tir.decl_buffer([len(model)], "uint8", name="model")
        body = tir.call_packed(RUN, symbol, digest, layout, model_bytes, *inputs, *outputs)
        return tir.AllocateConst(model_bytes.data, "uint8", [len(model)], data, tir.Evaluate(body))

    extern = te.extern(
        [_sizes(r) for r in results], operands, call, name="o", dtype=[r.dtype for r in results]
    )
    outputs = list(extern) if isinstance(extern, (list, tuple, tvm.ir.Array)) else [extern]
    schedule = te.create_schedule(outputs[0].op)
    return tvm.build(schedule, [*operands, *outputs], target="llvm", name=symbol)


def _distinct_outputs(graph: Graph) -> tuple[Graph, str]:
    """A graph that gives each value once, and what the outputs are: ``o0 o0 i1``, inputs too.

    A reader gives an output a second name by an Identity, which a backend may not have.
    """
    same = {n.outputs[0]: n.inputs[0] for n in graph.nodes if n.op == "Identity" and not n.domain}
    outputs = [same.get(v) or v for v in graph.outputs]
    inputs = {v: n for n, v in enumerate(graph.inputs)}
    distinct = {v: n for n, v in enumerate(dict.fromkeys(v for v in outputs if v not in inputs))}
    layout = (f"i{inputs[v]}" if v in inputs else f"o{distinct[v]}" for v in outputs)
    return drop_dead(replace(graph, outputs=tuple(distinct))), " ".join(layout)


def _tensor_types(type_: Any) -> Iterator[Any]:
    """The types of the tensors of a value, those of a tuple in order."""
    if not hasattr(type_, "fields"):
        yield type_
        return
    for field_ in type_.fields:
        yield from _tensor_types(field_)


def _sizes(type_: Any) -> list[int]:
    return [int(d) for d in type_.shape]


def run_part(symbol: str, digest: str, layout: str, model: Any, *tensors: Any) -> None:
    """Run a part on the tensors of a compiled library: the inputs, then those of ``layout``."""
    places = layout.split()
    arrays = [view_tensor(t) for t in tensors]
    inputs, targets = arrays[: -len(places)], arrays[-len(places) :]
    if SETTINGS.collected is not None and "o" in layout:
        SETTINGS.collected[symbol] = view_tensor(model).tobytes()
    if digest not in SETTINGS.runs:
        SETTINGS.runs[digest] = _load_part(view_tensor(model).tobytes())
    names, run = SETTINGS.runs[digest]
    results = run(dict(zip(names, inputs, strict=True)))
    for target, place in zip(targets, places, strict=True):
        values = inputs if place[0] == "i" else results
        np.copyto(target, values[int(place[1:])])


def _load_part(model: bytes) -> tuple[list[str], Run]:
    """The names of the inputs of a model, and what runs it."""
    import onnx

    load_model = SETTINGS.load_model or load_in_onnxruntime
    graph = onnx.load_from_string(model).graph
    if not graph.output:  # TVM also makes parts that only take a tuple apart
        return [v.name for v in graph.input], lambda feeds: ()
    run = load_model(model)
    return [v.name for v in graph.input], run


def view_tensor(tensor: Any) -> Array:
    """A tensor of a compiled library as an array on the same memory."""
    struct = tensor.handle.contents
    dtype, shape = np.dtype(tensor.dtype), tuple(tensor.shape)
    size = int(np.prod(shape, dtype=np.int64)) * dtype.itemsize
    start = (struct.data or 0) + struct.byte_offset
    if not size:
        return np.empty(shape, dtype)
    memory = (ctypes.c_byte * size).from_address(start)
    return np.frombuffer(memory, dtype).reshape(shape)


def load_in_onnxruntime(model: bytes) -> Run:
    """A function that runs an ONNX model in ONNX Runtime."""
    import onnx

    from .onnxruntime import prepare

    return prepare(onnx.load_from_string(model), apart=False)


def partition_for_onnx(module: Any, params: Any = None, backend: Any = None) -> Any:
    """An IRModule with the parts that a backend takes as functions for ``onnx``.

    Raises:
        UsageError: for a module without ``main``.
    """
    import tvm
    from tvm import relay

    if "main" not in {v.name_hint for v in module.get_global_vars()}:
        raise UsageError("the module has no function main")
    register_codegen(backend, SETTINGS.load_model)
    if params:
        arrays = {n: p.numpy() if hasattr(p, "numpy") else p for n, p in params.items()}
        weights = {n: tvm.nd.array(a) for n, a in arrays.items()}
        bound = relay.build_module.bind_params_by_name(module["main"], weights)
        module = tvm.IRModule(dict(module.functions.items()), module.type_definitions)
        module["main"] = bound
    passes = [
        relay.transform.InferType(),
        relay.transform.MergeComposite(make_patterns()),
        relay.transform.AnnotateTarget(NAME),
        relay.transform.MergeCompilerRegions(),
        relay.transform.PartitionGraph(),
        relay.transform.InferType(),
    ]
    with tvm.transform.PassContext(opt_level=3):
        return tvm.transform.Sequential(passes)(module)


def save_parts(run: Callable[[], Any], folder: str | os.PathLike[str]) -> list[str]:
    """Write the ONNX models in a compiled module, those that ``run`` calls; return the files.

    ``run`` runs the module once: the ``run`` of a graph executor, or a call of a virtual machine.
    """
    SETTINGS.collected = {}
    try:
        run()
        models, place = SETTINGS.collected, Path(folder)
    finally:
        SETTINGS.collected = None
    place.mkdir(parents=True, exist_ok=True)
    files = []
    for symbol, model in models.items():
        path = place / f"{symbol}.onnx"
        path.write_bytes(model)
        files.append(os.fspath(path))
    return files


def to_onnx(
    relay_ir: Any, params: Mapping[str, Any] | None, name: str, opset_version: int = 11,
    path: str | os.PathLike[str] | None = None,
) -> Any:  # fmt: skip
    """An ONNX model of a Relay module or function, as ``tvm.contrib.target.onnx.to_onnx`` makes.

    Args:
        relay_ir: an IRModule, or a function of Relay.
        params: its parameters by name; others stay inputs.
        name: of the model's graph.
        opset_version: the opset of its operators.
        path: where to write it as well.

    Returns:
        The ModelProto.
    """
    from serde.formats.onnx.writer import to_proto, write_model
    from serde.plugins import get_format

    onnx_format = get_format("onnx")
    assert onnx_format.from_ir is not None
    graph = load(relay_ir, params=dict(params or {}))
    lowered = replace(onnx_format.from_ir(graph, opset=opset_version), name=name)
    if path is not None:
        write_model(lowered, path)
    return to_proto(lowered)
