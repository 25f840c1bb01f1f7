"""The matrix: sources of cases, targets they are converted to, and the cells that are run."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from importlib import import_module
from typing import Any

import numpy as np

from serde.errors import SerdeError, Unconvertible

from . import record
from .options import FAMILIES
from .record import NOT_RUN, REFUSED, RIGHT, WRONG, Outcome

Array = np.ndarray[Any, Any]


class NotRun(Exception):
    """The runtime has the model and cannot run it, for a reason that is its own."""


@dataclass(frozen=True)
class Sample:
    """A model in the IR with inputs and the outputs its own framework computes for them.

    ``differs(expected, got)`` says how outputs differ, or None. A target that is an importer takes
    the source's own model as ``graph``.
    """

    graph: Any
    data: Sequence[tuple[Mapping[str, Any], Sequence[Any]]]
    differs: Callable[[Sequence[Any], Sequence[Any]], str | None]


class Source(ABC):
    """A set of models that can be enumerated."""

    name: str

    @abstractmethod
    def cases(self) -> list[str]:
        """The names of all cases, in a fixed order."""

    @abstractmethod
    def sample(self, case: str) -> Sample:
        """Read a case. Raises SerdeError where it is refused, NotRun where it cannot be judged."""


class Target(ABC):
    """A format, at the versions of it that are tried, and the runtime that runs its files."""

    name: str
    variants: tuple[str, ...] = ("",)

    @abstractmethod
    def run(self, graph: Any, feeds: Mapping[str, Any], variant: str) -> Sequence[Any]:
        """Convert a graph of the IR and run it. Raises SerdeError where refused, NotRun."""

    def comparable(self, expected: Any, got: Any) -> Any:
        """``got`` as it is to be compared, where the runtime has other types than ONNX."""
        return got


class Cell(ABC):
    """A source and a target: cases that are run one by one, each to a row of JSON."""

    seconds: float = 240  # that a case may take
    seed, each = 0, 3  # of random changes: where they begin, and how many of each model

    def __init__(self, name: str) -> None:
        self.name = name

    @abstractmethod
    def cases(self) -> list[str]:
        """The names of the cases that can be run here, in a fixed order."""

    @abstractmethod
    def run(self, case: str) -> Any:
        """The row of a case. What it raises is the reason of ``make_failed_row``."""

    @abstractmethod
    def outcomes(self, case: str, row: Any) -> dict[str, Outcome]:
        """The outcomes that a row tells of, by variant."""

    def make_failed_row(self, why: str) -> Any:
        """The row of a case that raised an error, ended its process or took too long."""
        return {"failed": why}

    def make_record(self, before: Mapping[str, Any], rows: Mapping[str, Any]) -> Mapping[str, Any]:
        """The rows to record after a whole run."""
        return rows


class Pair(Cell):
    """A ``Source`` in a ``Target``; rows are outcomes by the target's variants."""

    def __init__(self, name: str) -> None:
        super().__init__(name)
        source, _, target = name.partition("/")
        self.source: Source = _make(SOURCES[source])
        self.target = target_of(target)

    def cases(self) -> list[str]:
        return self.source.cases()

    def run(self, case: str) -> record.Packed:
        by_variant = outcomes(lambda: self.source.sample(case), self.target)
        return record.pack(by_variant, self.target.variants)

    def outcomes(self, case: str, row: record.Packed) -> dict[str, Outcome]:
        return record.unpack(row, self.target.variants)

    def make_failed_row(self, why: str) -> record.Packed:
        return str(Outcome.of(WRONG, why))


