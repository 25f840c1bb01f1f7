"""Any two models compared, of any formats: outputs, and the layers that both have."""

from __future__ import annotations

import os
import re
from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any

from serde.errors import MissingDependency, SerdeError, UsageError, flags_are_known, speak_of_flags
from serde.io.temporary_folder import TemporaryFolder
from serde.ir.graph import EMPTY, DType, Graph, Shape, Value, show_shape
from serde.passes.cut_inputs import rename, with_inputs
from serde.pipeline import Path_, encode, has_layers, load, read_interface, save
from serde.plugins import format_of, get_format, read_classes
from serde.plugins.options import merge_options
from serde.verification.compare_layers import LayersComparison
from serde.verification.compare_outputs import Tolerance
from serde.verification.compare_results import (
    NOT_COMPARED,
    SourceRun,
    Verification,
    compare_installed,
    compare_run_layers,
)
from serde.verification.compare_runtimes import run_source
from serde.verification.given_arrays import read_npz
from serde.verification.random_inputs import SEED

Pairs = Iterable[tuple[Value, Value]]
COMPARED = frozenset({DType.BFLOAT16, DType.FLOAT16, DType.FLOAT32, DType.FLOAT64})
RUN_OPSET = 21  # of a model that runs as ONNX in place of itself


@dataclass(frozen=True)
class ModelFile:
    """A model, its parameters and format where they are not to be told, shapes of its inputs.

    ``options`` are others that tell what of its files is meant. Those of the second model, which
    ``is_other``, have names of their own.
    """

    path: Path_
    params: Path_ | None = None
    inputs: Mapping[str, Any] | None = None
    format: str | None = None
    options: Mapping[str, Any] = field(default_factory=lambda: EMPTY)
    is_copy: bool = False
    is_other: bool = False

    def load(self, **options: Any) -> Graph:
        """Read it into the IR."""
        if not self.has_layers:
            return self._read(**options)[0]
        with _advise_options(self.is_other):
            return load(self.path, format=self.format, **self._collect_options(**options))

    @property
    def has_layers(self) -> bool:
        """Whether it is read, and not only run."""
        return has_layers(self.path, self.format)

    def with_shapes_of(self, arrays: Mapping[str, Any]) -> ModelFile:
        """The model whose inputs have the shapes of ``arrays`` where its file tells none."""
        graph, _ = self._read()
        unknown = (v.name for v in graph.inputs if v.shape is None and v.name in arrays)
        shapes = {name: arrays[name].shape for name in unknown}
        return replace(self, inputs={**shapes, **(self.inputs or {})}) if shapes else self

    def _read(self, **options: Any) -> tuple[Graph, str]:
        """Its graph in the operators of its format, whose name comes with it."""
        options = self._collect_options(**options)
        with _advise_options(self.is_other):
            return read_interface(self.path, from_format=self.format, **options)

    def _collect_options(self, **options: Any) -> dict[str, Any]:
        """Those that tell what of its files is meant, with others."""
        files = {"params": self.params, "inputs": self.inputs, **options}
        return {**self.options, **{k: v for k, v in files.items() if v is not None}}

    def copy_as_read(self, folder: Path) -> ModelFile:
        """A file of its own format with what the options mean, to run without them."""
        if not self.options:
            return self
        graph, name = self._read()
        path = folder / f"read{get_format(name).suffixes[0]}"
        encode(get_format(name), graph, path, {})
        return ModelFile(path, None, self.inputs, name, is_other=self.is_other)

    def copy_as_onnx(self, path: Path) -> ModelFile:
        """An ONNX file to run where its own framework is not installed."""
        save(self.load(), path, opset=RUN_OPSET)
        return ModelFile(path, is_copy=True)


