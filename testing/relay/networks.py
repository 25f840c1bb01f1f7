"""Whole networks as TVM writes them, converted and compared with what TVM computes of them."""

from __future__ import annotations

import tempfile
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import onnx
import onnxruntime

import serde
from serde import pipeline
from serde.ir.graph import Graph
from testing.networks import VISION, build, compute, export, feeds, load_params, smallest
from testing.onnx_live import error
from testing.relay.tvm_live import ask

STAGES = ("imported", "fused")
FORMS = ("txt", "json")
TOLERANCE = 1e-4  # of the largest number of an output
SMALL = (3, 64, 64)
# By name: the module of tvm.relay.testing and what its get_workload is given
TESTING: dict[str, tuple[str, dict[str, Any]]] = {
    "mlp": ("mlp", {"batch_size": 2}),
    "dqn": ("dqn", {"batch_size": 2}),
    "dqn-nhwc": ("dqn", {"batch_size": 1, "image_shape": (84, 84, 4), "layout": "NHWC"}),
    "dcgan": ("dcgan", {"batch_size": 2}),
    "dcgan-nhwc": ("dcgan", {"batch_size": 1, "layout": "NHWC"}),
    "lstm": ("lstm", {"iterations": 5, "num_hidden": 32}),
    "synthetic": ("synthetic", {}),
    "mobilenet": ("mobilenet", {"image_shape": SMALL}),
    "mobilenet-nhwc": ("mobilenet", {"image_shape": (64, 64, 3), "layout": "NHWC"}),
    **{f"squeezenet{v}": ("squeezenet", {"version": v}) for v in ("1.0", "1.1")},
    **{f"resnet{n}": ("resnet", {"num_layers": n, "image_shape": SMALL})
       for n in (18, 34, 50)},
    "resnet20-cifar": ("resnet", {"num_layers": 20, "image_shape": (3, 28, 28)}),
    "resnet18-nhwc": ("resnet", {"num_layers": 18, "image_shape": (64, 64, 3), "layout": "NHWC"}),
    "resnet3d18": ("resnet_3d", {"num_layers": 18, "image_shape": (3, 8, 56, 56)}),
    "resnet3d18-ndhwc": (
        "resnet_3d", {"num_layers": 18, "image_shape": (8, 56, 56, 3), "layout": "NDHWC"},
    ),
    **{f"vgg{n}{'_bn' if bn else ''}":
       ("vgg", {"num_layers": n, "batch_norm": bn, "batch_size": 1, "image_shape": (3, 32, 32)})
       for n, bn in ((11, False), (16, True))},
    "inception_v3": ("inception_v3", {}),
    "densenet121": ("densenet", {"densenet_size": 121, "batch_size": 1}),
}  # fmt: skip
GLUON = tuple(VISION)
# Those TVM computes too, one of each kind: it takes minutes to compile one. MXNet computes the rest.
BY_TVM = frozenset(
    "alexnet mobilenet0.25 mobilenetv2_0.25 resnet18_v1 resnet18_v2 resnet50_v1 squeezenet1.0 "
    "squeezenet1.1 vgg11 vgg11_bn".split()
)


@dataclass(frozen=True)
class Outcome:
    """How many nodes the file has, and its largest error in terms of the output's scale."""

    nodes: int
    error: float


def write(name: str, folder: Path) -> None:
    """Have TVM write the network of that name (``gluon/`` before Gluon's) into ``folder``, with
    inputs and outputs.
    """
    kind, _, plain = name.rpartition("/")
    if not kind:
        module, options = TESTING[plain]
        ask("testing", module, options, str(folder))
        return
    network = build(plain, smallest(plain))
    symbol, params = export(network, folder)
    weights, inputs = (str(folder / f"{n}.npz") for n in ("weights", "feeds"))
    np.savez(weights, **load_params(params))
    np.savez(inputs, **feeds(network, 1))
    ask("gluon", str(symbol), weights, inputs, str(folder), plain in BY_TVM)
    if plain not in BY_TVM:
        np.savez(folder / "out.npz", *compute(network, feeds(network, 1)))


def read(folder: Path, stage: str, form: str, **options: Any) -> Graph:
    """One of the modules TVM wrote, in the IR."""
    return serde.load(folder / f"{stage}.{form}", params=folder / "net.params", **options)


def outcome(ir: Graph, opset: int, folder: Path) -> Outcome:
    """Write the module at ``opset``, check the file, run it and compare with TVM."""
    with tempfile.TemporaryDirectory(dir=folder) as place:
        path = Path(place) / "network.onnx"
        serde.save(ir, path, opset=opset, external_data="always")
        onnx.checker.check_model(str(path), full_check=True)
        nodes = len(pipeline.read(path)[0].nodes)
        settings = onnxruntime.SessionOptions()
        settings.log_severity_level = 4
        settings.intra_op_num_threads = 1
        session = onnxruntime.InferenceSession(str(path), settings)
        with np.load(folder / "in.npz") as inputs:
            names = [i.name for i in session.get_inputs()]
            arrays = (inputs[n] for n in inputs.files)
            got = session.run(None, dict(zip(names, arrays, strict=True)))
    with np.load(folder / "out.npz") as outputs:
        pairs = zip(got, (outputs[n] for n in outputs.files), strict=True)
        return Outcome(nodes, max(error(y, w) for y, w in pairs))