SOURCES = {
    "onnx-nodes": ("conformance.onnx_nodes", "NodeTests"),
    "onnx-nodes-constant": ("conformance.onnx_nodes", "ConstantNodeTests"),
    "onnx-nodes-first": ("conformance.onnx_nodes", "FirstOperandTests"),
    "onnx-nodes-file": ("conformance.onnx_nodes", "NodeTestFiles"),
    "onnx-models": ("conformance.onnx_nodes", "Models"),
    "mxnet-operators": ("conformance.operators", "MXNetOperators"),
    "relay-operators": ("conformance.operators", "RelayOperators"),
    "relay-corpus": ("conformance.relay_corpus", "RelayCorpus"),
    "tflite-corpus": ("conformance.tflite_corpus", "TfliteFiles"),
}
TARGETS = {
    "onnx": ("conformance.targets", "Onnx"),
    "mxnet": ("conformance.targets", "MXNet"),
    "mxnet-releases": ("conformance.targets", "MXNetReleases"),
    "relay": ("conformance.targets", "Relay"),
    "relax": ("conformance.targets", "Relax"),
    "onnxruntime": ("conformance.targets", "ONNXRuntime"),
    "openvino": ("conformance.targets", "OpenVINO"),
    "tract": ("conformance.targets", "Tract"),
    "mnn": ("conformance.targets", "MNN"),
    "ncnn": ("conformance.targets", "NCNN"),
    "torch": ("conformance.targets", "Torch"),
    "litert": ("conformance.targets", "Litert"),
    "mxnet-importer": ("conformance.importers", "MXNetImporter"),
    "relay-importer": ("conformance.importers", "RelayImporter"),
    "relax-importer": ("conformance.importers", "RelaxImporter"),
}
PAIRS = (
    "onnx-nodes/onnx",
    "onnx-nodes-constant/mxnet",
    "onnx-nodes-constant/mxnet-releases",
    "onnx-nodes-constant/relay",
    "onnx-nodes-constant/relax",
    "onnx-nodes-constant/onnxruntime",
    "onnx-nodes-constant/openvino",
    "onnx-nodes-constant/tract",
    "onnx-nodes-constant/mnn",
    "onnx-nodes-constant/ncnn",
    "onnx-nodes-constant/torch",
    "onnx-nodes-constant/litert",
    "onnx-nodes-first/litert",
    "onnx-nodes-file/mxnet-importer",
    "onnx-nodes-file/relay-importer",
    "onnx-nodes-file/relax-importer",
    "onnx-models/onnx",
    "onnx-models/litert",
    "onnx-models/torch",
    "mxnet-operators/onnx",
    "mxnet-operators/mxnet",
    "mxnet-operators/mxnet-releases",
    "relay-operators/onnx",
    "relay-operators/relay",
    "relay-corpus/onnx",
    "relay-corpus/onnxruntime",
    "relay-corpus/openvino",
    "relay-corpus/tract",
    "relay-corpus/mnn",
    "relay-corpus/ncnn",
    "tflite-corpus/mxnet",
    "tflite-corpus/relay",
    "tflite-corpus/torch",
)
CELLS: dict[str, tuple[str, str]] = {
    **dict.fromkeys(PAIRS, ("conformance.matrix", "Pair")),
    "operators/opsets": ("conformance.opsets", "Opsets"),
    "mxnet-releases/onnx": ("conformance.mxnet_reading", "ReadingReleases"),
    "networks/mxnet-releases": ("conformance.mxnet_releases", "ReleaseNetworks"),
    "networks/onnx": ("conformance.networks", "Networks"),
    "networks/litert": ("conformance.litert_networks", "LitertNetworks"),
    "networks/onnx2tf": ("conformance.litert_peer", "Onnx2tf"),
    "relay-corpus/litert": ("conformance.relay_corpus", "CloseCorpus"),
    "relay-corpus/torch": ("conformance.relay_corpus", "CloseCorpus"),
    "relay-networks/onnx": ("conformance.relay_networks", "RelayNetworks"),
    "relay-networks/partitions": ("conformance.tvm_partitions", "TvmPartitions"),
    "models/consumers": ("conformance.consumer_models", "ConsumerModels"),
    "models/reduced-precision": ("conformance.reduced_precision", "ReducedPrecision"),
    "models/optimizers": ("conformance.optimizers", "Optimizers"),
    "models/processors": ("conformance.processors", "Processors"),
    "pt2-operators/onnx": ("conformance.exported_programs", "Operators"),
    "pt2-models/onnx": ("conformance.exported_programs", "Models"),
    "torch-checkpoints/torch": ("conformance.torch_checkpoints", "TorchCheckpoints"),
    "models/torch": ("conformance.torch_models", "TorchModels"),
    "models/relax": ("conformance.relax_models", "RelaxModels"),
    "models/directions": ("conformance.directions", "Directions"),
    "models/round-trips": ("conformance.round_trips", "RoundTrips"),
    "models/partitions": ("conformance.partitions", "Partitions"),
    "models/providers": ("conformance.provider_partitions", "ProviderPartitions"),
    **{f"options/{family}": ("conformance.options.cells", "Options") for family in FAMILIES},
    **{
        f"{library}/{target}": ("conformance.zoo", "Zoo")
        for target in ("onnx", "litert")
        for library in ("gluoncv", "gluonnlp", "gluonts")
    },
    "tflite-corpus/onnx": ("conformance.tflite_corpus", "TfliteCorpus"),
    "tflite-corpus/tflite": ("conformance.tflite_round_trips", "TfliteRoundTrips"),
    "mxnet-frames/onnx": ("conformance.frames.cells", "Frames"),
    "mxnet-2/onnx": ("conformance.mxnet_second", "SecondNetworks"),
    "mxnet-mutations/onnx": ("conformance.mutations.mxnet", "MXNetMutations"),
    "relay-mutations/onnx": ("conformance.mutations.relay", "RelayMutations"),
    "onnx-mutations/onnx": ("conformance.mutations.onnx", "OnnxMutations"),
    "onnx-mutations/mxnet": ("conformance.mutations.onnx", "OnnxMutations"),
    "onnx-mutations/relay": ("conformance.mutations.onnx", "OnnxMutations"),
    "onnx-mutations/relax": ("conformance.mutations.onnx", "OnnxMutations"),
}


