"""ModelProto objects, and models run in ONNX Runtime."""

from __future__ import annotations

import os
import re
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import numpy as np

from serde.errors import MissingDependency, SerdeError
from serde.io.sniff import open_uncharged
from serde.ir.graph import Graph
from serde.plugins import Bridge
from serde.verification.baked_batch import NotComparable

from .array_worker import VERSIONS, ArrayWorker, WorkerRun, get_worker, read_program
from .int8_products import describe_inexactness
from .onnxruntime_worker import open_session, run_session, to_value

Array = np.ndarray[Any, Any]
ERROR_CODE = re.compile(r"^\[ONNXRuntimeError\] : \d+ : (?!NOT_)[A-Z_]+ : ")
ERROR_NODE = re.compile(
    r"Non-zero status code returned while running (\w+) node\. Name:('[^']*') Status Message: "
    r"(?:/\S+:\d+ .*?\) )?"
)
RUNNING, REFUSING = "cannot run the model on these inputs", "refuses the model"
# Signs of what the ONNX Runtime that is installed lacks, and other releases or builds may have.
LACKING = (
    "NOT_IMPLEMENTED", "is not a registered function/op", "is under development",
    "Unsupported model IR version",
)  # fmt: skip
INSTALL = "ONNX Runtime is needed to run ONNX models: pip install onnxruntime"


def decode(model: Any, params: Any = None, **options: Any) -> Graph:
    """Read a live ModelProto."""
    from serde.formats.onnx.reader import decode as decode_model

    return decode_model(model)


def run(
    source: Any, feeds: Mapping[str, Array], *, outputs: Any = None, **options: Any
) -> list[Array]:
    """What ONNX Runtime computes for a model file or ModelProto.

    Raises:
        MissingDependency: without ONNX Runtime. SerdeError: where it refuses the model.
    """
    return prepare(source, outputs=outputs, **options)(feeds)


def prepare(
    source: Any, *, outputs: Any = None, cut_inputs: Sequence[str] | None = None,
    optimize: bool = True, threads: int | None = None, rounded: bool = False, apart: bool = True,
    **options: Any,
) -> Callable[[Mapping[str, Array]], list[Array]]:  # fmt: skip
    """A function of the feeds that runs a model, as ``run`` does.

    ``cut_inputs`` are names of values to begin the model at. ``optimize`` is whether ONNX Runtime
    rewrites the model before it runs it, as by default. ``threads`` is how many it has; one for
    each core if left out. They spin during a run only: after it, they would take time from other
    models of the process. ``rounded`` is whether numbers of float16 are rounded after each node, as
    they are where float16 is computed with. ``apart`` is whether a process of its own runs it.
    """
    if cut_inputs:
        return _prepare_cut(source, outputs, cut_inputs, optimize)
    folder = os.path.dirname(os.path.abspath(source)) if _is_path(source) else None
    model: Any = os.path.abspath(source) if _is_path(source) else source.SerializeToString()
    if outputs:
        model, outputs = _add_outputs(source, outputs)
    elif rounded:
        from .onnx_rounding import round_after_each_node

        model = round_after_each_node(_model_of(source)).SerializeToString()
        optimize = False
    if isinstance(model, str) and not _is_utf8(model):  # ONNX Runtime takes no such path
        with open_uncharged(model) as file:
            model = file.read()
    if apart:
        return _open_apart(model, folder, optimize, threads, outputs)
    return PreparedModel(_open_here(model, folder, optimize, threads), outputs)


class RuntimeWorker(ArrayWorker):
    """A process that runs models in ONNX Runtime."""

    def __init__(self) -> None:
        program = read_program("onnxruntime_worker.py")
        super().__init__(program, "ONNX Runtime", "onnxruntime", INSTALL)

    def _make_error(self, kind: str, message: str, is_loaded: bool) -> SerdeError:
        return _convert_error(message, RUNNING if is_loaded else REFUSING)


def _open_apart(
    model: str | bytes, folder: str | None, optimize: bool, threads: int | None,
    outputs: Sequence[str] | None = None,
) -> WorkerRun:  # fmt: skip
    """A model in a process of its own, of a path or of bytes."""
    worker = get_worker(RuntimeWorker)
    options: dict[str, Any] = {"optimize": optimize, "threads": threads}
    options["folder"] = folder if folder is not None and _is_utf8(folder) else None
    if isinstance(model, str):
        number = worker.load(path=model, is_copied=False, **options)
    else:
        with worker.make_folder() as place:
            path = Path(place, "model.onnx")
            path.write_bytes(model)
            number = worker.load(path=os.fspath(path), is_copied=True, **options)
    return WorkerRun(worker, number, None, {"outputs": outputs})


def _open_here(model: str | bytes, folder: str | None, optimize: bool, threads: int | None) -> Any:
    """A session in this process, of a path or of bytes, whose external data are in ``folder``."""
    is_named = folder is not None and not isinstance(model, str) and _is_utf8(folder)
    with _convert_errors(REFUSING):
        return open_session(model, folder if is_named else None, optimize, threads)


