"""Speed of converted networks in ONNX Runtime: ``python -m benchmarks.latency [NETWORK …]``.

Each network's export by serde, the same after onnxslim, its export by MXNet, that of the same
network by PyTorch, and the network in MXNet run in turn in one process, with one thread; the table
of benchmarks.md holds medians. The rows of networks that are not measured stay. ``$SERDE_ZOO``,
``$SERDE_CONSUMERS`` (for onnxslim) and ``$SERDE_TORCH`` name folders, as for ``tests`` and
``conformance``; the last with onnxscript as well. What is missing is left out.
"""

from __future__ import annotations

import argparse
import json
import os
import random
import re
import statistics
import sys
import time
from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path
from typing import Any

import numpy as np

from benchmarks.measure import DOCUMENT, Failed, publish, python, table, workplace

INTEGER = (
    "mobilenet1.0_int8", "vgg16_ucf101_int8", "inceptionv3_kinetics400_int8",
    "resnet18_v1b_kinetics400_int8", "resnet50_v1_int8", "simple_pose_resnet18_v1b_int8",
)  # fmt: skip
LARGE = (  # on images of the size that they were trained with
    "mobilenet1.0_int8@224", "resnet50_v1_int8@224", "ssd_512_mobilenet1.0_voc_int8@512",
    "ssd_512_resnet50_v1_voc_int8@512", "fcn_resnet101_voc_int8@480",
)  # fmt: skip
INTEGER_OPTIONS = ("", " --profile onnxruntime", " --int8-weights")
NETWORKS = (
    "alexnet", *(f"densenet{n}" for n in (121, 161, 169, 201)), "inceptionv3",
    *(f"mobilenet{v}{m}" for v in ("", "v2_") for m in ("1.0", "0.75", "0.5", "0.25")),
    *(f"resnet{n}_v{v}" for v in (1, 2) for n in (18, 34, 50, 101, 152)),
    "squeezenet1.0", "squeezenet1.1",
    *(f"vgg{n}{bn}" for n in (11, 13, 16, 19) for bn in ("", "_bn")),
    "lstm", "gru", "bert_batch_dot", "bert_interleaved",
    "gluonnlp/standard_lstm_lm_200", "gluonnlp/awd_lstm_lm_600", "gluonnlp/bert_12_768_12",
    "gluonnlp/distilbert_6_768_12", "gluonnlp/transformer_en_de_512 encoder",
    "gluoncv/resnet18_v1b", "gluoncv/resnet50_v1b", "gluoncv/mobilenetv3_small",
    "gluoncv/ssd_512_mobilenet1.0_voc", "gluoncv/ssd_300_vgg16_atrous_voc",
    "gluoncv/yolo3_mobilenet1.0_voc", "gluoncv/yolo3_darknet53_voc",
    "gluoncv/center_net_resnet18_v1b_voc", "gluoncv/fcn_resnet50_ade",
    "gluoncv/deeplab_resnet50_ade", "gluoncv/simple_pose_resnet18_v1b",
    "gluoncv/simple_pose_resnet18_v1b --profile onnxruntime",
    *(f"gluoncv/{name}{option}" for name in INTEGER for option in INTEGER_OPTIONS),
    *(f"gluoncv/{name} --profile onnxruntime" for name in LARGE),
)  # fmt: skip
TITLE = "Speed of the results"
WARMING = 3  # rounds that are not counted
LEAST, MOST = 15, 80  # rounds
RUN = 4e-3  # seconds that each way runs at least in a round
CLOSE = 1e-4  # of the outputs' scale
COLUMNS = {  # by heading: the ways that a column shows the fastest of
    "a second session": ("again",), "onnxslim": ("onnxslim",),
    "MXNet's export": ("MXNet's export",), "PyTorch's": ("traced", "dynamo"),
    "MXNet": ("MXNet",),
}  # fmt: skip
RATIOS = re.compile(r"([\d.]+) \(([\d.]+)\)")
Times = list[tuple[float, float]]  # milliseconds of the clock and of the processor


