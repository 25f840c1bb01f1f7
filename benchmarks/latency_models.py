"""The files of one network that ``benchmarks.latency`` runs, and what runs them.

``LIBRARY/NETWORK`` names one of ``conformance.zoo``, whose libraries are in ``$SERDE_ZOO``;
``NETWORK@SIDE`` one that is fed a square image of this side, in place of the zoo's small one;
``NETWORK --OPTION`` one that serde converts with an option.
"""

from __future__ import annotations

import json
import math
import os
import subprocess
from collections import Counter
from collections.abc import Callable
from importlib import import_module
from pathlib import Path
from typing import Any

import numpy as np
import onnx

import serde
from benchmarks import torch_live
from conformance.zoo.compare import scale_error
from serde.bridges.mxnet import import_mxnet
from testing.consumers.consumers_live import CONSUMERS
from testing.live_worker import LiveError

Array = np.ndarray[Any, Any]
Run = Callable[[], list[Array]]
SERDE, AGAIN, MXNET, THEIRS, SLIM = "serde", "again", "MXNet", "MXNet's export", "onnxslim"
TORCH_WAYS = ("traced", "dynamo")
SAME = "same"  # said of a file whose nodes onnxslim leaves as they are
SCRIPT = Path(__file__).with_name("torch_networks.py")


def make_files(name: str, folder: Path) -> None:
    """Write each export of a network, a sample, and in ``ways.json`` where the files are.

    In place of a file that there is none of stands the reason, under ``reasons``.
    """
    name, *flags = name.split(" --")
    prefix, feeds, arrays = export_network(name, folder)
    np.savez(folder / "feeds.npz", **feeds)
    ours = folder / "serde.onnx"
    named = (flag.replace("-", "_").partition(" ") for flag in flags)
    serde.convert(prefix, ours, inputs=feeds, **{name: text or True for name, _, text in named})
    ways, reasons = {MXNET: str(prefix), SERDE: str(ours)}, {}
    for way, make in (
        (SLIM, lambda: slim(ours, folder / "slim.onnx")),
        (THEIRS, lambda: export_by_mxnet(prefix, folder / "theirs.onnx", feeds)),
        ("torch", lambda: export_by_torch(name, arrays, feeds, folder)),
    ):
        try:
            paths = make()
            ways |= paths if isinstance(paths, dict) else {way: paths}
        except Exception as error:  # whatever the exporters raise
            reasons[way] = str(error).strip().splitlines()[-1][:200]
    (folder / "ways.json").write_text(json.dumps({"ways": ways, "reasons": reasons}))


def export_network(name: str, folder: Path) -> tuple[Path, dict[str, Array], list[Array]]:
    """The prefix of a network that MXNet exported, a sample for it, and its parameters in order.

    Networks of ``conformance.zoo`` come with the parameters of the file, in its order.
    """
    name, _, side = name.partition("@")
    library, _, rest = name.rpartition("/")
    mxnet = import_mxnet()
    if library:
        sample = import_module(f"conformance.zoo.{library}").sample(rest, folder)
        feeds = {k: resize_image(x, int(side)) if side else x for k, x in sample.feeds.items()}
        arrays = mxnet.nd.load(f"{sample.prefix}-0000.params")
        return sample.prefix, feeds, [a.asnumpy() for a in arrays.values()]
    from testing import networks

    network = networks.build(name)
    feeds = networks.feeds(network, 1)
    network.block.hybridize()
    # Running sets gamma to 1 where it is fixed: MXNet's exporter takes what is stored.
    network.block(*map(mxnet.nd.array, feeds.values()))
    network.block.export(str(folder / name))
    parameters = network.block.collect_params().values()
    return folder / name, feeds, [p.data().asnumpy() for p in parameters]


def resize_image(image: Array, side: int) -> Array:
    """Random numbers in the shape of an image (samples, channels, height, width), of this side."""
    shape = (*image.shape[:2], side, side)
    return np.random.default_rng(0).standard_normal(shape, np.float32).astype(image.dtype)


def slim(path: Path, target: Path) -> str:
    """The file that onnxslim makes of one, or ``SAME`` if it has the same nodes."""
    if isinstance(reason := CONSUMERS.start(), str):
        raise LiveError(reason)
    CONSUMERS.ask("onnxslim", str(path), str(target))
    return SAME if count_forms(path) == count_forms(target) else str(target)


def count_forms(path: Path) -> Counter[tuple[str, ...]]:
    """How many nodes of a file have the same operator and attributes; constants are none."""
    nodes = onnx.load(path, load_external_data=False).graph.node
    forms = ((n.op_type, *sorted(str(a) for a in n.attribute)) for n in nodes)
    return Counter(form for form in forms if form[0] != "Constant")


def export_by_mxnet(prefix: Path, target: Path, feeds: dict[str, Array]) -> str:
    """The file of MXNet's own exporter."""
    from conformance import mxnet_exporter

    mxnet_exporter.export(str(prefix), str(target), feeds)
    return str(target)


def export_by_torch(
    name: str, arrays: list[Array], feeds: dict[str, Array], folder: Path
) -> dict[str, str]:
    """The file of each of PyTorch's exporters for torchvision's network, with these weights."""
    place = os.environ.get(torch_live.VARIABLE)
    if not place:
        names = f"{torch_live.VARIABLE} names no folder made by {torch_live.MAKER}"
        raise LiveError(f"no PyTorch: {names}")
    outputs = run_mxnet(folder / name.rpartition("/")[2], feeds)()
    if len(feeds) > 1 or len(outputs) > 1:
        raise LiveError("no network of torchvision")
    numbered = {str(i): a for i, a in enumerate(arrays)}
    sample = next(iter(feeds.values()))
    np.savez(folder / "torch.npz", input=sample, output=outputs[0], **numbered)
    command = [f"{place}/v/bin/python", SCRIPT, name, folder / "torch.npz", folder]
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    if done.returncode:
        raise LiveError(done.stderr)
    return dict(json.loads(done.stdout.splitlines()[-1]))


def compare_outputs(outputs: list[Array], expected: list[Array]) -> float:
    """The largest difference of outputs, as a share of their scale."""
    if [y.size for y in outputs] != [w.size for w in expected]:
        return math.inf
    pairs = zip(outputs, expected, strict=True)
    return max(scale_error(y.reshape(w.shape), w) for y, w in pairs)


def run_mxnet(prefix: Path | str, feeds: dict[str, Array]) -> Run:
    """The network in MXNet, as a function."""
    mxnet = import_mxnet()
    files = (f"{prefix}-symbol.json", [*feeds], f"{prefix}-0000.params")
    block = mxnet.gluon.SymbolBlock.imports(*files)
    block.hybridize(static_alloc=True, static_shape=True)
    tensors = [mxnet.nd.array(x) for x in feeds.values()]

    def run() -> list[Array]:
        result = block(*tensors)
        return [y.asnumpy() for y in (result if isinstance(result, list | tuple) else [result])]

    return run
