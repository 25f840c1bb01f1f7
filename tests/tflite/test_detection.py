"""The custom operator of detectors computes what LiteRT does of it."""

from __future__ import annotations

from contextlib import suppress
from pathlib import Path
from random import Random

import numpy as np
import pytest

import serde
from serde.bridges.litert import LitertWorker
from serde.errors import Unconvertible
from serde.formats.tflite.io.read_flexbuffer import read_map
from testing.pt2.run import run_onnx
from testing.tflite.models import write
from testing.tflite.whole_models import BY_CLASS, CLASSES, EACH, MOST, TOGETHER, make_detection
from tests.tflite.litert_live import why_not

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