def _make(place: tuple[str, str], *arguments: str) -> Any:
    module, name = place
    return getattr(import_module(module), name)(*arguments)


def target_of(name: str) -> Target:
    """The target called so."""
    return _make(TARGETS[name])  # type: ignore[no-any-return]


def cell_of(name: str) -> Cell:
    """The cell called ``SOURCE/TARGET``."""
    return _make(CELLS[name], name)  # type: ignore[no-any-return]


def outcomes(read: Callable[[], Sample], target: Target) -> dict[str, Outcome]:
    """What becomes of the case that ``read`` returns at every variant of a target."""
    try:
        sample = read()
    except NotRun as error:
        return dict.fromkeys(target.variants, Outcome.of(NOT_RUN, error))
    except SerdeError as error:
        return dict.fromkeys(target.variants, Outcome.of(REFUSED, reason(error)))
    except Exception as error:  # a defect of ours counts as a wrong result, whatever it raises
        return dict.fromkeys(target.variants, Outcome.of(WRONG, f"{type(error).__name__}: {error}"))
    return {variant: _outcome(sample, target, variant) for variant in target.variants}


def _outcome(sample: Sample, target: Target, variant: str) -> Outcome:
    for feeds, expected in sample.data:
        try:
            got = target.run(sample.graph, feeds, variant)
        except NotRun as error:
            return Outcome.of(NOT_RUN, error)
        except SerdeError as error:
            return Outcome.of(REFUSED, reason(error))
        except Exception as error:  # whatever a runtime says of a model that was not refused
            return Outcome.of(WRONG, f"{type(error).__name__}: {last_line(error)}")
        got = [target.comparable(a, b) for a, b in zip(expected, got, strict=False)]
        if (how := sample.differs(expected, got)) is not None:
            return Outcome.of(WRONG, how)
    return Outcome(RIGHT)


def reason(error: SerdeError) -> str:
    """A refusal in one line, without the names of nodes."""
    if isinstance(error, Unconvertible):
        return "; ".join(dict.fromkeys(f"{p.op}: {p.reason}" for p in error.problems))
    return str(error)


def last_line(error: Exception) -> str:
    """The last line of a message, which says most in the errors of frameworks."""
    lines = [s.strip() for s in str(error).splitlines() if s.strip() and "[bt]" not in s]
    return lines[-1] if lines else type(error).__name__
