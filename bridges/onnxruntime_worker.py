"""Runs ONNX models in ONNX Runtime, in a process of its own, behind ``worker_loop``."""

import ctypes
from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any

import numpy as np

if TYPE_CHECKING:
    from .worker_loop import serve, time_calls

FOLDER = "session.model_external_initializers_file_folder_path"
BFLOAT16 = 16  # ONNX's code of the type that ONNX Runtime makes no arrays of
Array = np.ndarray[Any, Any]


def open_session(
    model: str | bytes, folder: str | None = None, optimize: bool = True,
    threads: int | None = None,
) -> Any:  # fmt: skip
    """A session of a path or of bytes, whose external data are in ``folder``."""
    import onnxruntime

    settings = onnxruntime.SessionOptions()
    settings.log_severity_level = 4  # its errors are raised
    if not optimize:
        settings.graph_optimization_level = onnxruntime.GraphOptimizationLevel.ORT_DISABLE_ALL
    if threads is not None:
        settings.intra_op_num_threads = threads
    settings.add_session_config_entry("session.force_spinning_stop", "1")
    if folder is not None:
        settings.add_session_config_entry(FOLDER, folder)
    return onnxruntime.InferenceSession(model, settings, providers=["CPUExecutionProvider"])


def run_session(
    session: Any, feeds: Mapping[str, Any], outputs: Sequence[str] | None = None
) -> list[Any]:
    """The outputs; those of these names may need fewer inputs than the model asks for."""
    inputs, results = session.get_inputs(), session.get_outputs()
    arrays = {i.name: feeds[i.name] for i in inputs if i.name in feeds}
    if outputs:
        arrays |= {i.name: make_zeros(i) for i in inputs if i.name not in feeds}
    if all("bfloat16" not in v.type for v in (*inputs, *results)):
        return list(session.run(outputs, arrays))
    values = {name: to_value(x) for name, x in arrays.items()}
    names = outputs or [v.name for v in results]
    return [*map(to_array, session.run_with_ort_values(names, values))]


def to_value(array: Array) -> Any:
    """An array as a value of ONNX Runtime."""
    from onnxruntime import OrtValue

    array = np.ascontiguousarray(array).reshape(np.shape(array))
    if array.dtype.name != "bfloat16":
        return OrtValue.ortvalue_from_numpy(array)
    return OrtValue.ortvalue_from_numpy_with_onnx_type(array.view(np.uint16), BFLOAT16)


def to_array(value: Any) -> Any:
    """A value of ONNX Runtime as an array."""
    if value.data_type() != "tensor(bfloat16)":
        return value.numpy()
    import ml_dtypes

    size = 2 * int(np.prod(value.shape(), dtype=np.int64))
    data = ctypes.string_at(value.data_ptr(), size) if size else b""
    return np.frombuffer(data, ml_dtypes.bfloat16).reshape(value.shape())


def make_zeros(expected: Any) -> Array:
    """Zeros for an input whose value does not matter."""
    kind = expected.type.removeprefix("tensor(").removesuffix(")")
    dtype = {"float": "float32", "double": "float64", "string": "object"}.get(kind, kind)
    return np.zeros([d if isinstance(d, int) else 1 for d in expected.shape], dtype)


def load_model(
    path: str, folder: str | None, is_copied: bool, optimize: bool, threads: int | None
) -> Any:  # fmt: skip
    """The session of a file, whose content is read first where it ``is_copied``."""
    if not is_copied:
        return open_session(path, folder, optimize, threads)
    with open(path, "rb") as file:
        return open_session(file.read(), folder, optimize, threads)


def run(
    session: Any, values: Sequence[Any], count: int, outputs: Sequence[str] | None
) -> tuple[list[Any], list[float]]:
    """What a model computes of arrays by name, and the seconds of a run."""
    return time_calls(lambda: run_session(session, values[0], outputs), count)


def main() -> None:
    """Run a model for each request."""
    import onnxruntime

    serve(onnxruntime.__version__, load_model, run)


if __name__ == "__main__":
    main()