def measure(folder: Path, seconds: float, seed: int) -> dict[str, Any]:
    """The times of each way of running a network, and how far its results are from MXNet's.

    ``seed`` decides the order of the sessions, and so where in memory their weights are.
    """
    from benchmarks import latency_models as models
    from serde.bridges.onnxruntime import prepare

    with np.load(folder / "feeds.npz") as file:
        feeds = dict(file)
    paths = json.loads((folder / "ways.json").read_text())["ways"]
    runs = {models.MXNET: models.run_mxnet(paths.pop(models.MXNET), feeds)}
    expected, off, reasons = runs[models.MXNET](), {}, {}
    files = [*paths.items(), (models.AGAIN, paths[models.SERDE])]
    random.Random(seed).shuffle(files)
    for way, path in files:
        if path == models.SAME:
            continue
        try:
            session = prepare(path, threads=1, apart=False)
            off[way] = models.compare_outputs(session(feeds), expected)
            runs[way] = lambda session=session: session(feeds)
        except Exception as error:  # an export that does not run
            reasons[way] = str(error).strip().splitlines()[-1][:200]
    return {"times": time_rounds(runs, seconds), "off": off, "reasons": reasons}


def time_rounds(runs: Mapping[str, Any], seconds: float) -> dict[str, Times]:
    """The times of each round, in which all run in an order of its own."""
    draws, names = random.Random(0), list(runs)
    pairs: dict[str, Times] = {name: [] for name in names}
    repeats = {name: max(1, round(RUN / least_seconds(runs[name]))) for name in names}
    start = time.perf_counter()
    for number in range(WARMING + MOST):
        if number >= WARMING + LEAST and time.perf_counter() - start > seconds:
            break
        draws.shuffle(names)
        for name in names:
            run, count = runs[name], repeats[name]
            before = time.perf_counter(), time.process_time()
            for _ in range(count):
                run()
            after = time.perf_counter(), time.process_time()
            clock, processor = ((b - a) * 1e3 / count for a, b in zip(before, after, strict=True))
            pairs[name].append((clock, processor))
    return {name: times[WARMING:] for name, times in pairs.items()}


def least_seconds(run: Any) -> float:
    """The time of the fastest of three runs."""
    seconds = []
    for _ in range(3):
        start = time.perf_counter()
        run()
        seconds.append(time.perf_counter() - start)
    return min(seconds)


def row(name: str, tries: Sequence[Mapping[str, Any]], files: Mapping[str, Any]) -> list[str]:
    """A line of the table, of several processes."""
    off, reasons = tries[0]["off"], {**files["reasons"], **tries[0]["reasons"]}
    if off["serde"] >= CLOSE:
        sys.exit(f"{name}: serde's export is off by {off['serde']:.1e}")
    for way, why in reasons.items():
        print(f"{name}: {way}: {why}", file=sys.stderr)
    ours = [t["times"]["serde"] for t in tries]
    cells = [name, f"{statistics.median(c for times in ours for c, _ in times):.2f}"]
    for ways in COLUMNS.values():
        ratios = {
            way: compare(ours, [t["times"][way] for t in tries])
            for way in ways if way in tries[0]["times"]
        }  # fmt: skip
        if not ratios:
            cells.append("same" if files["ways"].get(ways[0]) == "same" else "–")
            continue
        way = max(ratios, key=lambda way: ratios[way])
        wrong = " (wrong)" if off.get(way, 0) >= CLOSE else ""
        cells.append("{:.2f} ({:.2f})".format(*ratios[way]) + wrong)
    return cells


def compare(ours: Iterable[Times], others: Iterable[Times]) -> tuple[float, float]:
    """The median of rounds' ratios of clock and of processor, and of that the processes' median."""
    ratios = []
    for mine, theirs in zip(ours, others, strict=True):
        pairs = list(zip(mine, theirs, strict=True))
        ratios.append([statistics.median(m[at] / t[at] for m, t in pairs) for at in range(2)])
    clock, processor = (statistics.median(r[at] for r in ratios) for at in range(2))
    return clock, processor


