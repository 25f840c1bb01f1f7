"""Whole models of several sources, each with what its own framework computes for inputs.

MXNet's networks with random weights, static and with a named number of samples (vision networks at
a small size of image); those that MXNet quantizes itself; networks of GluonCV and GluonNLP
(``SERDE_ZOO``); the light models of the onnx package; networks of the corpus of Relay modules
(``SERDE_CORPUS``).
"""

from __future__ import annotations

import math
import os
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from functools import partial
from importlib import import_module
from pathlib import Path
from typing import Any

import numpy as np
import onnx
from onnx import numpy_helper

import serde
from serde.ir.graph import Graph
from testing import light_models, networks
from testing.mxnet.quantised_networks import CASES as QUANTIZED
from testing.mxnet.quantised_networks import quantise_network
from testing.onnx_live import error, run_model

from . import relay_corpus
from .zoo import has_packages
from .zoo.compare import Sample, difference, live, perturb

Arrays = Mapping[str, Any]
ZOO = {  # networks by library, their names between semicolons
    "gluoncv": """
        cifar_resnet20_v1; cifar_wideresnet16_10; residualattentionnet56;
        googlenet; mobilenetv3_small; mobilenetv3_large; resnest14; resnet18_v1b; resnext50_32x4d;
        se_resnext50_32x4d; shufflenet_v1; xception; senet_154; ssd_300_vgg16_atrous_voc;
        yolo3_darknet53_voc; center_net_resnet18_v1b_voc; fcn_resnet50_voc; deeplab_resnet50_ade;
        psp_resnet50_ade; simple_pose_resnet18_v1b; mobile_pose_resnet18_v1b; mobilenet1.0_int8;
        ssd_512_mobilenet1.0_voc_int8; nasnet_4_1056; faster_rcnn_resnet50_v1b_voc;
        faster_rcnn_fpn_syncbn_resnest50_coco; mask_rcnn_resnet18_v1b_coco; icnet_resnet50_citys;
        danet_resnet50_citys; resnet18_v1b_kinetics400_int8; alpha_pose_resnet101_v1b_coco;
        center_net_resnet18_v1b_dcnv2_voc; ssd_300_mobilenet1.0_lite_coco; inceptionv1_hmdb51;
        hrnet_w18_small_v1_c; fastscnn_citys; monodepth2_resnet18_posenet_kitti_mono_640x192
    """,
    "gluonnlp": """
        bert_12_768_12 with its heads; roberta_12_768_12; distilbert_6_768_12; ernie_12_768_12;
        standard_lstm_lm_200; awd_lstm_lm_600; transformer_en_de_512 encoder;
        transformer_en_de_512 decoder; transformer_en_de_512 decoder, one step;
        elmo_2x1024_128_2048cnn_1xhighway; gpt2_117m, of the library's cells
    """,
}
RELAY = ("gluon-", "testing-", "pass-", "qnn-onnx-qdq", "qnn-onnx-qop")  # how their names begin
NAMED = "named"  # the variant with a named number of samples


@dataclass(frozen=True)
class Model:
    """Functions that read a model into the IR, by variant, and inputs with expected outputs.

    ``difference`` measures how far outputs are from expected ones, in terms of the scale.
    ``own`` is that for a network of integers, where one that is rounded the other way spreads from
    layer to layer: how far its framework is from itself when inputs change a little.
    """

    reads: Mapping[str, Callable[..., Graph]]
    runs: Mapping[str, tuple[Arrays, Sequence[Any]]]
    difference: Callable[[Sequence[Any], Sequence[Any]], float]
    own: float | None = None


def names() -> list[str]:
    """Every model, the small ones first."""
    vision = sorted(networks.VISION, key=weight_of)
    models = [*networks.LANGUAGE, *networks.ENCODERS]
    models += [f"light/{n}" for n in light_models.LIGHT]
    models += [f"int8/{n}/{how}" for n, how in QUANTIZED]
    models += [n for n in vision if weight_of(n) == 0]
    models += [f"relay/{n}" for n in relay_networks()]
    models += zoo_names()
    return models + [n for n in vision if weight_of(n)]


def weight_of(name: str) -> int:
    """The rank of a network among those that take long."""
    heavy = ("resnet101", "resnet152", "densenet", "inception", "alexnet", "vgg")
    return next((i for i, kind in enumerate(heavy, 1) if name.startswith(kind)), 0)


def relay_networks() -> list[str]:
    """Networks among the corpus of Relay modules, where it is here, and those TVM's passes made."""
    folder = Path(os.environ.get("SERDE_CORPUS", ""))
    modules = (n for n in relay_corpus.names() if n.startswith(RELAY))
    return [n for n in modules if (folder / n / "io.npz").is_file()]