class PreparedModel:
    """A model in ONNX Runtime in this process, as a function of the feeds."""

    def __init__(self, session: Any, outputs: Sequence[str] | None = None) -> None:
        self.session, self.outputs = session, outputs
        self.names = [o.name for o in session.get_outputs()]
        self.has_tensors = all(
            v.type.startswith("tensor(") and v.type != "tensor(string)"
            for v in (*session.get_inputs(), *session.get_outputs())
        )

    def __call__(self, feeds: Mapping[str, Array]) -> list[Array]:
        """The outputs as arrays."""
        with _convert_errors(RUNNING):
            return run_session(self.session, feeds, self.outputs)

    def run_values(self, feeds: Mapping[str, Any]) -> list[Any]:
        """The outputs as values of ONNX Runtime, from such values or arrays: none is copied."""
        if not self.has_tensors:
            plain = {n: v.numpy() if hasattr(v, "numpy") else v for n, v in feeds.items()}
            return list(self(plain))
        with _convert_errors(RUNNING):
            values = {n: to_value(v) if isinstance(v, np.ndarray) else v for n, v in feeds.items()}
            return list(self.session.run_with_ort_values(self.names, values))


def _prepare_cut(
    source: Any, outputs: Any, cut_inputs: Sequence[str], optimize: bool
) -> Callable[[Mapping[str, Array]], list[Array]]:
    """As ``prepare``, for a model that begins at ``cut_inputs``.

    The model is made at the first run: feeds tell the element types that inputs need.
    """
    from .onnx_cuts import cut_model

    model = _model_of(source)
    folder = os.path.dirname(os.path.abspath(source)) if _is_path(source) else None
    runs: dict[tuple[str, ...], WorkerRun] = {}

    def run_prepared(feeds: Mapping[str, Array]) -> list[Array]:
        key = tuple(str(a.dtype) for a in feeds.values())
        if key not in runs:
            shorter = cut_model(model, cut_inputs, feeds, outputs)
            runs[key] = _open_apart(shorter.SerializeToString(), folder, optimize, None)
        return list(runs[key](feeds))

    return run_prepared


def _is_utf8(path: str) -> bool:
    """Whether the name of a file is text; on Linux it may be any bytes."""
    return os.fsencode(path).decode("utf-8", "ignore") == path


def _is_path(source: Any) -> bool:
    return isinstance(source, (str, os.PathLike))


def _model_of(source: Any) -> Any:
    """A copy of a ModelProto, or that of a file without its external data."""
    import onnx

    if _is_path(source):
        return onnx.load(os.fspath(source), format="protobuf", load_external_data=False)
    model = onnx.ModelProto()
    model.CopyFrom(source)
    return model


@contextmanager
def _convert_errors(what: str) -> Iterator[None]:
    """Raise what ONNX Runtime raises in this process as an error of serde."""
    try:
        yield
    except ImportError as error:
        raise MissingDependency(INSTALL) from error
    except Exception as error:  # its exceptions have no common base but this
        raise _convert_error(str(error), what) from error


def _convert_error(message: str, what: str) -> SerdeError:
    """The error for one of ONNX Runtime: another, where it has no kernel, or is too old."""
    kind = NotComparable if any(sign in message for sign in LACKING) else SerdeError
    return kind(f"ONNX Runtime {what}: {_shorten(message)}")


def _shorten(message: str) -> str:
    """What ONNX Runtime says, without the place in its own code."""
    return ERROR_NODE.sub(r"\1 \2: ", ERROR_CODE.sub("", message)).strip()


def _add_outputs(source: Any, names: Sequence[str]) -> tuple[bytes, list[str]]:
    """A model that has values or nodes by ``names`` for outputs as well, and what they are called.

    Raises:
        SerdeError: where it computes no such value.
    """
    model = _model_of(source)
    by_value = {name: name for node in model.graph.node for name in node.output}
    by_value |= {i.name: i.name for i in model.graph.input}
    by_node = {node.name: node.output[0] for node in reversed(model.graph.node) if node.output}
    values = [by_value.get(n) or by_value.get(f"{n}_output") or by_node.get(n) for n in names]
    if None in values:
        raise SerdeError(f"the model computes no {names[values.index(None)]!r}")
    ends = [name for name in values if name is not None]
    there = {o.name for o in model.graph.output}
    for name in dict.fromkeys(ends):
        if name not in there:
            model.graph.output.add(name=name)
    return model.SerializeToString(), ends


BRIDGE = Bridge(
    "onnx", ("onnx",), "onnx", decode, run, prepare=prepare,
    settings={"without ONNX Runtime's optimiser": {"optimize": False}},
    narrow_settings={"rounded to float16 after each node": {"rounded": True}},
    begins_anywhere=True, describe_inexactness=describe_inexactness, libraries=("onnxruntime",),
    versions=VERSIONS,
)  # fmt: skip
