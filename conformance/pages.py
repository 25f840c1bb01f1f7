"""Write the pages of results from the records: ``python -m conformance.pages``.

A page whose cells have no record yet stays as its last run wrote it: at the moment the node tests
in ONNX and in the frameworks (their importers are not recorded), the corpus of Relay modules and
MXNet's operators written back. docs/results/mxnet-kernels.md is written by the module of this
name, whose run compares builds of MXNet.
"""

from __future__ import annotations

from collections.abc import Iterator
from importlib import import_module
from pathlib import Path
from typing import NamedTuple

from . import record
from .options import FAMILIES

CONSUMERS = ("onnxruntime", "openvino", "tract", "mnn", "ncnn")
DOCS = Path(__file__).parents[1] / "docs"


class Page(NamedTuple):
    """The function that makes the lines of a page, the cells whose records it takes, and more."""

    place: str
    cells: tuple[str, ...] = ()
    arguments: tuple[str, ...] = ()


PAGES = {
    "results/node-tests.md": Page("onnx_nodes:onnx_page", ("onnx-nodes/onnx", "onnx-models/onnx")),
    **{
        f"results/node-tests-{target}.md": Page(
            "onnx_nodes:framework_page",
            (f"onnx-nodes-constant/{target}", f"onnx-nodes-file/{target}-importer"),
            (target,),
        )
        for target in ("mxnet", "relay", "relax")
    },
    "results/node-tests-torch.md": Page(
        "onnx_nodes:framework_page",
        ("onnx-nodes-constant/torch", "onnx-nodes-constant/onnx2torch"),
        ("torch",),
    ),
    "results/node-tests-litert.md": Page(
        "onnx_nodes:litert_page",
        ("onnx-nodes-constant/litert", "onnx-nodes-first/litert"),
        ("litert",),
    ),
    "results/opsets.md": Page("opsets:page", ("operators/opsets",)),
    "results/mxnet-cases.md": Page("operators:mxnet_page", ("mxnet-operators/mxnet",)),
    "results/relay-corpus.md": Page("relay_corpus:page", ("relay-corpus/onnx",)),
    "results/tflite-corpus.md": Page(
        "tflite_round_trips:page",
        tuple(f"tflite-corpus/{t}" for t in ("onnx", "tflite", "torch", "mxnet", "relay")),
    ),
    "results/networks.md": Page("networks:page", ("networks/onnx",)),
    "results/networks-litert.md": Page(
        "litert_peer:page",
        ("networks/litert", "networks/onnx2tf", "relay-corpus/litert", "onnx-models/litert"),
    ),
    "results/frames.md": Page("frames.cells:page", ("mxnet-frames/onnx",)),
    "results/relay-networks.md": Page("relay_networks:page", ("relay-networks/onnx",)),
    "results/consumers.md": Page(
        "consumer_models:page",
        (
            "models/consumers",
            *(f"{s}/{c}" for c in CONSUMERS for s in ("onnx-nodes-constant", "relay-corpus")),
        ),
    ),
    "results/reduced-precision.md": Page("reduced_precision:page", ("models/reduced-precision",)),
    "results/optimizers.md": Page("optimizers:page", ("models/optimizers",)),
    "results/torch-checkpoints.md": Page("torch_checkpoints:page", ("torch-checkpoints/torch",)),
    "results/exported-programs.md": Page("exported_programs:page", ("pt2-models/onnx",)),
    "results/processors.md": Page("processors:page", ("models/processors",)),
    "results/relax.md": Page("relax_models:page", ("models/relax",)),
    "results/directions.md": Page("directions:page", ("models/directions",)),
    "results/round-trips.md": Page("round_trips:page", ("models/round-trips",)),
    "results/partitions.md": Page("partitions:page", ("models/partitions",)),
    "results/tvm-partitions.md": Page("tvm_partitions:page", ("relay-networks/partitions",)),
    "results/provider-partitions.md": Page("provider_partitions:page", ("models/providers",)),
    "results/zoo.md": Page(
        "zoo.page:page",
        tuple(
            f"{library}/{target}"
            for target in ("onnx", "litert")
            for library in ("gluoncv", "gluonnlp", "gluonts")
        ),
    ),
    "results/mxnet-2.md": Page("mxnet_second:page", ("mxnet-2/onnx",)),
    "results/mxnet-releases.md": Page(
        "mxnet_releases:page",
        (
            "onnx-nodes-constant/mxnet-releases",
            "onnx-nodes-constant/mxnet",
            "mxnet-operators/mxnet-releases",
            "networks/mxnet-releases",
            "mxnet-releases/onnx",
        ),
    ),
    "results/torch-models.md": Page(
        "torch_models:page", ("models/torch", "relay-corpus/torch", "onnx-models/torch")
    ),
    "results/options.md": Page(
        "options.page:page", tuple(f"options/{family}" for family in FAMILIES)
    ),
    "results/mutations.md": Page("mutations:page"),
    "results/array-api.md": Page("array_api:page"),
    "results/gpu.md": Page("gpu:page", ("gpu",)),
    "results/fuzzing.md": Page("fuzz:page", ("fuzzing", "fuzzing-campaign")),
    "results/differential.md": Page("differential.page:page", ("differential",)),
    "reference/backends.md": Page("backend_forms:page"),
    "reference/onnxruntime.md": Page("runtime_forms:page"),
}


def is_recorded(name: str) -> bool:
    """Whether all cells of a page have a record."""
    return all(record.path_of(cell).exists() for cell in PAGES[name].cells)


def lines(name: str) -> Iterator[str]:
    """The lines of a page, from the records."""
    page = PAGES[name]
    module, _, function = page.place.partition(":")
    make = getattr(import_module(f"conformance.{module}"), function)
    yield from make(*map(record.rows, page.cells), *page.arguments)


def main() -> None:
    """Write every page that has its records."""
    for name in PAGES:
        if is_recorded(name):
            (DOCS / name).write_text("\n".join(lines(name)), encoding="utf-8")
        else:
            print(f"{name} stays: {', '.join(PAGES[name].cells)} are not all recorded")


if __name__ == "__main__":
    main()
