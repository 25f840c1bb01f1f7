"""Speed of converted networks in ONNX Runtime: ``python -m benchmarks.latency [NETWORK …]``.

Each network's export by serde, its export by MXNet itself, and the network in MXNet run in turn in
one process, on one image; the table of docs/benchmarks.md holds medians.
"""

from __future__ import annotations

import argparse
import json
import sys
import time
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

from benchmarks.measure import Failed, publish, python, table, workplace

NETWORKS = (
    "resnet50_v1", "resnet18_v2", "mobilenetv2_1.0", "densenet121", "vgg11_bn", "inceptionv3"
)  # fmt: skip
WARMING = 5  # rounds that are not counted
CLOSE = 1e-4  # of the outputs' scale


def measure(name: str, folder: Path, rounds: int) -> dict[str, Any]:
    """Milliseconds of each way of running a network, one list a way, and their agreement."""
    import onnxruntime

    import serde
    from benchmarks import mxnet_exporter
    from serde.bridges.mxnet import import_mxnet
    from tests import networks

    mxnet = import_mxnet()
    network = networks.build(name)
    image = networks.feeds(network, 1)["data"]
    tensor = mxnet.nd.array(image)
    network.block.hybridize()
    network.block(
        tensor
    )  # sets gamma to 1 where it is fixed: MXNet's exporter takes what is stored
    network.block.export(str(folder / name))
    ours, theirs = str(folder / "ours.onnx"), str(folder / "theirs.onnx")
    serde.convert(folder / name, ours, inputs={"data": image})
    mxnet_exporter.export(str(folder / name), theirs, {"data": image})

    def session(path: str) -> Callable[[], Any]:
        made = onnxruntime.InferenceSession(path, providers=["CPUExecutionProvider"])
        feed = {made.get_inputs()[0].name: image}
        return lambda: made.run(None, feed)[0]

    ways = {
        "ours": session(ours),
        "theirs": session(theirs),
        "mxnet": lambda: network.block(tensor).asnumpy(),
    }
    return {**timed(ways, rounds), **agreement(ways)}


def timed(ways: Mapping[str, Callable[[], Any]], rounds: int) -> dict[str, list[float]]:
    """Milliseconds of each round."""
    found: dict[str, list[float]] = {way: [] for way in ways}
    for number in range(WARMING + rounds):
        for way, run in ways.items():
            start = time.perf_counter()
            run()
            if number >= WARMING:
                found[way].append((time.perf_counter() - start) * 1e3)
    return found


def agreement(ways: Mapping[str, Callable[[], Any]]) -> dict[str, float]:
    """How far the exports' results are from MXNet's, as a share of their scale."""
    expected = ways["mxnet"]()
    scale = abs(expected).max()
    return {
        f"{way} off": float(abs(ways[way]() - expected).max() / scale) for way in ("ours", "theirs")
    }


def median(numbers: list[float]) -> float:
    """The middle one."""
    return sorted(numbers)[len(numbers) // 2]


def row(name: str, found: Mapping[str, Any]) -> tuple[str, ...]:
    """A line of the table."""
    middle = {way: median(found[way]) for way in ("ours", "theirs", "mxnet")}
    ratios = [middle["ours"] / middle[way] for way in ("theirs", "mxnet")]
    wrong = "" if found["theirs off"] < CLOSE else " (and wrong)"
    if found["ours off"] >= CLOSE:
        sys.exit(f"{name}: serde's export is off by {found['ours off']:.1e}")
    times = (f"{middle['ours']:.1f}", f"{middle['theirs']:.1f}{wrong}", f"{middle['mxnet']:.1f}")
    return (name, *times, *(f"{r:.2f}" for r in ratios))


def main() -> int:
    """Measure each network in a process of its own."""
    parser = argparse.ArgumentParser(description=__doc__, prog="python -m benchmarks.latency")
    parser.add_argument("networks", nargs="*", default=NETWORKS, metavar="NETWORK")
    parser.add_argument("--rounds", type=int, default=60, help="runs of each (60)")
    parser.add_argument("--folder", help="where models are written (the system's own)")
    parser.add_argument("--inside", help=argparse.SUPPRESS)
    given = parser.parse_args()
    if given.inside:
        print(json.dumps(measure(given.networks[0], Path(given.inside), given.rounds)))
        return 0
    rows = []
    with workplace(given.folder) as folder:
        for name in given.networks:
            place = folder / name
            place.mkdir()
            options = ("--rounds", str(given.rounds), "--inside", place)
            try:
                said = python("-m", "benchmarks.latency", name, *options).printed
            except Failed as reason:
                print(f"{name}: {reason}")
                continue
            rows.append(row(name, json.loads(said.splitlines()[-1])))
            print(rows[-1], flush=True)
    head = ("network", "serde, ms", "MXNet's export, ms", "MXNet, ms", "to its export", "to MXNet")
    said = (
        f"One image, {given.rounds} rounds in which each way runs once, medians. Both exports run "
        "in ONNX Runtime (serde's of opset 17, MXNet's of opset 13), with its own settings."
    )
    publish("Speed of the results", f"{said}\n\n{table(head, rows)}")
    return 0


if __name__ == "__main__":
    sys.exit(main())
