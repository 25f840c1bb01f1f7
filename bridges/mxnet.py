"""MXNet's live objects, and MXNet itself on today's NumPy.

Importing this module lets a later ``import mxnet`` succeed where NumPy no longer has what MXNet
1.9.1 looks up, and puts the announced ``mxnet.serde`` in place: ``export`` and ``import_``.
"""

from __future__ import annotations

import importlib.abc
import importlib.machinery
import importlib.util
import os
import sys
import warnings
from collections.abc import Callable, Mapping, Sequence
from functools import partial
from pathlib import Path
from types import ModuleType
from typing import TYPE_CHECKING, Any

import numpy as np

from serde.errors import MissingDependency, UsageError
from serde.ir.graph import Graph
from serde.plugins import Bridge, Completion

from .array_worker import VERSIONS, get_worker
from .mxnet_export import data_inputs, export_model
from .mxnet_feeds import Internals, complete, find_changes
from .mxnet_onnx import get_model_metadata, get_operator_support, import_model, replace_functions
from .mxnet_process import INSTALL, MXNetWorker, SymbolProcess
from .mxnet_run import FLOATS, Model, PreparedSymbol, begin_at, with_plain_labels
from .numpy_compat import mend_mxnet, restore

if TYPE_CHECKING:
    from serde.formats.mxnet.io.discover import Files

# Options that arrays are bound by.
BINDING = ("ignore_extra", "match_params", "inputs", "set_inputs", "cut_inputs", "outputs")
__all__ = [
    "BRIDGE", "attach", "data_inputs", "decode", "export_model", "get_model_metadata",
    "get_operator_support", "import_model", "import_mxnet", "import_to_gluon", "install",
    "prepare", "run", "to_block", "to_symbol", "trace",
]  # fmt: skip


class _MendingLoader(importlib.abc.Loader):
    """Load MXNet with the names it needs in NumPy, and with ``mxnet.serde`` in it."""

    def __init__(self, inner: importlib.abc.Loader) -> None:
        self.inner = inner

    def create_module(self, spec: importlib.machinery.ModuleSpec) -> ModuleType | None:
        return self.inner.create_module(spec)

    def exec_module(self, module: ModuleType) -> None:
        restore()
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            self.inner.exec_module(module)
            mend_mxnet(module)
        attach(module)


class _Finder(importlib.abc.MetaPathFinder):
    """Finds ``mxnet`` where it would be found anyway, and has it mended."""

    def find_spec(
        self, name: str, path: Sequence[str] | None, target: ModuleType | None = None
    ) -> importlib.machinery.ModuleSpec | None:
        if name != "mxnet":
            return None
        spec = importlib.machinery.PathFinder.find_spec(name, path, target)
        if spec is not None and spec.loader is not None:
            spec.loader = _MendingLoader(spec.loader)
        return spec


def attach(mxnet: ModuleType) -> None:
    """Put ``mxnet.serde`` in place."""
    import serde

    announced = ModuleType("mxnet.serde", "Conversion to and from other formats, by serde-hub.")
    vars(announced).update(
        {"export": serde.export, "import_": serde.import_, "import": serde.import_,
         "load": serde.load, "to_block": to_block,
         "trace": trace}
    )  # fmt: skip
    mxnet.serde = announced  # type: ignore[attr-defined]
    sys.modules["mxnet.serde"] = announced


def import_mxnet() -> ModuleType:
    """MXNet, mended.

    Raises:
        MissingDependency: where it is not installed, or one of its shared libraries is missing.
    """
    try:
        return importlib.import_module("mxnet")
    except (ImportError, OSError, RuntimeError) as error:
        raise MissingDependency(f"{INSTALL} ({error})") from error


def decode(model: Any, params: Any = None, **options: Any) -> Graph:
    """Read a Symbol with its parameters, or a hybridized Gluon block that has run once.

    ``params`` maps names, with or without ``arg:`` and ``aux:``, to NDArrays or NumPy arrays; a
    pair ``(arg_params, aux_params)`` or the path of a file will do as well.
    """
    from serde.formats.mxnet.decode import decode_files

    return decode_files(_collect(model, params), **options)


def _collect(model: Any, params: Any) -> Files:
    """The text of a live model's symbol and its parameters, as of files."""
    from serde.formats.mxnet.io.discover import Files

    symbol, arrays = _symbol_and_params(model, params)
    name = getattr(model, "name", None) or "symbol"
    return Files(str(name), symbol.encode(), arrays)


