"""Networks of torchvision with the weights of Gluon's, exported by PyTorch.

``python benchmarks/torch_networks.py NETWORK ARRAYS FOLDER`` runs in an environment with PyTorch,
torchvision and onnxscript. ``ARRAYS`` is an ``.npz`` file of the input, of MXNet's output, and of
the parameters in the order of the layers. Each exporter's file goes into ``FOLDER``.
"""

from __future__ import annotations

import json
import re
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any
from unittest.mock import patch

import numpy as np
import torch
from torch import nn

# Wheels of PyPI have torchvision's own operators for CUDA only; these networks need none of them.
with patch("torch.library.register_fake", lambda *operator, **options: lambda function: function):
    import torchvision

OPSET = 17  # that of serde's files; the newer exporter may write a newer one
CLOSE = 1e-4  # of the output's scale
STATISTICS = ("weight", "bias", "running_mean", "running_var")


def main() -> None:
    """Build the network, compare its output with MXNet's, and export it in each way."""
    name, arrays, folder = sys.argv[1], np.load(sys.argv[2]), Path(sys.argv[3])
    torch.set_num_threads(1)
    model = build(name).eval()
    count = len(arrays.files) - 2
    copy_weights(model, [arrays[str(i)] for i in range(count)])
    x = torch.from_numpy(arrays["input"])
    with torch.no_grad():
        y = model(x).numpy()
    expected = arrays["output"].reshape(y.shape)
    off = float(np.abs(y - expected).max() / np.abs(expected).max())
    if off >= CLOSE:
        sys.exit(f"torchvision's {name} is another network: its output is off by {off:.0e}")
    print(json.dumps(export(model, x, folder)))


def build(name: str) -> nn.Module:
    """The network of torchvision, changed where Gluon's has other layers."""
    for pattern, make in NETWORKS.items():
        if match := re.fullmatch(pattern, name):
            return make(*match.groups())
    return sys.exit(f"torchvision has no {name}")


def copy_weights(model: nn.Module, arrays: list[np.ndarray[Any, Any]]) -> None:
    """Set the parameters and statistics, which both frameworks list layer by layer."""
    places = [
        tensor for layer in model.modules() for name in STATISTICS
        if isinstance(tensor := getattr(layer, name, None), torch.Tensor)
    ]  # fmt: skip
    for place, array in zip(places, arrays, strict=True):
        if place.numel() != array.size or place.shape[0] != array.shape[0]:
            sys.exit(f"a parameter is {array.shape} in Gluon, {tuple(place.shape)} in torchvision")
        place.data = torch.from_numpy(array).reshape(place.shape)


def export(model: nn.Module, x: torch.Tensor, folder: Path) -> dict[str, str]:
    """The file of each exporter, or why there is none."""
    exporters = {"traced": {"dynamo": False, "opset_version": OPSET}, "dynamo": {"dynamo": True}}
    paths = {}
    for way, options in exporters.items():
        path = folder / f"{way}.onnx"
        try:
            torch.onnx.export(model, (x,), str(path), input_names=["data"], **options)
            paths[way] = str(path)
        except Exception as error:  # whatever an exporter raises
            print(f"{way}: {error}", file=sys.stderr)
    return paths


def classifier(name: str) -> nn.Module:
    """The network as it is."""
    options = {"aux_logits": False, "init_weights": False} if name == "inception_v3" else {}
    return getattr(torchvision.models, name)(**options)


def resnet_v1(layers: str) -> nn.Module:
    """In Gluon's blocks of three convolutions the first has the stride, and two have biases."""
    model = classifier(f"resnet{layers}")
    for block in model.modules():
        if isinstance(block, torchvision.models.resnet.Bottleneck):
            block.conv1.stride, block.conv2.stride = block.conv2.stride, (1, 1)
            for layer in (block.conv1, block.conv3):
                layer.bias = nn.Parameter(torch.zeros(layer.out_channels))
    return model


def mobilenet_v2(width: str) -> nn.Module:
    """Gluon's first block expands by 1, and its classifier has no bias."""
    model = torchvision.models.mobilenet_v2(width_mult=float(width), round_nearest=1)
    first = model.features[1].conv
    channels = first[0][0].in_channels
    layers = torchvision.ops.misc.Conv2dNormActivation
    first.insert(0, layers(channels, channels, 1, activation_layer=nn.ReLU6))
    last = model.classifier[1]
    model.classifier[1] = nn.Linear(last.in_features, last.out_features, bias=False)
    return model


NETWORKS: dict[str, Callable[..., nn.Module]] = {
    r"(alexnet|vgg\d+(?:_bn)?|densenet\d+)": classifier,
    r"inceptionv3": lambda: classifier("inception_v3"),
    r"squeezenet1\.(\d)": lambda version: classifier(f"squeezenet1_{version}"),
    r"mobilenetv2_([\d.]+)": mobilenet_v2,
    r"resnet(\d+)_v1": resnet_v1,
    r"gluoncv/resnet(\d+)_v1b": lambda layers: classifier(f"resnet{layers}"),
}


if __name__ == "__main__":
    main()
