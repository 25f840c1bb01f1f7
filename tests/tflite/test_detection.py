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
from testing.tflite.models import Case, Operand, Result, build, write
from tests.tflite.litert_live import why_not

needs_litert = pytest.mark.skipif(bool(why_not()), reason=why_not() or "there is one")
# Maps that the flexbuffers of Google's package flatbuffers wrote.
TOGETHER = bytes.fromhex(
    "6d61785f646574656374696f6e73006d61785f636c61737365735f7065725f646574656374696f6e00757365"
    "5f726567756c61725f6e6d73006e6d735f73636f72655f7468726573686f6c64006e6d735f696f755f746872"
    "6573686f6c64006e756d5f636c617373657300795f7363616c6500785f7363616c6500685f7363616c650077"
    "5f7363616c65000a117e8e4257326910212a00000c0000000000000001000000000000000a00000000000000"
    "0000000000001440020000000000000006000000000000009a9999999999d93f333333333333d33f03000000"
    "0000000000000000000000000000000000001440000000000000244000000000000024400f07070f0f076b0f"
    "0f0f5a2701"
)
BY_CLASS = bytes.fromhex(
    "6d61785f646574656374696f6e73006d61785f636c61737365735f7065725f646574656374696f6e00646574"
    "656374696f6e735f7065725f636c617373007573655f726567756c61725f6e6d73006e6d735f73636f72655f"
    "7468726573686f6c64006e6d735f696f755f7468726573686f6c64006e756d5f636c617373657300795f7363"
    "616c6500785f7363616c6500685f7363616c6500775f7363616c65000b781294a44358336a11222b00000000"
    "0f0000000000000001000000000000000b000000000000000500000000000000000000000000144002000000"
    "0000000006000000000000009a9999999999d93f333333333333d33f03000000000000000100000000000000"
    "000000000000144000000000000024400000000000002440070f07070f0f076b0f0f0f632701"
)
CLASSES, MOST, EACH = 3, 6, 2  # of both maps


def write_model(options: bytes, classes: int, seed: int, folder: Path):
    """A file of the operator, and what it is fed with."""
    draws = np.random.default_rng(seed)
    anchors = np.concatenate([draws.random((30, 2)), draws.uniform(0.05, 0.5, (30, 2))], 1)
    case = Case("ADD", [
        Operand(draws.standard_normal((1, 30, 4)).astype(np.float32)),
        Operand(draws.random((1, 30, classes)).astype(np.float32)),
        Operand(anchors.astype(np.float32), is_constant=True),
    ], [Result()] * 4)  # fmt: skip
    model = build(case)
    model["operator_codes"] = [{"builtin_code": 32, "custom_code": "TFLite_Detection_PostProcess"}]
    (operator,) = model["subgraphs"][0]["operators"]
    model["subgraphs"][0]["operators"] = [
        {"inputs": operator["inputs"], "outputs": operator["outputs"],
         "custom_options": [*options]}
    ]  # fmt: skip
    (folder / "m.tflite").write_bytes(write(model))
    return folder / "m.tflite", case.feeds()


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
