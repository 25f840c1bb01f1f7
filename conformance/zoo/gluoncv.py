"""The networks of GluonCV's model zoo with random weights, for ``conformance.zoo``."""

from __future__ import annotations

import json
import math
import re
import warnings
import zlib
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from functools import partialmethod
from pathlib import Path
from typing import Any
from unittest.mock import patch

import numpy as np

from conformance.zoo.compare import Run, Sample
from serde.bridges.mxnet import import_mxnet

CUSTOM = ["one", "two", "three"]  # what a detector of one's own is to tell apart
DETECTORS = re.compile("ssd_|yolo3_|.*rcnn|center_net")
PROPOSALS = 40  # that a detector in two stages looks at, instead of 300 or 1000
TEMPLATE = (1, 3, 127, 127)  # what a tracker looks for
SEGMENTERS = re.compile("fcn|psp|deeplab|danet|icnet|fastscnn")  # built for one size of images
# By name: the shape of an image or a clip to run the network on, and larger ones with names. The
# sizes are the least at which a network makes sense; those that take one size only have one.
SIZES: Mapping[str, tuple[int, ...]] = {
    "cifar": (3, 32, 32),
    "residualattentionnet|googlenet|densenet|alexnet|nasnet|shufflenet|squeezenet|inceptionv1": (
        3,
        224,
        224,
    ),
    "inceptionv3": (3, 299, 299),
    "ssd_300": (3, 300, 300),
    "ssd_512_vgg16": (3, 384, 384),
    "ssd_512": (3, 256, 256),
    "yolo3": (3, 128, 160),
    ".*rcnn": (3, 160, 192),
    "center_net": (3, 128, 160),
    "(fcn|psp|deeplab).*_int8": (3, 480, 480),
    "fcn|psp|deeplab|danet|icnet|fastscnn": (3, 256, 256),
    "monodepth2.*posenet": (6, 96, 192),
    "monodepth2": (3, 96, 192),
    "simple_pose|mobile_pose|alpha_pose": (3, 256, 192),
    "siamrpn": (3, 287, 287),
    "vgg16.*_int8": (3, 224, 224),
    "c3d": (3, 16, 112, 112),
    "i3d_inceptionv3": (3, 16, 139, 139),
    "p3d|r2plus1d|i3d": (3, 16, 64, 64),
    "slowfast_4x16": (3, 36, 64, 64),
    "slowfast_8x8": (3, 40, 64, 64),
    "slowfast_16x8": (3, 80, 64, 64),
    "": (3, 96, 96),
}


def names() -> list[str]:
    """Every network of the zoo."""
    import_mxnet()
    from gluoncv import model_zoo

    return list(model_zoo.get_model_list())


def sample(name: str, folder: Path) -> Sample:
    """Build the network of that name, export it into ``folder``, and make inputs for it."""
    mx = import_mxnet()
    generator = np.random.default_rng(zlib.crc32(name.encode()))
    shape = next(s for pattern, s in SIZES.items() if re.match(pattern, name))
    if name.endswith("_int8"):
        return sample_quantised(name, folder, shape, generator)
    image = generator.standard_normal((1, *shape), np.float32)
    with warnings.catch_warnings(), mx.name.NameManager():
        warnings.simplefilter("ignore")
        block = network(name, shape)
    feeds = {"data": image}
    if name.startswith("siamrpn"):
        feeds = {"data0": generator.standard_normal(TEMPLATE, np.float32), "data1": image}
    arrays = [mx.nd.array(x) for x in feeds.values()]
    with as_of_old():
        settle(block, arrays, generator)
        stand_in = export_block(block, arrays, folder / f"{name}_old") if "fpn" in name else None
    prefix = export_block(block, arrays, folder / name)
    more = list(larger(shape, generator)) if "data" in feeds else []
    return Sample(prefix, feeds, more, bool(DETECTORS.match(name)), stand_in=stand_in)


def export_block(block: Any, arrays: list[Any], prefix: Path) -> Path:
    """Write the symbol and the parameters of a block, made anew."""
    block.hybridize(static_alloc=False)
    block(*arrays)
    block.export(str(prefix))
    return prefix


