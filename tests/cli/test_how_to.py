"""The commands and the code of the pages for users run as they are printed."""

from __future__ import annotations

import json
import shutil
import subprocess
import sys
import tarfile
from pathlib import Path

import numpy as np
import onnx
import pytest

import serde
from serde.bridges.int8_products import adds_int8_exactly
from testing.mxnet.int8 import REASON
from testing.mxnet_live import live_mxnet
from testing.onnx_live import model_of
from tests.cli import pages
from tests.cli.pages import run_page
from tests.mxnet import label_networks
from tests.tflite.litert_live import why_not as why_no_litert
from tests.torch.torch_live import why_not as why_no_torch

ROOT = Path(__file__).resolve().parents[2]


def nothing(folder):
    """A page that names no other files than the examples."""


def need_litert(folder):
    """A page that runs files in LiteRT."""
    if reason := why_no_litert():
        pytest.skip(reason)


def need_torch(folder):
    """A page that runs written modules."""
    if reason := why_no_torch():
        pytest.skip(reason)


def make_detector(folder):
    """A detector as SageMaker stores it: ``model.tar.gz`` with the symbol that was trained."""
    mx = live_mxnet()
    symbol = label_networks.detector(mx.sym)
    shapes, _, _ = symbol.infer_shape(data=(1, 3, 32, 32), label=(1, 2, 5))
    rng = np.random.default_rng(0)
    arrays = {
        f"arg:{n}": mx.nd.array(rng.standard_normal(s) * 0.3)
        for n, s in zip(symbol.list_arguments(), shapes, strict=True)
        if n not in ("data", "label")
    }
    inner = folder / "packed"
    inner.mkdir()
    (inner / "model_algo_1-symbol.json").write_text(symbol.tojson())
    mx.nd.save(str(inner / "model_algo_1-0000.params"), arrays)
    (inner / "hyperparams.json").write_text(json.dumps({"num_classes": "3"}))
    with tarfile.open(folder / "model.tar.gz", "w:gz") as tar:
        for file in sorted(inner.iterdir()):
            tar.add(file, file.name)
    shutil.rmtree(inner)


def quantize_digits(folder):
    """The example, as MXNet quantizes it without calibration."""
    mx = live_mxnet()
    from mxnet.contrib.quantization import quantize_model

    symbol, arguments, states = mx.model.load_checkpoint("examples/digits/digits", 10)
    symbol, arguments, states = quantize_model(
        symbol.get_backend_symbol("MKLDNN_QUANTIZE"), arguments, states, ctx=mx.cpu(),
        label_names=["softmax_label"], calib_mode="none", quantized_dtype="auto", logger=None,
    )  # fmt: skip
    symbol.get_backend_symbol("MKLDNN_QUANTIZE").save("int8-symbol.json")
    arrays = {f"arg:{n}": v for n, v in arguments.items()}
    mx.nd.save("int8-0000.params", arrays | {f"aux:{n}": v for n, v in states.items()})


def name_files(folder):
    """The example under the names of a page about any model."""
    for file in ("digits-symbol.json", "digits-0010.params"):
        shutil.copy(f"examples/digits/{file}", file.replace("digits", "model"))
    serde.convert("model", "model.onnx", inputs={"data": (1, 1, 8, 8)})


def copy_program(folder):
    """A small program that PyTorch saved, and what it computed."""
    for file in (ROOT / "tests/data/pt2").glob("network.*"):
        shutil.copy(file, file.name)


def write_detector(folder):
    """A voice detector of one chunk: its state has the samples second, its rate has none."""
    body = """vad (float[1,8] x, float[2,1,8] state, float rate) => (float[1,8] y) {
        s = ReduceMean <axes = [0], keepdims = 0> (state)
        h = Add (x, s)  y = Mul (h, rate) }"""
    onnx.save(model_of(body, 13, 8), "vad.onnx")
    body = """distances (float[5,8] rows) => (float[5,5] scores) {
        columns = Transpose(rows)  scores = MatMul(rows, columns) }"""
    onnx.save(model_of(body, 13, 8), "distances.onnx")


def write_fixed_batch(folder):
    """A model that three boxes of its own belong to."""
    model = model_of("g (float[N,4] x) => (float[A,8] y) { y = Concat<axis = 1>(x, c) }", 13, 8)
    boxes = np.arange(12, dtype=np.float32).reshape(3, 4)
    model.graph.initializer.append(onnx.numpy_helper.from_array(boxes, "c"))
    onnx.save(model, "detector.onnx")