def zoo_names() -> list[str]:
    """Networks of MXNet's model libraries, where these are here."""
    return [
        f"{library}/{name.strip()}"
        for library, names in ZOO.items() if has_packages() for name in names.split(";")
    ]  # fmt: skip


def open_model(name: str, folder: Path) -> Model:
    """A model by name; its files are written into the folder."""
    kind, _, rest = name.partition("/")
    if kind == "light":
        return light(rest, folder)
    if kind == "int8":
        return load_quantized(*rest.split("/"), folder)
    if kind == "relay":
        return relay_network(rest)
    if kind in ZOO:
        return zoo_network(kind, rest, folder)
    return network(name, folder)


def network(name: str, folder: Path) -> Model:
    """One of MXNet's networks."""
    size = networks.smallest(name) if name in networks.VISION else None
    built = networks.build(name, size)
    one, two = networks.feeds(built, 1), networks.feeds(built, 2)
    runs = {"": (one, networks.compute(built, one)), NAMED: (two, networks.compute(built, two))}
    symbol, _ = networks.export(built, folder)
    shapes = {n: (s, one[n].dtype) for n, s in networks.shapes(built).items()}
    reads = {
        "": partial(serde.load, symbol, inputs=one),
        NAMED: partial(serde.load, symbol, inputs=shapes),
    }
    return Model(reads, runs, largest_error)


def load_quantized(name: str, how: str, folder: Path) -> Model:
    """A network that MXNet quantized."""
    from serde.bridges.mxnet import run

    prefix, feeds = quantise_network(name, how, folder)
    truth = run(str(prefix), feeds)
    reads = {"": partial(serde.load, prefix, inputs=feeds)}
    return Model(reads, {"": (feeds, truth)}, largest_error, perturb(Sample(prefix, feeds), truth))


def light(name: str, folder: Path) -> Model:
    """A light model of the onnx package."""
    proto = with_weights(onnx.load(light_models.model_path(name)))
    path, feeds = folder / f"{name}.onnx", light_models.feeds(proto)
    onnx.save(proto, path)
    reads = {"": lambda **options: serde.load(path, **_drop_integers(options))}
    return Model(reads, {"": (feeds, run_model(proto, feeds))}, largest_error)


def relay_network(name: str) -> Model:
    """A network of the corpus, with what TVM computed."""
    case, graph, params = relay_corpus.load(name)
    folder = Path(os.environ["SERDE_CORPUS"]) / name
    path = next(p for p in (folder / "module.json", folder / "module.json.gz") if p.is_file())
    weights = {n: tensor.load() for n, tensor in params.items()}
    read = partial(serde.load, path, params=weights)
    return Model({"": read}, {"": (relay_corpus.feeds(case, graph), case.outputs)}, largest_error)


def with_weights(model: onnx.ModelProto) -> onnx.ModelProto:
    """A light model with random weights in place of those that its nodes make."""
    draws, tensors = np.random.default_rng(0), []
    held = {t.name: numpy_helper.to_array(t) for t in model.graph.initializer}
    for node in list(model.graph.node):
        if node.op_type != "ConstantOfShape" or node.input[0] not in held:
            continue
        shape = tuple(held[node.input[0]])
        weight = draws.uniform(0.5, 1.5, shape)
        if len(shape) > 1:
            weight = draws.standard_normal(shape, np.float32) * math.sqrt(2 / math.prod(shape[1:]))
        tensors.append(numpy_helper.from_array(weight.astype(np.float32), node.output[0]))
        model.graph.node.remove(node)
    model.graph.initializer.extend(tensors)
    return model


def zoo_network(library: str, name: str, folder: Path) -> Model:
    """A network of a model library of MXNet; detections are compared row by row."""
    has_packages()
    sample = import_module(f"conformance.zoo.{library}").sample(name, folder)
    reads = {
        "": partial(serde.load, sample.prefix, inputs=sample.feeds, outputs=sample.outputs or None)
    }
    truth = live(sample, sample.feeds)
    own = perturb(sample, truth) if sample.rough else None
    runs = {"": (sample.feeds, truth)}
    return Model(reads, runs, lambda got, truth: difference(got, truth, sample)[0], own)


def _drop_integers(options: Mapping[str, Any]) -> dict[str, Any]:
    """Options for sources without integer layers of MXNet."""
    return {n: v for n, v in options.items() if n != "integers"}


def largest_error(got: Sequence[Any], expected: Sequence[Any]) -> float:
    """The largest difference of any output, in terms of its scale."""
    return max(error(a, b) for a, b in zip(got, expected, strict=True))
