"""The models that options are tried on.

Networks that are built node by node, for any number of samples; small models of the onnx package;
MXNet's networks as they convert by default; files of ONNX in a folder (``SERDE_MODELS``).
"""

from __future__ import annotations

import os
import tempfile
import zlib
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from typing import Any

import numpy as np
import onnx

import serde
from testing import networks
from testing.model_cases import small_models

from . import bodies, kinds, numbers, whole
from .network import Network

Arrays = Mapping[str, Any]
IN_BODIES = {  # every fifth of the random networks
    name: build
    for name, build in whole.list_networks().items()
    if name.partition("/")[2].isdigit() and int(name.partition("/")[2]) % 5 == 0
}
VISION = ("mobilenet0.25", "mobilenetv2_0.25", "resnet18_v1", "resnet18_v2")


@dataclass(frozen=True)
class Model:
    """A model with inputs; ``axes`` are the axes of samples of inputs and outputs, by name.

    ``build`` makes the same model for another number of samples, where that can be had.
    """

    proto: onnx.ModelProto
    feeds: Arrays
    axes: Mapping[str, int]
    build: Callable[[int], Model] | None = None

    @property
    def outputs(self) -> list[str]:
        """Names of the outputs."""
        return [o.name for o in self.proto.graph.output]


@cache
def list_builds() -> Mapping[str, whole.Build]:
    """The functions that build networks, by name."""
    return {
        **whole.list_networks(),
        **numbers.list_networks(),
        **kinds.list_networks(),
        **{f"if/{n}": bodies.in_branch(b) for n, b in IN_BODIES.items()},
        **{f"if/{n}": bodies.in_branch(b) for n, b in numbers.list_networks().items()},
        **{f"loop/{n}": bodies.in_loop(b) for n, b in IN_BODIES.items()},
    }


def list_models() -> list[str]:
    """The names of all models."""
    folder = os.environ.get("SERDE_MODELS")
    files = sorted(Path(folder).glob("*.onnx")) if folder else ()
    mxnet = (*networks.LANGUAGE, *networks.ENCODERS, *VISION)
    return [
        *list_builds(), *(f"onnx/{c.name}" for c in small_models()),
        *(f"mxnet/{n}" for n in mxnet), *(f"file/{p.stem}" for p in files),
    ]  # fmt: skip


def open_model(name: str, samples: int = 1) -> Model:
    """A model by name; one that cannot be built for other numbers of samples is as it is."""
    kind, _, rest = name.partition("/")
    if name in list_builds():
        return build_model(name, samples)
    if kind == "onnx":
        case = next(c for c in small_models() if c.name == rest)
        constants = {t.name for t in case.model.graph.initializer}
        names = [i.name for i in case.model.graph.input if i.name not in constants]
        return with_axes(case.model, dict(zip(names, case.data[0][0], strict=True)))
    if kind == "mxnet":
        return convert_network(rest, samples)
    path = next(p for p in Path(os.environ["SERDE_MODELS"]).glob("*.onnx") if p.stem == rest)
    return open_file(path)


def build_model(name: str, samples: int) -> Model:
    """A network that is built node by node; the weights depend on its name alone."""
    net: Network = list_builds()[name](zlib.crc32(name.encode()) % 100_000, samples)
    return Model(net.model(), net.feeds, net.batch_axes, lambda n: build_model(name, n))


def with_axes(proto: onnx.ModelProto, feeds: Arrays) -> Model:
    """A model whose samples, if it has any, lie along the first axis of every array."""
    axes = {n: 0 for n, a in feeds.items() if np.ndim(a)}
    return Model(proto, feeds, {**axes, **{o.name: 0 for o in proto.graph.output}})


def convert_network(name: str, samples: int) -> Model:
    """One of MXNet's networks with random weights, as it converts by default."""
    size = networks.smallest(name) if name in networks.VISION else None
    built = networks.build(name, size)
    feeds = networks.feeds(built, samples)
    with tempfile.TemporaryDirectory() as folder:
        symbol, _ = networks.export(built, Path(folder))
        path = Path(folder) / "model.onnx"
        serde.convert(symbol, path, inputs=feeds)
        proto = onnx.load(path)
    axes = {**built.batch_axis, **{o.name: 0 for o in proto.graph.output}}
    return Model(proto, feeds, axes, lambda n: convert_network(name, n))


def open_file(path: Path) -> Model:
    """A file, with inputs that serde draws; dimensions that have a name are 2."""
    from serde.passes.change_batch import fix_dimensions
    from serde.verification.random_inputs import make_random_inputs

    proto = onnx.load(path)
    graph = serde.load(path)
    names = {d for v in graph.inputs for d in v.shape or () if isinstance(d, str)}
    feeds = make_random_inputs(fix_dimensions(graph, dict.fromkeys(names, 2)), 0)
    return with_axes(proto, feeds)