def _symbol_and_params(model: Any, params: Any) -> tuple[str, Any]:
    if hasattr(model, "collect_params"):
        return _from_block(model, params)
    if isinstance(params, (str, os.PathLike)):
        from serde.formats.mxnet.io.params import read_params

        return model.tojson(), read_params(params)
    return model.tojson(), None if params is None else _to_params(params)


def _from_block(block: Any, params: Any) -> tuple[str, Any]:
    """The symbol a block was hybridized into, and the block's own parameters."""
    graph = getattr(block, "_cached_graph", None)
    if not graph:
        raise UsageError(
            f"block {block.name!r} has no symbol yet: call hybridize() and run it once; "
            "where it cannot be hybridized, serde.bridges.mxnet.trace(block, x) records a run"
        )
    if params is not None:
        raise UsageError("a block holds its own parameters: leave params out")
    symbol = graph[1]
    expected = set(symbol.list_inputs())
    arrays = {n: p.data() for n, p in block.collect_params().items() if n in expected}
    return symbol.tojson(), _to_params(arrays)


def _to_params(params: Any) -> Any:
    from serde.formats.mxnet.io.params import Params

    return Params.of(params)


def trace(block: Any, *inputs: Any, **options: Any) -> Graph:
    """The graph of the IR of one run of a Gluon block, which need not be hybridizable.

    Python control flow, Lambda blocks and ``mx.np`` code run as they are; each operator that MXNet
    is asked for is recorded, with the line of the code. ``Graph.notes`` say where numbers were
    read that inputs decide: there the graph does what this run did. ``options`` are those of
    ``serde.load``, such as ``rebatch="N"``.

    Raises:
        SerdeError: where the block changes its inputs or parameters. Unconvertible: for operators
            that have no equivalent.
    """
    from serde.formats.mxnet.decode import decode_symbol
    from serde.formats.mxnet.io.symbol_json import parse_symbol
    from serde.passes.cut_inputs import rename
    from serde.pipeline import load

    from .mxnet_trace import add_notes, output_names, record

    name = str(getattr(block, "name", None) or "block")
    symbol, arrays, recording = record(import_mxnet(), block, inputs)
    graph = decode_symbol(parse_symbol(symbol, name), _to_params(arrays), name, named=None)
    names = [v.name for v in graph.inputs]
    data_names = [n["name"] for n in recording.nodes[: len(inputs)]]
    shapes = {n: (x.shape, np.dtype(x.dtype)) for n, x in zip(data_names, inputs, strict=True)}
    graph = load(graph, inputs={n: s for n, s in shapes.items() if n in names}, **options)
    return rename(add_notes(graph, recording), output_names(graph))


def run(
    source: Any, feeds: Mapping[str, np.ndarray[Any, Any]], **options: Any
) -> list[np.ndarray[Any, Any]]:
    """What MXNet itself computes for a model, given as paths or live objects, in inference mode.

    Variables that ``feeds`` has are inputs, whatever array there is. Unless ``outputs`` are named
    they are those that a conversion has. Inputs that ``feeds`` leaves out (labels) are zeros of the
    shape MXNet infers. Where this process has not imported MXNet, it runs in one of its own, and so
    do ``plain`` kernels, which MXNet chooses once.
    """
    return prepare(source, **{"inputs": feeds, **options})(feeds)


def prepare(
    source: Any, *, params: Any = None, outputs: Sequence[str] | None = None,
    epoch: int | None = None, kernels: str = "onednn", cut_inputs: Sequence[str] | None = None,
    **options: Any,
) -> Callable[[Mapping[str, np.ndarray[Any, Any]]], list[np.ndarray[Any, Any]]]:  # fmt: skip
    """A function of the feeds that runs a model, as ``run`` does.

    The arrays are those that a conversion with the same options binds.
    """
    from serde.formats.mxnet.bind.symbol_info import symbol_info
    from serde.formats.mxnet.passes.drop_labels import drop_labels

    # which imports MXNet meanwhile
    worker = None if _runs_here(kernels) else get_worker(MXNetWorker, kernels)
    files, graph = _decode_source(
        source, params=params, outputs=outputs, epoch=epoch, cut_inputs=cut_inputs, **options
    )
    inference = drop_labels(graph, outputs is not None)
    needed = {v.name for v in inference.inputs}
    tensors = {v.name: v.tensor for v in graph.constants()}
    tensors |= {n: t for n, t in symbol_info(graph).input_arrays.items() if n in needed}
    kept = set(inference.outputs)
    model = Model(
        begin_at(with_plain_labels(files.symbol.decode()), graph, cut_inputs or ()),
        {n: t.load() for n, t in tensors.items() if t is not None}, needed, outputs,
        [i for i, v in enumerate(graph.outputs) if v in kept],
    )  # fmt: skip
    return _prepare_symbol(model, worker)