def compare_models(
    first: Path_, second: Path_, *, params: Path_ | None = None, other_params: Path_ | None = None,
    inputs: Mapping[str, Any] | None = None, data: Any = None, seed: int = SEED,
    layers: bool = True, rtol: float | None = None, atol: float | None = None,
    from_format: str | None = None, other_format: str | None = None,
    other_inputs: Mapping[str, Any] | None = None, options: Mapping[str, Any] = EMPTY,
    other: Mapping[str, Any] = EMPTY,
) -> Verification:  # fmt: skip
    """Run two models on the same inputs and compare what they compute; see ``serde.compare``."""
    a = ModelFile(first, params, inputs, from_format, options)
    b = ModelFile(second, other_params, other_inputs, other_format, other, is_other=True)
    tolerance = Tolerance.of(rtol, atol)
    notes: list[str] = []
    if data is not None:
        a, b = (model.with_shapes_of(read_npz(data)) for model in (a, b))
    with TemporaryFolder() as folder:
        b = b.copy_as_read(Path(folder))
        while True:
            run = _run_first(a, b, data, seed, tolerance)
            if run.is_missing and not a.is_copy:
                notes.append(_describe_copy(a))
                a = a.copy_as_onnx(Path(folder) / "first.onnx")
                continue
            try:
                weights = None if b.params is None else os.fspath(b.params)
                verification = compare_installed(run, b.path, weights=weights)
            except MissingDependency:
                if b.is_copy:
                    raise
                notes.append(_describe_copy(b))
                b = b.copy_as_onnx(Path(folder) / "second.onnx")
                continue
            if layers and not (a.has_layers and b.has_layers):
                code = b if a.has_layers else a
                reason = f"{os.fspath(code.path)} is run and not read: its layers cannot be told"
                verification.layers = LayersComparison(statement=f"{NOT_COMPARED}{reason}")
            elif layers:
                comparison = compare_run_layers(run, b.path, weights=weights)
                if verification.done and verification.ok:
                    comparison.tell_outputs_agree()
                verification.layers = comparison
            verification.not_compared = [*notes, *verification.not_compared]
            return verification


@contextmanager
def _advise_options(is_other: bool) -> Iterator[None]:
    """Name the options of the second model in errors of reading it: ``--other-input``."""
    try:
        with speak_of_flags():
            yield
    except SerdeError as error:
        if is_other:
            error.respell(lambda text: _find_reading_flags().sub(r"--other-\1", text))
        raise


def _find_reading_flags() -> re.Pattern[str]:
    """A pattern of the flags that there are for each of the two models."""
    flags = ["input", "params", "from"]
    if flags_are_known.get():
        options = merge_options(read_classes()).values()
        flags += [o.all_flags[0].removeprefix("--") for o in options if o.is_run]
    return re.compile(rf"(?<![\w-])--({'|'.join(flags)})(?![\w-])")


def _describe_copy(model: ModelFile) -> str:
    name = model.format or format_of(Path(model.path)).name
    return (
        f"{os.fspath(model.path)}: what runs {name} models is not installed; it was run as serde "
        "converts it to ONNX"
    )


def _run_first(
    a: ModelFile, b: ModelFile, data: Any, seed: int, tolerance: Tolerance | None
) -> SourceRun:
    """Run the first model on inputs that both take."""
    source, result = a.load(), b.load()
    pairs = _pair("input", source.inputs, result.inputs)
    shapes = {second.name: _common_shape(other, second) for other, second in pairs}
    if any(shapes[second.name] != second.shape for _, second in pairs):
        result = b.load(inputs={**shapes, **(b.inputs or {})})
    ends = {second.name: other for other, second in _pair("output", source.outputs, result.outputs)}
    outputs = tuple(ends[v.name] for v in result.outputs)
    graph = result if b.has_layers else _take_layers(source, pairs, outputs)
    has_others = outputs != source.outputs or a.options.get("outputs") is not None
    return run_source(
        a.path, b.path, graph=graph, ir=replace(source, outputs=outputs), params=a.params,
        rename={other.name: second.name for other, second in pairs if other.name != second.name},
        outputs=[v.name for v in outputs] if has_others else None,
        data=data, seed=seed, inputs=a.inputs, reading=a.options,
        input_types=_find_input_types(pairs, zip(outputs, result.outputs, strict=True)),
        narrowest=_find_narrowest(source, result), tolerance=tolerance, from_format=a.format,
        to_format=b.format,
    )  # fmt: skip


