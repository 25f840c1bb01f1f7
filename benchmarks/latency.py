"""Speed of converted networks in ONNX Runtime: ``python -m benchmarks.latency [NETWORK …]``.

Each network's export by serde, its export by MXNet itself where it makes one, and the network in
MXNet run in turn in one process, on one sample; the table of benchmarks.md holds medians.
``LIBRARY/NETWORK`` names one of ``conformance.zoo``, whose libraries ``--packages`` finds.
"""

from __future__ import annotations

import argparse
import json
import os
import sys
import time
from collections.abc import Callable, Mapping
from importlib import import_module
from itertools import cycle, permutations
from pathlib import Path
from typing import Any

import numpy as np

from benchmarks.measure import Failed, publish, python, table, workplace

NETWORKS = (
    "resnet18_v2", "resnet50_v2", "mobilenet1.0", "mobilenetv2_1.0", "densenet121", "inceptionv3",
    "vgg11_bn", "gluonnlp/standard_lstm_lm_200", "gluonnlp/bert_12_768_12",
    "gluoncv/ssd_512_mobilenet1.0_voc", "gluoncv/mobilenet1.0_int8", "gluoncv/vgg16_ucf101_int8",
    "gluoncv/inceptionv3_kinetics400_int8", "gluoncv/resnet18_v1b_kinetics400_int8",
    "gluoncv/resnet50_v1_int8", "gluoncv/simple_pose_resnet18_v1b_int8",
)  # fmt: skip
WARMING = 5  # rounds that are not counted
CLOSE = 1e-4  # of the outputs' scale
Outputs = list[np.ndarray[Any, Any]]


def exported(name: str, folder: Path) -> tuple[Path, dict[str, Any]]:
    """The prefix of a network that MXNet exported, and one sample for it."""
    library, _, rest = name.rpartition("/")
    if library:
        sample = import_module(f"conformance.zoo.{library}").sample(rest, folder)
        return sample.prefix, dict(sample.feeds)
    from serde.bridges.mxnet import import_mxnet
    from tests import networks

    network = networks.build(name)
    feeds = networks.feeds(network, 1)
    network.block.hybridize()
    # Running sets gamma to 1 where it is fixed: MXNet's exporter takes what is stored.
    network.block(*map(import_mxnet().nd.array, feeds.values()))
    network.block.export(str(folder / name))
    return folder / name, feeds


def measure(name: str, folder: Path, rounds: int) -> dict[str, Any]:
    """Milliseconds of each way of running a network, one list a way, and their agreement."""
    import onnxruntime

    import serde
    from conformance import mxnet_exporter
    from serde.bridges.mxnet import import_mxnet

    mxnet = import_mxnet()
    prefix, feeds = exported(name, folder)
    ours, theirs = str(folder / "ours.onnx"), str(folder / "theirs.onnx")
    serde.convert(prefix, ours, inputs=feeds)

    def session(path: str) -> Callable[[], Outputs]:
        runner = onnxruntime.InferenceSession(path, providers=["CPUExecutionProvider"])
        inputs = {i.name: feeds[i.name] for i in runner.get_inputs()}
        return lambda: list(runner.run(None, inputs))

    files = (f"{prefix}-symbol.json", [*feeds], f"{prefix}-0000.params")
    block = mxnet.gluon.SymbolBlock.imports(*files)
    block.hybridize(static_alloc=True, static_shape=True)
    tensors = [mxnet.nd.array(x) for x in feeds.values()]

    def native() -> Outputs:
        result = block(*tensors)
        return [y.asnumpy() for y in (result if isinstance(result, list | tuple) else [result])]

    ways = {"ours": session(ours), "mxnet": native}
    try:
        mxnet_exporter.export(str(prefix), theirs, feeds)
        ways["theirs"] = session(theirs)
    except Exception as error:  # whatever MXNet's exporter and ONNX Runtime raise
        print(f"{name}: MXNet's exporter: {str(error)[:200]}", file=sys.stderr)
    return {**timed(ways, rounds), **agreement(ways)}


def timed(ways: Mapping[str, Callable[[], Any]], rounds: int) -> dict[str, list[float]]:
    """Milliseconds of each round; orders change, as a way's threads wait busily into the next."""
    times: dict[str, list[float]] = {way: [] for way in ways}
    orders = cycle(permutations(ways))
    for number, order in zip(range(WARMING + rounds), orders, strict=False):
        for way in order:
            start = time.perf_counter()
            ways[way]()
            if number >= WARMING:
                times[way].append((time.perf_counter() - start) * 1e3)
    return times


def agreement(ways: Mapping[str, Callable[[], Outputs]]) -> dict[str, float]:
    """How far the exports' results are from MXNet's, as a share of their scale."""
    from conformance.zoo.compare import scaled

    expected = ways["mxnet"]()
    return {
        f"{way} off": max(scaled(y, w) for y, w in zip(ways[way](), expected, strict=True))
        for way in ways
    }


def median(numbers: list[float]) -> float:
    """The middle one."""
    return sorted(numbers)[len(numbers) // 2]


def row(name: str, result: Mapping[str, Any]) -> tuple[str, ...]:
    """A line of the table."""
    if result["ours off"] >= CLOSE:
        sys.exit(f"{name}: serde's export is off by {result['ours off']:.1e}")
    times, ratios = [f"{median(result['ours']):.1f}"], []
    for way in ("theirs", "mxnet"):
        if way not in result:
            times.append("refused")
            ratios.append("")
            continue
        wrong = "" if result[f"{way} off"] < CLOSE else " (and wrong)"
        times.append(f"{median(result[way]):.1f}{wrong}")
        pairs = zip(result["ours"], result[way], strict=True)
        ratios.append(f"{median([mine / other for mine, other in pairs]):.2g}")
    return (name, *times, *ratios)


def main() -> int:
    """Measure each network in a process of its own."""
    parser = argparse.ArgumentParser(description=__doc__, prog="python -m benchmarks.latency")
    parser.add_argument("networks", nargs="*", default=NETWORKS, metavar="NETWORK")
    parser.add_argument("--rounds", type=int, default=60, help="runs of each (60)")
    parser.add_argument("--folder", help="where models are written (the system's own)")
    parser.add_argument("--packages", metavar="FOLDER", help="where the zoo's libraries are")
    parser.add_argument("--inside", help=argparse.SUPPRESS)
    args = parser.parse_args()
    if args.packages:
        os.environ["PYTHONPATH"] = os.path.abspath(args.packages)
    if args.inside:
        print(json.dumps(measure(args.networks[0], Path(args.inside), args.rounds)))
        return 0
    rows = []
    with workplace(args.folder) as folder:
        for name in args.networks:
            place = folder / name.replace("/", "_")
            place.mkdir()
            options = ("--rounds", str(args.rounds), "--inside", place)
            try:
                text = python("-m", "benchmarks.latency", name, *options).printed
            except Failed as reason:
                print(f"{name}: {reason}")
                continue
            rows.append(row(name, json.loads(text.splitlines()[-1])))
            print(rows[-1], flush=True)
    head = ("network", "serde, ms", "MXNet's export, ms", "MXNet, ms", "to its export", "to MXNet")
    text = (
        f"One sample, {args.rounds} rounds in which each way runs once, in changing order; "
        "medians of the times and of the rounds' ratios. Both exports run in ONNX Runtime (serde's "
        "of opset 17, MXNet's of opset 13), with its own settings."
    )
    publish("Speed of the results", f"{text}\n\n{table(head, rows)}")
    return 0


if __name__ == "__main__":
    sys.exit(main())
