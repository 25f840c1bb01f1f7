"""ModelProto objects, and models run in ONNX Runtime."""

from __future__ import annotations

import os
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from typing import Any

import numpy as np

from serde.errors import MissingDependency, SerdeError
from serde.graph import Graph
from serde.plugins import Bridge

Array = np.ndarray[Any, Any]
FOLDER = "session.model_external_initializers_file_folder_path"
INSTALL = "ONNX Runtime is needed to run ONNX models: pip install 'serde-hub[verify]'"


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
    source: Any, *, outputs: Any = None, optimize: bool = True, **options: Any
) -> Callable[[Mapping[str, Array]], list[Array]]:
    """A function of the feeds that runs a model, as ``run`` does.

    ``optimize`` is whether ONNX Runtime rewrites the model before it runs it, as by default.
    """
    try:
        import onnxruntime
    except ImportError as error:
        raise MissingDependency(INSTALL) from error
    is_path = isinstance(source, (str, os.PathLike))
    settings = onnxruntime.SessionOptions()
    settings.log_severity_level = 3
    if not optimize:
        settings.graph_optimization_level = onnxruntime.GraphOptimizationLevel.ORT_DISABLE_ALL
    model: Any = os.fspath(source) if is_path else source.SerializeToString()
    if outputs:
        model, outputs = _ending_at(source, outputs)
    if outputs and is_path:
        settings.add_session_config_entry(FOLDER, os.path.dirname(os.path.abspath(source)))
    with _refusals():
        session = onnxruntime.InferenceSession(model, settings, providers=["CPUExecutionProvider"])

    def run_prepared(feeds: Mapping[str, Array]) -> list[Array]:
        inputs = session.get_inputs()
        given = {i.name: feeds[i.name] for i in inputs if i.name in feeds}
        if outputs:  # which may need fewer inputs than the model asks for
            given |= {i.name: _nothing(i) for i in inputs if i.name not in feeds}
        with _refusals():
            return list(session.run(outputs, given))

    return run_prepared


@contextmanager
def _refusals() -> Iterator[None]:
    try:
        yield
    except Exception as error:  # its exceptions have no common base but this
        raise SerdeError(f"ONNX Runtime refuses the model: {error}") from error


def _ending_at(source: Any, names: Sequence[str]) -> tuple[bytes, list[str]]:
    """A model that has values or nodes by ``names`` for outputs as well, and what they are called.

    Raises:
        SerdeError: where it computes no such value.
    """
    import onnx

    model = onnx.ModelProto()
    if isinstance(source, (str, os.PathLike)):
        model = onnx.load(os.fspath(source), load_external_data=False)
    else:
        model.CopyFrom(source)
    made = {name: name for node in model.graph.node for name in node.output}
    made |= {i.name: i.name for i in model.graph.input}
    by_node = {node.name: node.output[0] for node in reversed(model.graph.node) if node.output}
    found = [made.get(n) or made.get(f"{n}_output") or by_node.get(n) for n in names]
    if None in found:
        raise SerdeError(f"the model computes no {names[found.index(None)]!r}")
    ends = [name for name in found if name is not None]
    there = {o.name for o in model.graph.output}
    for name in dict.fromkeys(ends):
        if name not in there:
            model.graph.output.add(name=name)
    return model.SerializeToString(), ends


def _nothing(wanted: Any) -> np.ndarray[Any, Any]:
    """Zeros for an input whose value does not matter."""
    kind = wanted.type.removeprefix("tensor(").removesuffix(")")
    dtype = {"float": "float32", "double": "float64", "string": "object"}.get(kind, kind)
    return np.zeros([d if isinstance(d, int) else 1 for d in wanted.shape], dtype)


BRIDGE = Bridge(
    "onnx", ("onnx",), "onnx", decode, run, prepare=prepare,
    settings={"without ONNX Runtime's optimiser": {"optimize": False}},
)  # fmt: skip
