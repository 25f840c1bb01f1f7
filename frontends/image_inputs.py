"""Images as inputs of a model: the NumPy code that prepares them, traced into its graph."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from serde.errors import UsageError
from serde.ir.graph import DType, Graph, Value, show_shape
from serde.legalize.convert import without_functions
from serde.passes.cut_inputs import check_mapping, check_names, rename
from serde.passes.join_graphs import append_labels, join_graphs

from .numpy import trace

OPTIONS = ("mean", "std", "scale", "layout", "bgr", "labels")  # the first four by name
CHANNELS = (3, 1, 4)  # of images, those that are likelier first
BATCHED, SINGLE = ("NCHW", "NHWC"), ("CHW", "HWC")  # layouts by rank
PIXELS = frozenset({DType.UINT8, DType.INT8, DType.FLOAT32, DType.FLOAT16})
Array = np.ndarray[Any, Any]


@dataclass(frozen=True)
class Image:
    """How the pixels of an image become what an input takes: ``(scale * x - mean) / std``.

    ``order`` are the axes of the image in the order of the model's, ``axis`` is that of the
    channels there, which are in another order where they ``swap``. ``dtype`` is the type of the
    pixels, ``input_dtype`` that of the input, and ``shape`` that of the image.
    """

    shape: tuple[Any, ...]
    dtype: DType
    input_dtype: DType
    order: tuple[int, ...]
    axis: int
    swap: bool
    scale: float | None
    mean: tuple[float, ...]
    std: tuple[float, ...]

    def prepare(self, image: Array) -> Array:
        """NumPy code: it runs as it is, and is traced."""
        x = image if self.order == tuple(range(image.ndim)) else np.transpose(image, self.order)
        if self.swap:
            x = np.flip(x, self.axis)
        x = x.astype(self.input_dtype.numpy)
        shape = [-1 if at == self.axis else 1 for at in range(len(self.shape))]
        if self.scale is not None:
            x = x * np.asarray(self.scale, self.input_dtype.numpy)
        if self.mean:
            x = x - np.asarray(self.mean, self.input_dtype.numpy).reshape(shape)
        return x / np.asarray(self.std, self.input_dtype.numpy).reshape(shape) if self.std else x


@dataclass(frozen=True)
class Images:
    """The images among the inputs of a model, by name, and the labels of its classes."""

    inputs: Mapping[str, Image]
    labels: Sequence[str] = ()

    def add_to(self, graph: Graph) -> Graph:
        """The graph whose inputs are the images, with an output ``label`` if there are labels."""
        if not self.inputs and not self.labels:
            return graph
        graph = without_functions(graph)
        names = [v.name for v in graph.inputs]
        for name, image in self.inputs.items():
            code = trace(image.prepare, image=(image.shape, image.dtype.numpy))
            pixels = f"{max(names, key=len)}_pixels"  # which no input is called
            code = rename(code, {"image": pixels})
            (output,) = code.outputs
            joined = join_graphs(code, graph, {output.name: name})
            graph = rename(replace(joined, name=graph.name), {pixels: name})
        order = {name: at for at, name in enumerate(names)}
        inputs = tuple(sorted(graph.inputs, key=lambda v: order[v.name]))
        graph = replace(graph, inputs=inputs)
        if not self.labels:
            return graph
        return append_labels(graph, find_scores(graph, self.labels).name, self.labels)

    def prepare(self, feeds: Mapping[str, Any]) -> dict[str, Any]:
        """What the model without the code is fed."""
        return {n: self.inputs[n].prepare(x) if n in self.inputs else x for n, x in feeds.items()}

    def add_results(self, outputs: Sequence[Any]) -> Sequence[Any]:
        """The outputs of the model with the code, of those without."""
        if not self.labels:
            return outputs
        at = next(i for i, x in enumerate(outputs) if _has_scores(np.shape(x), self.labels))
        label = np.asarray(self.labels, object)[np.argmax(outputs[at], -1)]
        return [*outputs, np.asarray(label, object)]


def _has_scores(shape: Sequence[Any], labels: Sequence[str]) -> bool:
    return len(shape) in (1, 2) and shape[-1] == len(labels)


def read_images(graph: Graph, options: Mapping[str, Any]) -> Images:
    """What is asked of the inputs of a graph by ``OPTIONS``.

    Raises:
        UsageError: for inputs that are no images, and numbers that do not fit their channels.
    """
    if unknown := sorted(options.keys() - {*OPTIONS}):
        raise UsageError(f"images takes {', '.join(OPTIONS)}, and no {', '.join(unknown)}")
    known = {v.name: v for v in graph.inputs}
    for name in OPTIONS[:4]:
        check_mapping(options.get(name), f"images: {name}", "{'data': …}")
    check_names(options.get("bgr") or None, "images: bgr")
    labels = options.get("labels") or ()
    is_list = isinstance(labels, Sequence) and not isinstance(labels, str)
    if not is_list or not all(isinstance(label, str) for label in labels):
        raise UsageError(f"images: labels={labels!r} is no list of texts: give one for each class")
    mean, std, scale, layout = (options.get(n) or {} for n in OPTIONS[:4])
    bgr = options.get("bgr") or ()
    names = dict.fromkeys([n for each in (mean, std, scale, layout, bgr) for n in each])
    if unknown := [n for n in names if n not in known]:
        raise UsageError(
            f"no input is called {', '.join(map(repr, unknown))}; there are: "
            f"{', '.join(map(repr, known))}"
        )
    images = {
        n: _read_image(
            known[n], mean.get(n), std.get(n), scale.get(n), layout.get(n), swap=n in bgr
        )
        for n in names
    }
    return Images(images, tuple(labels))


def _read_image(
    value: Value, mean: Any, std: Any, scale: Any, layout: str | None, swap: bool
) -> Image:
    shape = value.shape or ()
    layouts = {3: SINGLE, 4: BATCHED}.get(len(shape))
    if layouts is None or value.dtype is None or value.dtype.kind != "f":
        raise UsageError(f"input {value.name!r} is no image: give floats of 3 or 4 axes a layout")
    first = len(shape) - 3
    places = [at for at in (first, len(shape) - 1) if shape[at] in CHANNELS]
    if not places:
        raise UsageError(f"input {value.name!r} has no axis of 1, 3 or 4 channels: give its shape, "
                         f"as --input {value.name}=N,3,224,224")  # fmt: skip
    axis = min(places, key=lambda at: CHANNELS.index(shape[at]))
    usual_layout = layouts[0] if axis == first else layouts[1]
    letters, _, kind = (str(layout) if layout else usual_layout).partition(":")
    letters = letters.upper()
    if letters not in layouts:
        raise UsageError(f"layout {layout!r} of {value.name!r} is none of {', '.join(layouts)}")
    order = tuple(letters.index(letter) for letter in usual_layout)
    dims = [shape[usual_layout.index(letter)] for letter in letters]
    dtype = _read_type(kind, value.dtype)
    channels = shape[axis]
    return Image(
        tuple(dims), dtype, value.dtype, order, axis, swap,
        None if scale is None else _read_numbers("scale", scale, 1, value.name)[0],
        _read_numbers("mean", mean, channels, value.name),
        _read_numbers("std", std, channels, value.name),
    )  # fmt: skip


def _read_type(kind: str, value_dtype: DType) -> DType:
    try:
        dtype = DType(kind) if kind else value_dtype
    except ValueError:
        dtype = None
    if dtype is None or (dtype not in PIXELS and dtype is not value_dtype):
        known = ", ".join(sorted(d.value for d in PIXELS))
        raise UsageError(f"pixels of {kind!r}: give one of {known}")
    return dtype


def _read_numbers(what: str, numbers: Any, channels: Any, name: str) -> tuple[float, ...]:
    """A number for each channel, or one for all."""
    if numbers is None:
        return ()
    array: Array = np.empty(0)
    with suppress(TypeError, ValueError, OverflowError):  # it holds no numbers
        array = np.atleast_1d(np.asarray(numbers, np.float64))
    is_right = array.ndim == 1 and array.size in (1, channels) and np.isfinite(array).all()
    if not is_right or (what == "std" and (array == 0).any()):
        count = "one number" if channels == 1 else f"1 or {channels} numbers"
        raise UsageError(f"{what} of {name!r} is {numbers!r}: give {count}"
                         f"{', no 0' if what == 'std' else ''}")  # fmt: skip
    return tuple(array.tolist())


def find_scores(graph: Graph, labels: Sequence[str]) -> Value:
    """The output that has a score for each class.

    Raises:
        UsageError: where none has so many.
    """
    for value in graph.outputs:
        is_float = value.dtype is not None and value.dtype.kind == "f"
        if is_float and _has_scores(value.shape or (), labels):
            return value
    shown = ", ".join(f"{v.name} {show_shape(v.shape)}" for v in graph.outputs)
    raise UsageError(f"{len(labels)} labels fit no output: {shown}. Give one for each class")