def main() -> int:
    """Measure each network in processes of its own."""
    parser = argparse.ArgumentParser(description=__doc__, prog="python -m benchmarks.latency")
    parser.add_argument("networks", nargs="*", default=NETWORKS, metavar="NETWORK")
    parser.add_argument("--seconds", type=float, default=10, help="of runs in a process (10)")
    parser.add_argument("--processes", type=int, default=3, help="for each network (3)")
    parser.add_argument("--folder", help="where models are written (the system's own)")
    parser.add_argument("--inside", choices=("make", "measure"), help=argparse.SUPPRESS)
    parser.add_argument("--seed", type=int, default=0, help=argparse.SUPPRESS)
    args = parser.parse_args()
    if args.inside:
        name, folder = args.networks
        if args.inside == "make":
            from benchmarks.latency_models import make_files

            make_files(name, Path(folder))
        else:
            print(json.dumps(measure(Path(folder), args.seconds, args.seed)))
        return 0
    os.environ["OMP_NUM_THREADS"] = "1"
    if zoo := os.environ.get("SERDE_ZOO"):
        os.environ["PYTHONPATH"] = os.path.abspath(zoo)
    rows = read_rows()
    with workplace(args.folder) as parent:
        for number, name in enumerate(args.networks):
            try:
                rows[name] = measure_network(name, parent / str(number), args)
            except Failed as reason:
                print(f"{name}: {reason}", flush=True)
                continue
            print(*rows[name], sep=" | ", flush=True)
            publish_rows(rows, args)
    return 0


def measure_network(name: str, folder: Path, args: argparse.Namespace) -> list[str]:
    """The row of one network, whose files are removed."""
    folder.mkdir()
    try:
        command = ("-m", "benchmarks.latency", name, folder, "--inside")
        python(*command, "make")
        seconds = ("--seconds", str(args.seconds), "--seed")
        texts = [python(*command, "measure", *seconds, str(seed)).printed
                 for seed in range(args.processes)]  # fmt: skip
        tries = [json.loads(text.splitlines()[-1]) for text in texts]
        return row(name, tries, json.loads((folder / "ways.json").read_text()))
    finally:
        for path in sorted(folder.rglob("*"), reverse=True):
            path.rmdir() if path.is_dir() else path.unlink()


def read_rows() -> dict[str, list[str]]:
    """The rows of the table that is published."""
    text = DOCUMENT.read_text(encoding="utf-8").partition(f"## {TITLE}\n")[2].partition("\n## ")[0]
    lines = [line.strip("|\n ").split(" | ") for line in text.splitlines() if line.startswith("|")]
    if not lines or len(lines[0]) != 2 + len(COLUMNS):
        return {}
    return {name: [name, *cells] for name, *cells in lines[2:]}


def publish_rows(rows: Mapping[str, list[str]], args: argparse.Namespace) -> None:
    """Write the section, with the networks in their order."""
    order = {name: at for at, name in enumerate(NETWORKS)}
    listed = sorted(rows.values(), key=lambda cells: order.get(cells[0], len(order)))
    head = ("network", "serde, ms", *(f"to {heading}" for heading in COLUMNS))
    text = (
        "The time of serde's export (opset 17, default options) in ONNX Runtime, and its ratio to "
        "that of others: a second session of the same file, which tells the noise; the file after "
        "onnxslim (*same*: it has the same nodes); the export of MXNet itself (opset 13); the "
        "export of torchvision's network with the same weights by the faster of PyTorch's two "
        "exporters (opset 17 and 20); MXNet. One sample, one thread; networks of GluonCV on small "
        "images, but for those with a side behind *@*. All run in one process, in "
        f"{LEAST} to {MOST} rounds in which each runs once (fast ones for {RUN * 1e3:.0f} ms), in "
        "changing order. The median of the rounds' ratios, and of that the median of "
        f"{args.processes} processes; in brackets that of the processor's time, which other work "
        "on the machine changes less. *–*: there is no such export, or it does not run; *wrong*: "
        "its numbers are not MXNet's. Products of integers are computed without VNNI instructions "
        "by default, which is exact on every processor; `--profile onnxruntime` uses these where a "
        "processor has them, `--int8-weights` takes them for granted."
    )
    publish(TITLE, f"{text}\n\n{summarize(listed)}\n\n{table(head, listed)}")


def summarize(rows: Sequence[Sequence[str]]) -> str:
    """How many rows each column has, and its largest ratios."""
    parts = []
    for at, heading in enumerate(COLUMNS, 2):
        ratios = [c for cells in rows if (c := RATIOS.match(cells[at]))]
        same = sum(cells[at] == "same" for cells in rows)
        line = f"to {heading}: of {len(ratios)}"
        for place, by in enumerate(("the clock", "the processor"), 1):
            if ratios:
                line += f", {max(float(c[place]) for c in ratios):.2f} by {by}"
        parts.append(line + (f"; {same} are the same" if same else ""))
    listed = "\n".join(f"* {part}" for part in parts)
    return f"{len(rows)} rows. The largest ratios:\n\n{listed}"


if __name__ == "__main__":
    sys.exit(main())
