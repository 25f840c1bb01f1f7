"""Written modules on a GPU, which need not be here: what runs there, and what came of it.

    python -m conformance.gpu write FOLDER      the modules, with their inputs and outputs
    python conformance/gpu_script.py FOLDER RESULTS.json      there, with PyTorch and torchvision
    python -m conformance.gpu record RESULTS.json

Large weights are not in the folder: the script draws them.
"""

from __future__ import annotations

import json
import sys
import tempfile
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any

import numpy as np

import serde
from serde.errors import SerdeError
from serde.formats.torch.io.safetensors import read_header
from testing import networks
from testing.node_cases import all_cases, freeze

from . import record
from .options.cells import run, write
from .options.models import open_model
from .options.precision import BOUNDS

NETWORKS = ("alexnet", "densenet121", "inceptionv3", "mobilenetv2_1.0", "resnet18_v1",
            "resnet50_v1", "squeezenet1.1", "vgg11_bn", "lstm_ntc_2", "gru_ntc_2",
            "bert_interleaved")  # fmt: skip
LARGE = 1 << 16  # bytes of an array that is drawn there
CLOSE = 1e-3  # of the largest number of an output
CELL = "gpu"


def write_network(name: str, folder: Path) -> None:
    """The source of a network, its small arrays and what is needed to draw the others."""
    folder.mkdir(parents=True)
    network = networks.build(name)
    symbol, _ = networks.export(network, folder)
    serde.convert(symbol, folder / "net.py", inputs=networks.shapes(network))
    keys = json.loads((folder / "net.names.json").read_text())
    described: dict[str, Any] = {"name": name}
    if network.kind == "vision":
        described["image"] = networks.VISION[name]
    else:
        np.savez(folder / "inputs.npz", **network.inputs)
    names = [k for p in network.block.collect_params() for k in keys.get(p, ())]
    described["order"] = list(dict.fromkeys(names))
    described |= drop_large_arrays(folder / "net.safetensors")
    (folder / "network.json").write_text(json.dumps(described))
    for path in folder.glob(f"{name}-*"):
        path.unlink()


def drop_large_arrays(path: Path) -> dict[str, Any]:
    """Take large arrays out of a safetensors file; the shapes of those."""
    with open(path, "rb") as file:
        header, data = dict(read_header(file, path)), file.read()
    kept: dict[str, Any] = {"__metadata__": header.pop("__metadata__")}
    small, drawn = b"", {}
    for name, entry in header.items():
        begin, end = entry["data_offsets"]
        if end - begin > LARGE:
            drawn[name] = entry["shape"]
            continue
        kept[name] = {**entry, "data_offsets": [len(small), len(small) + end - begin]}
        small += data[begin:end]
    text = json.dumps(kept).encode()
    path.write_bytes(len(text).to_bytes(8, "little") + text + small)
    return {"drawn": drawn}


def write_case(
    folder: Path, model: Any, feeds: Sequence[Any], expected: Sequence[Any], bound: float
) -> None:
    """The source of a model with inputs and outputs, unless PyTorch or NumPy has no such types."""
    arrays = {f"i{at}": np.asarray(a) for at, a in enumerate(feeds)}
    arrays |= {f"o{at}": np.asarray(a) for at, a in enumerate(expected)}
    if any(a.dtype.kind not in "biufc" for a in arrays.values()):
        return
    with tempfile.TemporaryDirectory() as place:
        try:
            serde.convert(model, Path(place) / "net.py", to_format="torch")
        except SerdeError:
            return
        files = {p: (Path(place) / p).read_bytes() for p in ("net.py", "net.safetensors")}
    if sum(a.nbytes for a in arrays.values()) + len(files["net.safetensors"]) > 8 * LARGE:
        return
    folder.mkdir(parents=True)
    for name, data in files.items():
        (folder / name).write_bytes(data)
    np.savez_compressed(folder / "arrays.npz", **arrays)
    described = {"i": len(feeds), "o": len(expected), "bound": bound}
    (folder / "case.json").write_text(json.dumps(described))


def write_node_tests(folder: Path) -> None:
    """ONNX's node tests that can be written and are not drawn at random."""
    for case in all_cases():
        if case.is_random:
            continue
        test = freeze(case) or case
        feeds, expected = test.data[0]
        bound = max(CLOSE, case.rtol)
        if not any(isinstance(a, list | type(None)) for a in (*feeds, *expected)):
            write_case(folder / case.name, test.model, feeds, expected, bound)


def write_float16(folder: Path) -> None:
    """Models of ``options/precision`` in float16, which a GPU rounds to after each operation."""
    for name, row in record.rows("options/precision").items():
        if row.get("--fp16") != "right":
            continue
        model = open_model(name)
        expected = run(model.proto, model.feeds)
        with tempfile.TemporaryDirectory() as place:
            half = Path(place) / "half.onnx"
            serde.convert(write(model, Path(place)), half, fp16=True)
            feeds = [*model.feeds.values()]
            write_case(folder / name.replace("/", "-"), half, feeds, expected, BOUNDS["fp16"])


def main() -> None:
    """Write the folder, or record what came of it."""
    command, place = sys.argv[1], Path(sys.argv[2])
    if command == "record":
        record.write(CELL, json.loads(place.read_text()))
        return
    for name in NETWORKS:
        write_network(name, place / "networks" / name)
    write_node_tests(place / "nodes")
    write_float16(place / "float16")


HEADER = """# Written modules on a GPU

Made by `python -m conformance.pages` from what `conformance/gpu_script.py` found on one {device}
with PyTorch {torch}, where products of float32 are computed in float32.

## Networks

How far outputs, and the gradients and weights of a step of training, are off in float32 on the
processor and on the GPU, from float64 on the processor: the largest difference as a share of the
array's largest number. Rounding alone moves the gradients of deep networks with batch norms far,
and one number that changes its sign before a ReLU moves others by all of it. Times are of {batch}
samples, beside the architecture as a person writes it (torchvision's or the script's) with the
same weights, in turns: the median of the ratios.

| network | forward: processor | GPU | step: processor | GPU | ms | × by hand | step | × by hand |
| --- | --: | --: | --: | --: | --: | --: | --: | --: |
"""
FILES = {
    "nodes": ("ONNX's node tests", f"{CLOSE:g} of the largest number"),
    "float16": ("Models of `options/precision` after `--fp16`",
                f"{BOUNDS['fp16']:g} of the largest number of the model in float32"),
}  # fmt: skip


def page(known: Mapping[str, Any]) -> Iterator[str]:
    """The lines of docs/results/gpu.md."""
    yield HEADER.format(**known).rstrip()
    for name, row in known["networks"].items():
        errors = [f"{row[part][device][0]:.1e}" for part in ("forward", "step")
                  for device in ("cpu", "cuda")]  # fmt: skip
        times = [f"{row[part][key]:.2f}" for part in ("forward ratio", "step ratio")
                 for key in ("ms", "ratio")]  # fmt: skip
        yield f"| {name} | {' | '.join(errors + times)} |"
    for kind, (title, bound) in FILES.items():
        rows = known[kind]
        failures = {name: text for name, text in rows.items() if text}
        yield ""
        yield f"## {title}"
        yield ""
        yield f"Of {len(rows):,} modules, {len(rows) - len(failures):,} are within {bound}."
        yield from (f"* `{name}`: {text}" for name, text in failures.items())
    yield ""


if __name__ == "__main__":
    main()
