"""Detectors: the custom operator computes what LiteRT does of it, and boxes are suppressed there."""

from __future__ import annotations

from contextlib import suppress
from pathlib import Path
from random import Random

import numpy as np
import pytest

import serde
from serde.bridges.litert import LitertWorker
from serde.bridges.mxnet import run as run_mxnet
from serde.errors import Unconvertible
from serde.formats.tflite.from_ir import from_ir
from serde.formats.tflite.io.read_flexbuffer import read_map
from testing.mxnet.cases import Refusal, _graph, _symbol_json
from testing.mxnet_live import live_mxnet
from testing.onnx_live import ir_of
from testing.onnx_live import run as run_graph
from testing.pt2.run import run_onnx
from testing.tflite.models import write
from testing.tflite.whole_models import BY_CLASS, CLASSES, EACH, MOST, TOGETHER, make_detection
from tests.mxnet.ops.test_nms import CASES
from tests.tflite.litert_live import run_both, why_not

needs_litert = pytest.mark.skipif(bool(why_not()), reason=why_not() or "there is one")


def write_model(options: bytes, classes: int, seed: int, folder: Path):
    """A file of the operator, and what it is fed with."""
    model, feeds = make_detection(options, classes, seed)
    (folder / "m.tflite").write_bytes(write(model))
    return folder / "m.tflite", feeds


@needs_litert
@pytest.mark.parametrize("options", [TOGETHER, BY_CLASS], ids=["together", "by class"])
@pytest.mark.parametrize("background", [0, 1])
def test_detections_are_those_of_litert(options, background, tmp_path: Path) -> None:
    worker = LitertWorker()
    for seed in range(4):
        path, feeds = write_model(options, CLASSES + background, seed, tmp_path)
        expected = worker.run(str(path), feeds, delegates=False)
        serde.save(serde.load(path), tmp_path / "m.onnx")
        got = run_onnx(tmp_path / "m.onnx", feeds)
        assert [a.shape for a in got] == [a.shape for a in expected]
        count = int(expected[3][0])
        assert int(got[3][0]) == count > 0
        shown = count * (1 if options is BY_CLASS else EACH)  # LiteRT leaves the rest as it is
        for a, b in zip(got[:3], expected[:3], strict=True):
            np.testing.assert_allclose(a[:, :shown], b[:, :shown], 1e-5, 1e-6)


@needs_litert
@pytest.mark.parametrize("options", [TOGETHER, BY_CLASS], ids=["together", "by class"])
def test_detections_are_the_same_in_mxnet_and_written_again(options, worker, tmp_path) -> None:
    live_mxnet()
    path, feeds = write_model(options, CLASSES, 0, tmp_path)
    graph = serde.load(path)
    serde.save(graph, tmp_path / "m.onnx")
    expected = run_onnx(tmp_path / "m.onnx", feeds)
    serde.save(graph, tmp_path / "m-symbol.json")
    serde.save(graph, tmp_path / "again.tflite")
    named = {v.name: a for v, a in zip(graph.inputs, feeds, strict=True)}
    for got in (run_mxnet(str(tmp_path / "m"), named),
                *run_both(worker, tmp_path / "again.tflite", feeds)):  # fmt: skip
        for a, b in zip(got, expected, strict=True):
            np.testing.assert_allclose(a, b, 1e-5, 1e-6)


def test_options_are_read_and_bad_ones_refused(tmp_path: Path) -> None:
    options = read_map(BY_CLASS)
    assert options["max_detections"] == MOST and options["use_regular_nms"] == 1
    assert options["y_scale"] == 10 and options["nms_iou_threshold"] == 0.4
    draws = Random(5)
    for _ in range(2000):
        damaged = bytearray(TOGETHER)
        for _ in range(draws.randint(1, 4)):
            damaged[draws.randrange(len(damaged))] = draws.randrange(256)
        with suppress(ValueError):
            read_map(bytes(damaged[: draws.randint(0, len(damaged))]))
    path, _ = write_model(TOGETHER[:-2], CLASSES, 0, tmp_path)
    with pytest.raises(Unconvertible, match="Write the model anew"):
        serde.load(path)
    path, _ = write_model(TOGETHER, CLASSES + 2, 0, tmp_path)
    with pytest.raises(Unconvertible, match="scores of 5 classes for num_classes=3"):
        serde.load(path)