# The pages that are run, with what makes the files that they name.
PAGES = {
    "how-to/archives-urls-and-streams": nothing,
    "how-to/change-an-onnx-model": write_detector,
    "how-to/compare-two-models": nothing,
    "how-to/consumers": name_files,
    "how-to/custom-operators": nothing,
    "how-to/dynamic-shapes": write_fixed_batch,
    "how-to/fix-a-failure": nothing,
    "how-to/join-models": nothing,
    "how-to/large-and-untrusted-files": nothing,
    "how-to/look-into-a-model": nothing,
    "how-to/migrate-many-models": nothing,
    "how-to/partition-a-model": nothing,
    "how-to/prepare-images": nothing,
    "how-to/quantized-models": quantize_digits,
    "how-to/read-a-report": nothing,
    "how-to/reduced-precision": name_files,
    "how-to/read-pytorch": copy_program,
    "how-to/run-a-model": nothing,
    "how-to/trace-python-code": nothing,
    "how-to/write-pytorch": need_torch,
    "how-to/read-tflite": nothing,
    "how-to/write-tflite": nothing,
    "how-to/verify-a-conversion": nothing,
    "how-to/move-from-mx-onnx": nothing,
    "tutorial/convert-a-model": nothing,
    "tutorial/edge-device": nothing,
    "tutorial/first-operator": nothing,
    "tutorial/gluon-notebook": nothing,
    "tutorial/int8-on-litert": need_litert,
    "tutorial/old-mxnet-model": nothing,
    "tutorial/put-code-into-a-model": nothing,
    "tutorial/pytorch-to-mxnet": copy_program,
    "tutorial/relay-to-relax": nothing,
    "tutorial/sagemaker-detector": make_detector,
    "tutorial/sixty-models": nothing,
    "tutorial/tflite-to-onnx": need_litert,
}
APART = {"how-to/move-from-mx-onnx"}  # it changes MXNet for the whole process
ELSEWHERE = {  # pages of which other tests run the blocks, or compare them with the code they quote
    "how-to/add-a-format": "cli/test_docs.py",
    "how-to/add-a-pass": "rewrite/test_patterns.py",
    "how-to/add-a-target": "plugin/test_toy_npu.py",
    "how-to/add-an-operator": "cli/test_docs.py",
    "how-to/convert-between-formats": "cli/test_docs.py",
    "how-to/write-a-front-end": "frontends/test_toy.py",
    "tutorial/fine-tune-in-pytorch": "torch/test_tutorial.py",
}


DOCS = ROOT / "docs"
GUIDES = sorted(p for folder in ("how-to", "tutorial") for p in (DOCS / folder).glob("*.md"))


def test_every_page_is_run():
    assert {str(p.relative_to(DOCS).with_suffix("")) for p in GUIDES} == {*PAGES, *ELSEWHERE}
    for page, test in ELSEWHERE.items():
        assert page.partition("/")[2] in (ROOT / "tests" / test).read_text()


@pytest.mark.parametrize("page", [*GUIDES, ROOT / "README.md"], ids=lambda page: page.stem)
def test_every_block_is_run_or_tells_why_not(page):
    """Text is what the code above it prints, or has a comment; no block has no language."""
    blocks = pages.blocks_of(page)
    for block, before in zip(blocks, [None, *blocks], strict=False):
        assert block.mark == "" or block.is_left_out or block.saved_as, block.mark
        assert block.language in {*pages.RUN, "text", "toml"}, block.text
        if block.language == "text" and not block.mark:
            assert block.is_next and before.language in pages.RUN, block.text


@pytest.mark.parametrize("name", PAGES)
def test_a_page_runs(name, tmp_path, monkeypatch):
    live_mxnet()
    if name == "how-to/quantized-models" and not adds_int8_exactly():
        pytest.skip(REASON)
    shutil.copytree(
        ROOT / "examples", tmp_path / "examples", ignore=shutil.ignore_patterns("*.onnx")
    )
    monkeypatch.chdir(tmp_path)
    PAGES[name](tmp_path)
    page = DOCS / f"{name}.md"
    if name not in APART:
        run_page(page)
        return
    command = [sys.executable, pages.__file__, page]
    done = subprocess.run(command, capture_output=True, text=True)
    assert done.returncode == 0, done.stderr