def _take_layers(source: Graph, pairs: Pairs, outputs: Sequence[Value]) -> Graph:
    """The first model by the input names of the second, whose layers are not read.

    Layers tell which inputs make sense.
    """
    names = [v.name for v in outputs]
    graph = rename(source, {a.name: b.name for a, b in pairs if a.name != b.name})
    by_name = {v.name: v for v in graph.outputs}
    return replace(graph, outputs=tuple(by_name[n] for n in names))


def _find_narrowest(*graphs: Graph) -> DType | None:
    """The type of fewest bits that any of the models computes in; None where none has floats."""
    values = (v for g in graphs for v in (*g.inputs, *g.all_values()))
    types = {v.dtype for v in values if v.dtype is not None and v.dtype.kind == "f"}
    return min((t for t in types if t in COMPARED), key=lambda t: t.bits, default=None)


def _find_input_types(inputs: Pairs, outputs: Pairs) -> Mapping[str, DType] | None:
    """The types of the first model's inputs, by the second's names, where these have others.

    None where no input differs, and no output of floats.

    Raises:
        UsageError: for inputs of other kinds.
    """
    types: dict[str, DType] = {}
    for first, second in inputs:
        if first.dtype is second.dtype or first.dtype is None or second.dtype is None:
            continue
        if not any({first.dtype.kind, second.dtype.kind} <= kinds for kinds in ({"f"}, {"i", "u"})):
            raise UsageError(
                f"input {second.name!r} is {first.dtype.title} in the first model and "
                f"{second.dtype.title} in the second: give models that take the same elements"
            )
        types[second.name] = first.dtype
    is_mixed = types or any(
        a.dtype is not b.dtype and {a.dtype and a.dtype.kind, b.dtype and b.dtype.kind} == {"f"}
        for a, b in outputs
    )
    return types if is_mixed else None


def _pair(kind: str, first: Sequence[Value], second: Sequence[Value]) -> list[tuple[Value, Value]]:
    """The inputs, or the outputs, of two models: by name, or by place where names differ."""
    if len(first) != len(second):
        shown = (", ".join(repr(v.name) for v in values) for values in (first, second))
        raise UsageError(
            f"the models have {len(first)} and {len(second)} {kind}s: {next(shown)} and "
            f"{next(shown)}; cut the larger one with serde convert --outputs"
        )
    by_name = {v.name: v for v in first}
    if {v.name for v in second} == by_name.keys():
        return [(by_name[v.name], v) for v in second]
    return list(zip(first, second, strict=True))


def fit_sizes(graph: Graph, other: Graph) -> Graph:
    """A graph whose inputs have the sizes that another fixes, where it can; see ``serde.compare``.

    Inputs are of the same names, or as many.
    """
    pairs = _pair("input", graph.inputs, other.inputs)
    return with_inputs(graph, {v.name: shape for v, w in pairs if (shape := _common_shape(v, w))})


def _common_shape(first: Value, second: Value) -> Shape | None:
    """The shape that two inputs can both have.

    Raises:
        UsageError: where they differ in a number.
    """
    if first.shape is None or second.shape is None:
        return first.shape if second.shape is None else second.shape
    pairs = [*zip(first.shape, second.shape, strict=False)]
    clash = any(isinstance(a, int) and isinstance(b, int) and a != b for a, b in pairs)
    if clash or len(first.shape) != len(second.shape):
        raise UsageError(
            f"input {first.name!r} is {show_shape(first.shape)} in the first model and "
            f"{show_shape(second.shape)} in the second: convert one for the other's shape"
        )
    return tuple(a if isinstance(a, int) else b for a, b in pairs)
