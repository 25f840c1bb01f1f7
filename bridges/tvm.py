"""Live modules of any TVM that has Relay (0.6 to 0.19) or Relax, and TVM's own results of Relay."""

from __future__ import annotations

import os
import threading
from collections.abc import Callable, Iterator, Mapping, Set
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import numpy as np

from serde.errors import MissingDependency, SerdeError, UsageError
from serde.io.arrays import to_tensors
from serde.io.sniff import open_regular
from serde.ir.builder import Names
from serde.ir.graph import Graph
from serde.plugins import Bridge

from .array_worker import VERSIONS, ArrayWorker, WorkerRun, get_worker, import_program

INSTALL = (
    "TVM with Relay (0.6 to 0.19) is needed: apache-tvm from 0.25 on has none; the wheel of "
    "bitblas 0.0.1.dev13 carries TVM 0.17, testing/relay/tvm_live.py sets it up"
)
INSTALL_RELAX = "TVM with Relax is needed for this: pip install 'apache-tvm>=0.25'"
COMPILING = threading.Lock()  # TVM has one dispatch context for all threads


def decode(model: Any, params: Any = None, **options: Any) -> Graph:
    """Read a live IRModule or Relay function; ``params`` maps names to arrays, or is a path."""
    import tvm

    from serde.formats.relay.io.params import read_params
    from serde.formats.relay.json.reader import parse_json
    from serde.formats.relay.to_ir import module_graph

    if not hasattr(tvm, "relay"):
        raise MissingDependency(INSTALL)
    module = parse_json(tvm.ir.save_json(model), "module")
    is_path = isinstance(params, (str, os.PathLike))
    weights = read_params(params) if is_path else to_tensors(params)
    return module_graph(module, weights, "module", **options)


def to_relay(graph: Graph) -> tuple[Any, dict[str, Any]]:
    """A live IRModule of a graph of the IR, its types inferred, and the parameters of its main.

    Raises:
        MissingDependency: without a TVM that has Relay. Unconvertible: for what Relay has not.
    """
    tvm, relay = import_relay()
    from serde.formats.relay.from_ir import from_ir
    from serde.formats.relay.json.writer import to_json
    from serde.formats.relay.to_module import to_module

    module, weights = to_module(from_ir(graph))
    live = relay.transform.InferType()(tvm.ir.load_json(to_json(module)))
    return live, {name: tvm.nd.array(tensor.load()) for name, tensor in weights.items()}


def to_relax(graph: Graph) -> Any:
    """A live IRModule of Relax, by TVM's own importer of ONNX; its weights are constants in it.

    Raises:
        MissingDependency: without a TVM that has Relax. Unconvertible: for what its importer gets
            wrong, or does not take.
    """
    try:
        from tvm.relax.frontend.onnx import from_onnx
    except (ImportError, OSError) as error:
        raise MissingDependency(f"{INSTALL_RELAX} ({error})") from error
    from serde.formats.onnx.from_ir import from_ir
    from serde.formats.onnx.writer import to_proto

    lowered = from_ir(graph, profile="relax")
    return from_onnx(to_proto(lowered), sanitize_input_names=False)


def register_onnx_codegen(backend: Any = None, load_model: Any = None) -> None:
    """Let TVM partition for the target ``onnx`` and compile it; see ``tvm_byoc``.

    Raises:
        MissingDependency: without a TVM that has Relay.
    """
    import_relay()
    from .tvm_byoc import register_codegen

    register_codegen(backend, load_model)


def partition_for_onnx(module: Any, params: Any = None, backend: Any = None) -> Any:
    """An IRModule with the parts that a backend takes as functions for ``onnx``.

    Raises:
        MissingDependency: without a TVM that has Relay.
    """
    import_relay()
    from .tvm_byoc import partition_for_onnx as partition

    return partition(module, params, backend)


def save_onnx_parts(run: Callable[[], Any], folder: str | os.PathLike[str]) -> list[str]:
    """Write the ONNX models in a compiled module, those that ``run`` calls; return the files."""
    from .tvm_byoc import save_parts

    return save_parts(run, folder)


def to_onnx(
    relay_ir: Any, params: Mapping[str, Any] | None, name: str, opset_version: int = 11,
    path: str | os.PathLike[str] | None = None,
) -> Any:  # fmt: skip
    """An ONNX model of a Relay module, as ``tvm.contrib.target.onnx.to_onnx`` makes one."""
    from .tvm_byoc import to_onnx as convert

    return convert(relay_ir, params, name, opset_version, path)


def import_relay() -> tuple[Any, Any]:
    """TVM and its Relay.

    Raises:
        MissingDependency: where it is not installed, or has none.
    """
    try:
        import tvm
        from tvm import relay
    except (ImportError, OSError) as error:
        raise MissingDependency(f"{INSTALL} ({error})") from error
    return tvm, relay


def run(
    source: Any, feeds: Mapping[str, np.ndarray[Any, Any]], **options: Any
) -> list[np.ndarray[Any, Any]]:
    """What TVM's virtual machine computes on the CPU, for a module file or a live module.

    Raises:
        MissingDependency: without a TVM that has Relay. SerdeError: where it refuses the module.
    """
    return prepare(source, **options)(feeds)


