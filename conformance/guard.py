"""Guard the conversion core: the bytes of many conversions, before a change and behind it.

    python -m conformance.guard RECORD [--against RECORD]

All node tests of onnx of an operator and opset are one model, most of them twice, with another size
of the last axis: what is decided for a node shows where it must not hold for the next. Each model
is converted to opsets, profiles, Relay and MXNet. RECORD is a file for a hash of what was written,
or the refusal; with ``--against`` cases that differ are printed, and the exit code is 1 if any do.
"""

from __future__ import annotations

import hashlib
import json
import sys
import tempfile
from collections import defaultdict
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

import click
import onnx
from onnx import compose, helper

import serde
from testing.node_cases import all_cases

SHOWN = 20
OPSETS = (7, 9, 11, 13, 17, 21, 28)
PROFILES = (
    "onnxruntime", "openvino", "tract", "mnn", "ncnn", "tensorrt", "npu-static",
)  # fmt: skip
TARGETS: tuple[tuple[str, str, Mapping[str, Any]], ...] = (
    *((f"opset {n}", "model.onnx", {"opset": n}) for n in OPSETS),
    *((name, "model.onnx", {"profile": name}) for name in PROFILES),
    ("relay", "model.relay", {}),
    ("mxnet", "model-symbol.json", {}),
)


def merge_node_tests() -> Iterator[tuple[str, onnx.ModelProto]]:
    """One model of all tests of one node by operator and opset."""
    groups: dict[tuple[str, int], list[onnx.ModelProto]] = defaultdict(list)
    for case in all_cases():
        domains = {i.domain for i in case.model.opset_import}
        if domains <= {"", "ai.onnx"} and len(case.model.graph.node) == 1:
            operator = case.model.graph.node[0].op_type
            groups[operator, case.model.opset_import[0].version].append(case.model)
    for (operator, opset), models in sorted(groups.items()):
        yield f"{operator}_{opset}", merge(models, opset)


def merge(models: list[onnx.ModelProto], opset: int) -> onnx.ModelProto:
    """Models side by side, and again with a longer last axis where that is valid."""
    parts = [compose.add_prefix_graph(m.graph, f"m{i}_") for i, m in enumerate(models)]
    for i, model in enumerate(models):
        graph = compose.add_prefix_graph(model.graph, f"d{i}_")
        longer = (lengthen(graph, count) for count in (1, len(graph.input)))
        parts += [g for g in longer if g is not None and is_valid(wrap(g, opset))][:1]
    graph = helper.make_graph(
        [v for g in parts for v in g.node], "g",
        [v for g in parts for v in g.input], [v for g in parts for v in g.output],
        [v for g in parts for v in g.initializer],
    )  # fmt: skip
    return wrap(graph, opset)


def wrap(graph: onnx.GraphProto, opset: int) -> onnx.ModelProto:
    """The model of a graph."""
    opsets = [helper.make_opsetid("", opset)]
    return helper.make_model(graph, opset_imports=opsets, ir_version=10 if opset < 25 else 13)


def lengthen(graph: onnx.GraphProto, count: int) -> onnx.GraphProto | None:
    """A graph with longer last axes of its first inputs, if they are images or sequences."""
    ends = (*graph.input, *graph.output)
    if graph.initializer or not all(v.type.HasField("tensor_type") for v in ends):
        return None
    longer = onnx.GraphProto.FromString(graph.SerializeToString())
    for value in longer.input[:count]:
        dims = value.type.tensor_type.shape.dim
        if len(dims) > 2:
            dims[-1].dim_value = 2 * dims[-1].dim_value + 1
    for value in longer.output:
        value.type.tensor_type.ClearField("shape")
    return longer


def is_valid(model: onnx.ModelProto) -> bool:
    """Whether a model is one that serde reads."""
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "model.onnx"
        onnx.save(model, path)
        try:
            serde.load(path)
        except serde.SerdeError:
            return False
    return True


def convert(source: Path, folder: Path, name: str, options: Mapping[str, Any]) -> str:
    """A hash of the files that a conversion writes, or its refusal."""
    try:
        report = serde.convert(source, folder / name, **options)
    except serde.SerdeError as error:
        return f"{type(error).__name__}: {error}"
    written = (Path(f).read_bytes() for f in sorted(report.files))
    return " ".join(hashlib.sha256(data).hexdigest()[:16] for data in written)


def run() -> dict[str, str]:
    """The outcome of every conversion."""
    outcomes = {}
    with tempfile.TemporaryDirectory() as place:
        folder = Path(place)
        for name, model in merge_node_tests():
            source = folder / f"{name}.onnx"
            onnx.save(model, source)
            for target, file, options in TARGETS:
                outcome = convert(source, folder, file, options)
                outcomes[f"{name} {target}"] = outcome.replace(place, "")
    return outcomes


@click.command(help=__doc__)
@click.argument("record", type=click.Path(path_type=Path))
@click.option("--against", type=click.Path(path_type=Path, exists=True))
def main(record: Path, against: Path | None) -> None:
    outcomes = run()
    record.write_text(json.dumps(outcomes, indent=0), encoding="utf-8")
    refused = sum(":" in text for text in outcomes.values())
    print(f"{len(outcomes)} conversions, {refused} of them refused")
    if against is None:
        return
    before = json.loads(against.read_text(encoding="utf-8"))
    changed = [name for name in outcomes if before.get(name) != outcomes[name]]
    for name in changed[:SHOWN]:
        print(f"{name}: {before.get(name, 'none')[:200]} → {outcomes[name][:200]}")
    print(f"{len(changed)} differ")
    sys.exit(1 if changed else 0)


if __name__ == "__main__":
    main()