def _runs_here(kernels: str = "onednn") -> bool:
    """Whether this process runs models: it has imported MXNet, with operators of the user's own."""
    return "mxnet" in sys.modules and kernels != "plain"


def _prepare_symbol(model: Model, worker: MXNetWorker | None) -> PreparedSymbol | SymbolProcess:
    """A symbol to run in a process, or else in this one."""
    if worker is None:
        return PreparedSymbol(import_mxnet(), model)
    return SymbolProcess(worker, model)


def _decode_source(
    source: Any, *, params: Any = None, epoch: int | None = None, **options: Any
) -> tuple[Files, Graph]:  # fmt: skip
    """The files of a source, and its graph with the arrays that a conversion binds."""
    from serde.formats.mxnet.decode import decode_files
    from serde.formats.mxnet.io.discover import find

    is_path = isinstance(source, (str, os.PathLike))
    files = find(Path(source), params, epoch) if is_path else _collect(source, params)
    return files, decode_files(files, **{n: options[n] for n in BINDING if n in options})


def complete_feeds(source: Any, **options: Any) -> Completion | None:
    """A function that changes feeds to some with which MXNet computes what the model means.

    None for a model that needs none of that.
    """
    files, graph = _decode_source(source, **options)
    changes = find_changes(graph, options.get("rebatch") is None)
    if not changes:
        return None
    symbol = _prepare_symbol(
        Model(files.symbol.decode()), None if _runs_here() else get_worker(MXNetWorker, "onednn")
    )
    return partial(complete, Internals(symbol.infer_shape, graph), changes)


def to_symbol(graph: Graph) -> tuple[Any, dict[str, Any]]:
    """An IR graph as a live Symbol and its parameters, named as in a file: ``arg:``, ``aux:``.

    Raises:
        Unconvertible: for every node the MXNet that is installed cannot express.
    """
    from serde.formats.mxnet.from_ir import from_ir
    from serde.formats.mxnet.io.symbol_writer import encode_live
    from serde.passes import drop_dead, share_constants

    mx = import_mxnet()
    there = mx.__version__
    symbol, arrays = encode_live(share_constants(drop_dead(from_ir(graph, mxnet=there))), there)
    loaded = {n: mx.nd.array(t.load(), dtype=t.dtype.numpy) for n, t in arrays.items()}
    return mx.sym.load_json(symbol), loaded


def to_block(source: Any, *, ctx: Any = None, **options: Any) -> Any:
    """A model of any format as a ``gluon.SymbolBlock``, ready to run or to train further.

    ``source`` is a Graph, or what ``serde.load`` takes with ``options``. The block takes the
    model's inputs in order. Parameters of other types than floats are not trained.
    """
    from serde import api

    mx = import_mxnet()
    graph = source if isinstance(source, Graph) else api.load(source, **options)
    symbol, params = to_symbol(graph)
    inputs = [mx.sym.var(v.name, dtype=v.type.numpy) for v in graph.inputs]
    block = mx.gluon.SymbolBlock(symbol, inputs)
    plain = {n.partition(":")[2]: a for n, a in params.items()}
    for name, parameter in block.collect_params().items():
        parameter.cast(plain[name].dtype)
        if plain[name].dtype not in FLOATS:
            parameter.grad_req = "null"
    block.collect_params().load_dict(plain, ctx)
    return block


def import_to_gluon(model_file: str | os.PathLike[str], ctx: Any) -> Any:
    """Read an ONNX file as ``mxnet.contrib.onnx.import_to_gluon``: a SymbolBlock on ``ctx``."""
    return to_block(model_file, ctx=ctx, format="onnx")


def install() -> None:
    """Let ``mxnet.onnx`` and ``mxnet.contrib.onnx`` export and import with serde.

    Scripts that call them run unchanged; names that were imported from there before are not
    replaced.
    """
    functions = (
        export_model, get_model_metadata, get_operator_support, import_model, import_to_gluon
    )  # fmt: skip
    replace_functions(import_mxnet(), {f.__name__: f for f in functions})


BRIDGE = Bridge(
    "mxnet",
    ("mxnet",),
    "mxnet",
    decode,
    run,
    {"mxnet": to_symbol},
    prepare,
    begins_anywhere=True,
    complete_feeds=complete_feeds,
    has_scalars=False,
    libraries=("mxnet",),
    versions=VERSIONS,
)
if not any(isinstance(f, _Finder) for f in sys.meta_path):
    sys.meta_path.insert(0, _Finder())
if "mxnet" in sys.modules:
    attach(sys.modules["mxnet"])