def prepare(
    source: Any, *, params: Any = None, outputs: Any = None, **options: Any
) -> Callable[[Mapping[str, np.ndarray[Any, Any]]], list[np.ndarray[Any, Any]]]:
    """A function of the feeds that runs a module, as ``run`` does; it is compiled once.

    A file is run by a process of its own; live objects are run here, with what is registered here.
    """
    if outputs:
        raise UsageError("TVM runs whole modules: it cannot be cut at an output")
    entry, files = options.get("entry"), [source, *([] if params is None else [params])]
    if not options.get("apart", True) or not all(isinstance(f, (str, os.PathLike)) for f in files):
        return prepare_here(source, params, entry)
    worker = get_worker(TVMWorker)
    path, *weights = map(os.path.abspath, files)
    number = worker.load(source=path, params=weights[0] if weights else None, entry=entry)
    return WorkerRun(worker, number, None, {})


class TVMWorker(ArrayWorker):
    """A process that runs files of Relay."""

    def __init__(self) -> None:
        program = import_program("serde.bridges.tvm_worker")
        super().__init__(program, "TVM", "tvm", INSTALL)


def prepare_here(
    source: Any, params: Any, entry: str | None
) -> Callable[[Mapping[str, np.ndarray[Any, Any]]], list[np.ndarray[Any, Any]]]:
    """A function of the feeds that runs a module in this process."""
    tvm, relay = import_relay()
    with _convert_errors(tvm):
        module = _module(tvm, source, entry)
        weights = _load_arrays(_find_params(source, module) if params is None else params)
        # A dispatch context of no records: else TVM asks the network for tuned schedules.
        with COMPILING, tvm.autotvm.apply_history_best([]):
            executor = relay.create_executor("vm", mod=module, device=tvm.cpu(), target="llvm")
            evaluate = executor.evaluate()

    known = {p.name_hint for p in module["main"].params}

    def run_prepared(feeds: Mapping[str, np.ndarray[Any, Any]]) -> list[np.ndarray[Any, Any]]:
        arrays = {**weights, **{_spell(n, known): np.asarray(a) for n, a in feeds.items()}}
        names = Names()
        with _convert_errors(tvm):
            args = [_argument(names.claim(p.name_hint), p.checked_type, arrays)
                    for p in module["main"].params]  # fmt: skip
            return list(_arrays(evaluate(*args)))

    return run_prepared


@contextmanager
def _convert_errors(tvm: Any) -> Iterator[None]:
    try:
        yield
    except (RuntimeError, ValueError, KeyError, TypeError, AssertionError) as error:
        raise SerdeError(f"TVM refuses the module: {error}") from error


def _find_params(source: Any, module: Any) -> Path | None:
    """The parameter file of a module's file, by the rule that reading follows."""
    if not isinstance(source, (str, os.PathLike)):
        return None
    from serde.formats.relay.io.discover import find_params

    names = {p.name_hint for p in module["main"].params}
    return find_params(Path(source), lambda weights: [n for n in weights if n not in names])[0]


def _load_arrays(params: Any) -> dict[str, Any]:
    if isinstance(params, (str, os.PathLike)):
        from serde.formats.relay.io.params import read_params

        return {n: t.load() for n, t in read_params(params).items()}
    return {n: t.load() for n, t in to_tensors(params).items()}


def _module(tvm: Any, source: Any, entry: str | None) -> Any:
    """The module, with ``entry`` or its only function for ``main``."""
    if isinstance(source, (str, os.PathLike)):
        source = _read(tvm, Path(source))
    if not isinstance(source, tvm.IRModule):
        source = tvm.IRModule.from_expr(source)
    names = [v.name_hint for v in source.get_global_vars()]
    name = entry or ("main" if "main" in names else names[0])
    if name != "main":
        source = tvm.IRModule(dict(source.functions.items()), source.type_definitions)
        source["main"] = source[name]
    return tvm.relay.transform.InferType()(source)


def _read(tvm: Any, path: Path) -> Any:
    """What TVM itself reads, or else what is read here: its parser rejects some of its own text."""
    from serde.formats.relay.decode import read_module
    from serde.formats.relay.json.writer import to_json

    try:
        with open_regular(path) as file:
            text = file.read().decode()
        is_json = text.lstrip().startswith("{")
        return (tvm.ir.load_json if is_json else tvm.relay.fromtext)(text)
    except (tvm.TVMError, UnicodeDecodeError):
        return tvm.ir.load_json(to_json(read_module(path)))


def _spell(name: str, known: Set[str]) -> str:
    """The name of an input, or what the text form of a module has for it."""
    from serde.formats.relay.text.print_parts import Names as PrintedNames

    printed = name if name in known else PrintedNames(raw=False).claim(name, "v")
    return printed if printed in known else name


def _argument(name: str, type_: Any, arrays: Mapping[str, Any]) -> Any:
    """An argument by name; the fields of a tuple are numbered behind its name."""
    fields = getattr(type_, "fields", None)
    if fields is None:
        return arrays[name]
    return tuple(_argument(f"{name}.{i}", t, arrays) for i, t in enumerate(fields))


def _arrays(result: Any) -> Iterator[np.ndarray[Any, Any]]:
    if hasattr(result, "numpy"):
        yield result.numpy()
    else:
        for field in result:
            yield from _arrays(field)


BRIDGE = Bridge("tvm", ("tvm",), "relay", decode, run, {"relay": to_relay, "relax": to_relax},
                prepare, ends_anywhere=False, libraries=("tvm",), versions=VERSIONS)  # fmt: skip