@pytest.fixture(scope="module")
def worker() -> LitertWorker:
    """One process for all files."""
    return LitertWorker()


@needs_litert
@pytest.mark.parametrize("case", [c for c in CASES if not isinstance(c, Refusal)], ids=str)
def test_boxes_are_suppressed_as_by_mxnet(case, worker, tmp_path: Path) -> None:
    expected = case.oracle(case)
    serde.save(_graph(_symbol_json(case), case, "static"), tmp_path / "m.tflite")
    for got in run_both(worker, tmp_path / "m.tflite", case.inputs):
        for actual, wanted in zip(got, expected, strict=True):
            np.testing.assert_allclose(actual, wanted, 1e-5, 1e-6)


SUPPRESS = """g (float[{n},{k},4] b, float[{n},{c},{k}] s) => (int64[m,3] y)
    <int64[1] most = {{{most}}}, float[1] over = {{{over}}}, float[1] least = {{{least}}}> {{
    y = NonMaxSuppression<center_point_box={center}>(b, s, most, over{limit})
}}"""
LIMITED = ", least"


def make_scene(n: int, c: int, k: int, seed: int):
    """Boxes of any corners, some without an area, scores of which many are the same."""
    draws = np.random.default_rng(seed)
    boxes = draws.uniform(-1, 1, (n, k, 4)).astype(np.float32)
    boxes[:, ::5, 2] = boxes[:, ::5, 0]
    boxes[:, 1::7] = boxes[:, :1]
    boxes[:, 3, 0] = np.inf
    return boxes, draws.integers(-3, 9, (n, c, k)).astype(np.float32)


@needs_litert
@pytest.mark.parametrize(
    ("sizes", "center", "most", "over", "limit"),
    [
        ((1, 1, 30), 0, 30, 0.3, LIMITED), ((1, 1, 30), 1, 30, 0.3, LIMITED),
        ((2, 3, 20), 0, 4, 0.5, LIMITED), ((2, 3, 20), 1, 100, 0.0, ""),
        ((1, 2, 15), 0, 9, 1.0, LIMITED), ((2, 70, 12), 0, 9, 0.2, LIMITED),
    ],
)  # fmt: skip
def test_boxes_are_suppressed_as_by_onnx_runtime(
    sizes, center, most, over, limit, worker, tmp_path: Path
) -> None:
    n, c, k = sizes
    for least in (0, 8) if limit else (0,):  # no score is above 8
        form = {"n": n, "c": c, "k": k, "center": center, "most": most, "over": over}
        graph = ir_of(SUPPRESS.format(**form, limit=limit, least=least))
        path = tmp_path / f"{least}.tflite"
        serde.save(graph, path)
        assert "NON_MAX_SUPPRESSION_V4" in from_ir(graph).operators()
        for seed in range(3):
            feeds = dict(zip("bs", make_scene(n, c, k, seed), strict=True))
            expected = run_graph(graph, feeds)[0]
            assert len(expected) == 0 if least else len(expected) > n * c
            for got in run_both(worker, path, [*feeds.values()]):
                np.testing.assert_array_equal(got[0], expected)


def test_limits_that_are_computed_are_refused() -> None:
    body = SUPPRESS.format(n=1, c=1, k=9, most=3, over=0.5, least=0, center=0, limit="")
    body = body.replace("s) =>", "s, float[1] o) =>").replace("most, over)", "most, o)")
    with pytest.raises(Unconvertible, match="limits that are computed.*Give positive numbers"):
        from_ir(ir_of(body))