@contextmanager
def as_of_old() -> Iterator[None]:
    """Have GluonCV make pyramids of features as for MXNet before 1.6.

    Later ones give each level the regions of the others as regions of image -1, which MXNet's
    ROIAlign leaves unwritten on a CPU but for a single zero that lies elsewhere; on a GPU these
    are zeros. The old symbol replaces them with zeros itself.
    """
    mx = import_mxnet()
    places = [vars(mx.nd.contrib), vars(mx.sym.contrib)]
    taken = [place.pop("box_encode") for place in places]
    yield
    for place, encode in zip(places, taken, strict=True):
        place["box_encode"] = encode


def read_shipped(name: str) -> str:
    """A symbol of integers that comes with GluonCV."""
    import gluoncv
    from gluoncv.model_zoo.quantized import quantized
    from gluoncv.utils.compress_json import get_compressed_model

    path = Path(gluoncv.__file__).parent / "model_zoo" / "quantized" / f"{name}-symbol.json"
    packed = quantized._compressed_int8_json
    return path.read_text() if path.is_file() else get_compressed_model(name, packed)


def sample_quantised(
    name: str, folder: Path, image: tuple[int, ...], generator: np.random.Generator
) -> Sample:
    """A symbol that ships with GluonCV, parameters for it, and as many images as it takes."""
    mx = import_mxnet()
    text = read_shipped(name)
    symbol, raw = mx.sym.load_json(text), json.loads(text)
    images = segments(raw)
    data = generator.standard_normal((images, *image), np.float32)
    known = {"data": data.shape, **dense_weights(raw, symbol, data.shape)}
    shapes, _, states = symbol.infer_shape_partial(**known)
    arrays = {}
    for kind, names, sizes in (
        ("arg", symbol.list_arguments(), shapes),
        ("aux", symbol.list_auxiliary_states(), states),
    ):
        for n, size in zip(names, sizes, strict=True):
            array = draw_param(n, size, generator)
            arrays[f"{kind}:{n}"] = generator.uniform(10, 200, size) if array is None else array
    del arrays["arg:data"]
    (folder / f"{name}-symbol.json").write_text(text)
    mx.nd.save(str(folder / f"{name}-0000.params"), {n: mx.nd.array(a) for n, a in arrays.items()})
    more = list(larger(image, generator, images))
    return Sample(folder / name, {"data": data}, more, rough=True, outputs=before_nms(raw))


def segments(raw: Mapping[str, Any]) -> int:
    """How many images of a clip a network takes the mean of: its batch is a multiple of that."""
    shapes = (n["attrs"]["shape"] for n in raw["nodes"] if n["op"] == "Reshape")
    matches = [re.fullmatch(r"\(-1, (\d+), \d+\)", s) for s in shapes]
    return int(matches[-1][1]) if matches and matches[-1] else 1


def before_nms(raw: Mapping[str, Any]) -> tuple[str, ...]:
    """The boxes of a detector of integers: scores that are nearly alike would sort them."""
    nodes = raw["nodes"]
    read = (n["inputs"][0][0] for n in nodes if n["op"] == "_contrib_box_nms")
    return tuple(f"{nodes[i]['name']}_output" for i in read)


def dense_weights(
    raw: Mapping[str, Any], symbol: Any, shape: tuple[int, ...]
) -> dict[str, tuple[int, int]]:
    """The shapes of the weights of fused dense layers, which MXNet does not infer."""
    nodes, internals = raw["nodes"], symbol.get_internals()
    shapes: dict[str, tuple[int, int]] = {}
    for node in nodes:
        if node["op"] != "_sg_mkldnn_fully_connected":
            continue
        into, weight = (nodes[link[0]]["name"] for link in node["inputs"][:2])
        _, (out_shape,), _ = internals[f"{into}_output"].infer_shape(data=shape, **shapes)
        layer = next(n for n in node["subgraphs"][0]["nodes"] if n["op"] == "FullyConnected")
        shapes[weight] = (int(layer["attrs"]["num_hidden"]), math.prod(out_shape[1:]))
    return shapes


def draw_param(name: str, shape: tuple[int, ...], generator: np.random.Generator) -> Any:
    """Random numbers for a parameter, or None for what is none of the usual ones.

    Deformable convolutions look a part of a pixel off. By whole pixels of a rough image, layer upon
    layer, MXNet itself moves 2e-3 of scale when its input is changed by 1e-7.
    """
    if name.endswith(("gamma", "running_var", "moving_var")):
        return generator.uniform(0.5, 1.5, shape)
    if name.endswith("weight"):
        size = math.sqrt(2 / math.prod(shape[1:])) * (0.1 if "offset" in name else 1)
        return generator.standard_normal(shape, np.float32) * size
    if name.endswith(("bias", "beta", "running_mean", "moving_mean")):
        return generator.normal(0, 0.1, shape)
    return None


