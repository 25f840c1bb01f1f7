"""ModelProto objects, and models run in ONNX Runtime."""

from __future__ import annotations

import os
import re
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from typing import Any

import numpy as np

from serde.errors import MissingDependency, SerdeError
from serde.io.sniff import open_uncharged
from serde.ir.graph import Graph
from serde.plugins import Bridge
from serde.verification.baked_batch import NotComparable

from .int8_products import describe_inexactness

Array = np.ndarray[Any, Any]
FOLDER = "session.model_external_initializers_file_folder_path"
ERROR_CODE = re.compile(r"^\[ONNXRuntimeError\] : \d+ : (?!NOT_)[A-Z_]+ : ")
ERROR_NODE = re.compile(
    r"Non-zero status code returned while running (\w+) node\. Name:('[^']*') Status Message: "
    r"(?:/\S+:\d+ .*?\) )?"
)
RUNNING = "cannot run the model on these inputs"
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
    optimize: bool = True, threads: int | None = None, rounded: bool = False, **options: Any,
) -> Callable[[Mapping[str, Array]], list[Array]]:  # fmt: skip
    """A function of the feeds that runs a model, as ``run`` does.

    ``cut_inputs`` are names of values to begin the model at. ``optimize`` is whether ONNX Runtime
    rewrites the model before it runs it, as by default. ``threads`` is how many it has; one for
    each core if left out. They spin during a run only: after it, they would take time from other
    models of the process. ``rounded`` is whether numbers of float16 are rounded after each node, as
    they are where float16 is computed with.
    """
    if cut_inputs:
        return _prepare_cut(source, outputs, cut_inputs, optimize)
    folder = os.path.dirname(os.path.abspath(source)) if _is_path(source) else None
    model: Any = os.fspath(source) if _is_path(source) else source.SerializeToString()
    if outputs:
        model, outputs = _add_outputs(source, outputs)
    elif rounded:
        from .onnx_rounding import round_after_each_node

        model = round_after_each_node(_model_of(source)).SerializeToString()
        optimize = False
    return PreparedModel(_session(model, optimize, folder, threads), outputs)


class PreparedModel:
    """A model in ONNX Runtime, as a function of the feeds."""

    def __init__(self, session: Any, outputs: Sequence[str] | None = None) -> None:
        self.session, self.outputs, self.inputs = session, outputs, session.get_inputs()
        self.names = [o.name for o in session.get_outputs()]
        self.has_tensors = all(
            v.type.startswith("tensor(") and v.type != "tensor(string)"
            for v in (*self.inputs, *session.get_outputs())
        )

    def __call__(self, feeds: Mapping[str, Array]) -> list[Array]:
        """The outputs as arrays."""
        arrays = {i.name: feeds[i.name] for i in self.inputs if i.name in feeds}
        if self.outputs:  # which may need fewer inputs than the model asks for
            arrays |= {i.name: _make_zeros(i) for i in self.inputs if i.name not in feeds}
        with _convert_errors(RUNNING):
            return list(self.session.run(self.outputs, arrays))

    def run_values(self, feeds: Mapping[str, Any]) -> list[Any]:
        """The outputs as values of ONNX Runtime, from such values or arrays: none is copied."""
        if not self.has_tensors:
            plain = {n: v.numpy() if hasattr(v, "numpy") else v for n, v in feeds.items()}
            return list(self(plain))
        import onnxruntime

        make = onnxruntime.OrtValue.ortvalue_from_numpy
        with _convert_errors(RUNNING):
            values = {n: make(np.asarray(v, order="C")) if isinstance(v, np.ndarray) else v
                      for n, v in feeds.items()}  # fmt: skip
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
    runs: dict[tuple[str, ...], Any] = {}

    def run_prepared(feeds: Mapping[str, Array]) -> list[Array]:
        key = tuple(str(a.dtype) for a in feeds.values())
        if key not in runs:
            shorter = cut_model(model, cut_inputs, feeds, outputs)
            runs[key] = _session(shorter.SerializeToString(), optimize, folder)
        with _convert_errors(RUNNING):
            names = {i.name for i in runs[key].get_inputs()}
            arrays = {n: a for n, a in feeds.items() if n in names}
            return list(runs[key].run(None, arrays))

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


def _session(
    model: Any, optimize: bool, folder: str | None, threads: int | None = None
) -> Any:  # fmt: skip
    """A session of a path or of bytes, whose external data are in ``folder``."""
    try:
        import onnxruntime
    except ImportError as error:
        raise MissingDependency(INSTALL) from error
    settings = onnxruntime.SessionOptions()
    settings.log_severity_level = 4  # its errors are raised
    if not optimize:
        settings.graph_optimization_level = onnxruntime.GraphOptimizationLevel.ORT_DISABLE_ALL
    if threads is not None:
        settings.intra_op_num_threads = threads
    settings.add_session_config_entry("session.force_spinning_stop", "1")
    if isinstance(model, str) and not _is_utf8(model):
        with open_uncharged(model) as file:  # ONNX Runtime takes no such path
            model = file.read()
    if folder is not None and not isinstance(model, str) and _is_utf8(folder):
        settings.add_session_config_entry(FOLDER, folder)
    with _convert_errors():
        return onnxruntime.InferenceSession(model, settings, providers=["CPUExecutionProvider"])


@contextmanager
def _convert_errors(what: str = "refuses the model") -> Iterator[None]:
    """Raise what ONNX Runtime raises as an error of serde.

    Raises:
        NotComparable: where it has no kernel for an operator, or is older than the model.
        SerdeError: otherwise.
    """
    try:
        yield
    except Exception as error:  # its exceptions have no common base but this
        lacks = any(sign in str(error) for sign in LACKING)
        raised = NotComparable if lacks else SerdeError
        raise raised(f"ONNX Runtime {what}: {_shorten(str(error))}") from error


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


def _make_zeros(expected: Any) -> np.ndarray[Any, Any]:
    """Zeros for an input whose value does not matter."""
    kind = expected.type.removeprefix("tensor(").removesuffix(")")
    dtype = {"float": "float32", "double": "float64", "string": "object"}.get(kind, kind)
    return np.zeros([d if isinstance(d, int) else 1 for d in expected.shape], dtype)


BRIDGE = Bridge(
    "onnx", ("onnx",), "onnx", decode, run, prepare=prepare,
    settings={"without ONNX Runtime's optimiser": {"optimize": False}},
    narrow_settings={"rounded to float16 after each node": {"rounded": True}},
    begins_anywhere=True, describe_inexactness=describe_inexactness, libraries=("onnxruntime",),
)  # fmt: skip