def larger(shape: tuple[int, ...], generator: np.random.Generator, images: int = 1) -> Any:
    """Inputs with two samples and a larger image, or the one or the other."""
    axes = ("N", "C", "H", "W") if len(shape) == 3 else ("N", "C", "T", "H", "W")
    wider = (*shape[:-2], shape[-2] + 32, shape[-1] + 64)
    for batch, size in ((2, wider), (1, wider), (2, shape)):
        data = generator.standard_normal((batch * images, *size), np.float32)
        before = (images, *shape)
        named = tuple(n if a != b else b for n, a, b in zip(axes, before, data.shape, strict=True))
        yield Run({"data": data}, {"data": named})


def network(name: str, shape: tuple[int, ...]) -> Any:
    """The block, without weights, for such images."""
    from gluoncv import model_zoo

    options: dict[str, Any] = {"pretrained": False}
    if re.match("i3d_resnet50_v1_(?!kinetics)|(slowfast|resnet).*_custom", name):
        options["use_kinetics_pretrain"] = False
    if re.match("(i3d|slowfast|resnet).*_custom", name):  # of clips
        options["nclass"] = len(CUSTOM)
    elif "custom" in name:
        options["classes"] = CUSTOM
    if SEGMENTERS.match(name):
        options["crop_size"] = shape[-1]
    parameters = import_mxnet().gluon.ParameterDict
    from gluoncv.model_zoo.action_recognition import actionrec_resnetv1b as clips

    clip = clips.ActionRecResNetV1b
    unlearned = partialmethod(clip.__init__, pretrained_base=False)  # two are always learned
    with (
        patch.object(parameters, "reset_ctx"),  # some move weights that are not there yet
        patch.object(clip, "__init__", unlearned),
    ):
        try:
            block = model_zoo.get_model(name, pretrained_base=False, **options)
        except (TypeError, Warning, SystemExit):  # it takes no such argument
            block = model_zoo.get_model(name, **options)
    if "rcnn" in name:  # each proposal runs through a large part of the network
        block._rpn_test_post_nms = block.rpn._test_post_nms = PROPOSALS
        block._rcnn_max_dets = PROPOSALS
    return block


def settle(block: Any, inputs: list[Any], generator: np.random.Generator) -> None:
    """Random weights, such that activations neither die nor explode, and no bias is zero."""
    mx = import_mxnet()
    block.initialize(mx.init.Zero())
    block(*inputs)
    for name, param in block.collect_params().items():
        values = draw_param(name, param.shape, generator)  # He et al. 2015
        if values is not None:  # not anchors and the like
            param.set_data(mx.nd.array(values))
    calibrate(block, inputs, generator)


def calibrate(block: Any, inputs: list[Any], generator: np.random.Generator) -> None:
    """Scale weights, so that no scores are saturated; set BatchNorm's statistics near those of its
    input as a whole.
    """
    mx = import_mxnet()
    nn, layers = mx.gluon.nn, []
    cnn = mx.gluon.contrib.cnn
    deformable = (cnn.DeformableConvolution, cnn.ModulatedDeformableConvolution)
    linear = (nn.conv_layers._Conv, nn.Dense, *deformable)

    def scale(layer: Any, inputs: tuple[Any, ...]) -> None:
        spread = float(layer.forward(*inputs).asnumpy().std())
        is_deformable = isinstance(layer, deformable)
        weight = layer.deformable_conv_weight if is_deformable else layer.weight
        weight.set_data(weight.data() / max(spread, 1e-6))

    def set_statistics(layer: Any, inputs: tuple[Any, ...]) -> None:
        x = inputs[0].asnumpy()
        means = x.mean() + x.std() * generator.normal(0, 0.3, layer.running_mean.shape)
        layer.running_mean.set_data(mx.nd.array(means))
        layer.running_var.set_data(max(x.var(), 1e-6) * layer.running_var.data())

    block.apply(layers.append)
    before = ((linear, scale), (nn.BatchNorm, set_statistics))
    hooks = [
        layer.register_forward_pre_hook(hook)
        for layer in layers for kind, hook in before if isinstance(layer, kind)
    ]  # fmt: skip
    block(*inputs)
    for hook in hooks:
        hook.detach()
