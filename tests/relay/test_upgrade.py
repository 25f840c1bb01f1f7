"""Modules as older releases of TVM wrote them mean what their form of today does."""

from __future__ import annotations

import json
from dataclasses import replace

import numpy as np
import pytest

from serde.errors import Unconvertible, UsageError
from serde.formats.onnx.writer import to_proto
from serde.formats.relay.decode import decode
from serde.formats.relay.json.reader import parse_json
from serde.formats.relay.json.writer import to_json
from serde.formats.relay.text.parser import parse_text
from serde.formats.relay.text.printer import print_text
from serde.formats.relay.to_ir import module_graph, to_ir
from serde.legalize.convert import lower_to
from serde.passes import tidy
from testing.onnx_live import run_model

IMAGE = "%x: Tensor[(1, 2, 5, 6), float32]"
BYTES = "%x: Tensor[(2, 4), uint8]"
PAIR = f"{BYTES}, %y: Tensor[(2, 4), uint8]"
ROWS = "%x: Tensor[(1, 5, 6), float32], %n: Tensor[(1), int32]"
FORMS = {  # what: parameters, the release, the form then and the form now
    "pad": (IMAGE, "0.7", "nn.pad(%x, pad_value=2.5f, pad_width=[[0, 0], [0, 0], [1, 2], [0, 1]])",
            "nn.pad(%x, 2.5f, pad_width=[[0, 0], [0, 0], [1, 2], [0, 1]])"),
    "pad-default": (IMAGE, "", "nn.pad(%x, pad_width=[[0, 0], [0, 0], [1, 2], [0, 1]])",
                    "nn.pad(%x, 0f, pad_width=[[0, 0], [0, 0], [1, 2], [0, 1]])"),
    "resize-corners": (IMAGE, "0.6", "image.resize(%x, size=[7, 9])",
                       'image.resize2d(%x, size=[7, 9], coordinate_transformation_mode="align_corners")'),
    "resize-0.6": (IMAGE, "0.6", "image.resize(%x, size=[7, 9], align_corners=False)",
                   'image.resize2d(%x, size=[7, 9], coordinate_transformation_mode="asymmetric")'),
    "resize-nearest": (
        IMAGE, "0.6",
        'image.resize(%x, size=[7, 9], method="nearest_neighbor", align_corners=False)',
        'image.resize2d(%x, size=[7, 9], method="nearest_neighbor", '
        'coordinate_transformation_mode="asymmetric", rounding_method="")'),
    "resize-0.7": (IMAGE, "0.7", "image.resize(%x, size=[7, 9])", "image.resize2d(%x, size=[7, 9])"),
    "resize-cubic": (
        IMAGE, "0.7", 'image.resize(%x, size=[7, 9], method="bicubic", '
        'coordinate_transformation_mode="asymmetric")',
        'image.resize2d(%x, size=[7, 9], method="cubic", coordinate_transformation_mode="asymmetric")'),
    "resize3d": ("%x: Tensor[(1, 2, 3, 4, 5), float32]", "0.7",
                 'image.resize3d(%x, size=[4, 5, 7], method="trilinear")',
                 "image.resize3d(%x, size=[4, 5, 7])"),
    "adaptive": (IMAGE, "0.6", "contrib.adaptive_avg_pool2d(%x, output_size=[2, 3])",
                 "nn.adaptive_avg_pool2d(%x, output_size=[2, 3])"),
    "size": (IMAGE, "0.6", 'contrib.ndarray_size(%x, dtype="int32")', 'ndarray_size(%x, dtype="int32")'),
    "reshape": (IMAGE, "0.7", "reshape(%x, newshape=[0, -1], reverse=False)",
                "reshape(%x, newshape=[0, -1])"),
    "reverse-reshape": (IMAGE, "0.6", "_contrib_reverse_reshape(%x, newshape=[-1, 0], reverse=True)",
                        "contrib_reverse_reshape(%x, newshape=[-1, 0])"),
    "matmul": ("%x: Tensor[(2, 3, 3), float32], %y: Tensor[(2, 3, 3), float32]", "0.7",
               "nn.batch_matmul(%x, %y)", "nn.batch_matmul(%x, %y, transpose_b=True)"),
    "matmul-told": ("%x: Tensor[(2, 3, 3), float32], %y: Tensor[(2, 3, 3), float32]", "0.8",
                    "nn.batch_matmul(%x, %y)", "nn.batch_matmul(%x, %y, transpose_b=False)"),
    "matmul-by-shape": ("%x: Tensor[(2, 3, 4), float32], %y: Tensor[(2, 5, 4), float32]", "",
                        "nn.batch_matmul(%x, %y)", "nn.batch_matmul(%x, %y, transpose_b=True)"),
    "matmul-plain": ("%x: Tensor[(2, 3, 4), float32], %y: Tensor[(2, 4, 5), float32]", "",
                     "nn.batch_matmul(%x, %y)", "nn.batch_matmul(%x, %y, transpose_b=False)"),
    "transpose": ("%x: Tensor[(1, 3, 4, 4), float32], %w: Tensor[(3, 3, 2, 2), float32]", "0.11",
                  'nn.conv2d_transpose(%x, %w, kernel_layout="OIHW")', "nn.conv2d_transpose(%x, %w)"),
    "transpose-told": ("%x: Tensor[(1, 3, 4, 4), float32], %w: Tensor[(3, 3, 2, 2), float32]", "0.12",
                       'nn.conv2d_transpose(%x, %w, kernel_layout="OIHW")',
                       "nn.conv2d_transpose(%x, transpose(%w, axes=[1, 0, 2, 3]))"),
    "transpose-by-shape": ("%x: Tensor[(1, 4, 4, 3), float32], %w: Tensor[(2, 2, 3, 5), float32]", "",
                           'nn.conv2d_transpose(%x, %w, data_layout="NHWC", kernel_layout="HWOI")',
                           'nn.conv2d_transpose(%x, %w, data_layout="NHWC", kernel_layout="HWIO")'),
    "transpose-1d": ("%x: Tensor[(1, 3, 4), float32], %w: Tensor[(3, 5, 2), float32]", "",
                     'nn.conv1d_transpose(%x, %w, kernel_layout="OIW")', "nn.conv1d_transpose(%x, %w)"),
    "scatter": ("%x: Tensor[(3, 3), float32], %i: Tensor[(2, 3), int64], %u: Tensor[(2, 3), float32]",
                "0.11", "scatter(%x, %i, %u, axis=0)", "scatter_elements(%x, %i, %u, axis=0)"),
    "scatter_add": ("%x: Tensor[(3, 3), float32], %i: Tensor[(2, 3), int64], %u: Tensor[(2, 3), float32]",
                    "0.11", "scatter_add(%x, %i, %u, axis=0)",
                    'scatter_elements(%x, %i, %u, axis=0, reduction="add")'),
    "quantize": ("%x: Tensor[(2, 4), float32]", "0.6",
                 'qnn.quantize(%x, output_zero_point=3, output_scale=0.1f, out_dtype="int8")',
                 'qnn.quantize(%x, 0.1f, 3, out_dtype="int8")'),
    "dequantize": (BYTES, "0.6", "qnn.dequantize(%x, input_zero_point=3, input_scale=0.1f)",
                   "qnn.dequantize(%x, 0.1f, 3)"),
    "requantize": (BYTES, "0.6", "qnn.requantize(%x, input_scale=0.1f, input_zero_point=3, "
                   'output_scale=0.3f, output_zero_point=5, out_dtype="int8")',
                   'qnn.requantize(%x, 0.1f, 3, 0.3f, 5, rounding="UPWARD", out_dtype="int8")'),
    **{f"qnn-{op}": (PAIR, "0.6", f"qnn.{op}(%x, %y, lhs_scale=0.1f, lhs_zero_point=3, rhs_scale=0.2f, "
                     "rhs_zero_point=4, output_scale=0.3f, output_zero_point=5)",
                     f"qnn.{op}(%x, %y, 0.1f, 3, 0.2f, 4, 0.3f, 5)") for op in ("add", "mul")},
    "qnn-dense": (PAIR, "0.6", "qnn.dense(%x, %y, units=2, input_zero_point=3, kernel_zero_point=4, "
                  'input_scale=0.1f, kernel_scale=0.2f, out_dtype="int32")',
                  'qnn.dense(%x, %y, 3, 4, 0.1f, 0.2f, units=2, out_dtype="int32")'),
    "qnn-conv2d": ("%x: Tensor[(1, 2, 5, 6), uint8], %w: Tensor[(3, 2, 3, 3), uint8]", "0.6",
                   "qnn.conv2d(%x, %w, input_zero_point=3, kernel_zero_point=4, input_scale=0.1f, "
                   'kernel_scale=0.2f, padding=[1, 1], out_dtype="int32")',
                   'qnn.conv2d(%x, %w, 3, 4, 0.1f, 0.2f, padding=[1, 1], out_dtype="int32")'),
    "qnn-concatenate": (PAIR, "0.6", "qnn.concatenate((%x, %y), input_scales=[0.1f, 0.2f], "
                        "input_zero_points=[3, 4], output_scale=0.2f, output_zero_point=4, axis=1)",
                        "qnn.concatenate((%x, %y), (0.1f, 0.2f), (3, 4), 0.2f, 4, axis=1)"),
    "nms": (ROWS, "0.6", "vision.non_max_suppression(%x, %n, max_output_size=3, iou_threshold=0.4f, "
            "return_indices=False)",
            "vision.non_max_suppression(%x, %n, %n, 3, 0.4f, return_indices=False)"),
    "nms-0.7": (ROWS, "0.7", "vision.non_max_suppression(%x, %n, %n, max_output_size=3, "
                "return_indices=False)",
                "vision.non_max_suppression(%x, %n, %n, 3, 0.5f, return_indices=False)"),
    "valid": (ROWS, "0.7", "vision.get_valid_counts(%x, score_threshold=0.3f)",
              "vision.get_valid_counts(%x, 0.3f)"),
}  # fmt: skip


def convert(parameters: str, body: str, tvm: str = "0.17"):
    module = replace(parse_text(f"def @main({parameters}) {{ {body} }}"), tvm=tvm)
    return lower_to(tidy(to_ir(module_graph(module))), 21)


def feeds_of(graph) -> dict[str, np.ndarray]:
    rng = np.random.default_rng(0)
    feeds = {}
    for value in graph.inputs:
        kind = value.dtype.numpy
        is_integer = kind.kind in "iu"
        feeds[value.name] = (
            rng.integers(0, 3, value.shape) if is_integer else rng.random(value.shape)
        ).astype(kind)
    return feeds


@pytest.mark.parametrize("name", FORMS)
def test_means_what_it_meant(name):
    parameters, tvm, then, now = FORMS[name]
    old, new = convert(parameters, then, tvm), convert(parameters, now)
    feeds = feeds_of(new)
    expected = run_model(to_proto(new), feeds)
    assert any(y.any() for y in expected)
    for a, b in zip(run_model(to_proto(old), feeds), expected, strict=True):
        np.testing.assert_array_equal(a, b)


SQUARE = "%x: Tensor[(2, 3, 3), float32], %y: Tensor[(2, 3, 3), float32]"
KERNEL = "%x: Tensor[(1, 3, 4, 4), float32], %w: Tensor[(3, 3, 2, 2), float32]"


@pytest.mark.parametrize(
    ("parameters", "body", "reason"),
    [
        (SQUARE, "nn.batch_matmul(%x, %y)", "tvm='0.17'"),
        (SQUARE.replace(" 3", " ?"), "nn.batch_matmul(%x, %y)", "TVM up to 0.7 transposed"),
        (KERNEL, 'nn.conv2d_transpose(%x, %w, kernel_layout="OIHW")', "TVM up to 0.11 meant IOHW"),
        (BYTES, "qnn.dequantize(%x, input_scale=0.1f)", "3 belong"),
        (ROWS, "vision.non_max_suppression(%x, %n)", "vision.non_max_suppression"),
    ],
)
def test_what_nothing_tells_is_refused(parameters, body, reason):
    with pytest.raises(Unconvertible) as caught:
        convert(parameters, body, "")
    assert reason in str(caught.value)


def test_the_release_may_be_given(tmp_path):
    path = tmp_path / "old.relay"
    path.write_text(f"def @main({SQUARE}) {{ nn.batch_matmul(%x, %y) }}")
    for tvm, transposed in (("0.7", True), ("0.17", False)):
        graph = tidy(to_ir(decode(path, tvm=tvm)))
        assert ("Transpose" in {n.op for n in graph.nodes}) == transposed
    with pytest.raises(UsageError, match="no release"):
        decode(path, tvm="new")


def test_text_tells_its_release():
    constant = print_text(parse_text("def @main() { arange(0i64, 4i64, 2i64) }"))
    assert parse_text(constant.replace('"tvm_version": "', '"tvm_version": "0.7.')).tvm
    assert parse_text("v0.0.4\nfn (%x) { %x }").tvm == "0.6"
    assert parse_text("fn (%x) { %x }").tvm == ""


def aged_attributes(text: str, tvm: str, key: str, changes: dict[str, str]) -> str:
    """JSON of today with attributes as an older release held them."""
    data = json.loads(text)
    data["attrs"]["tvm_version"] = tvm
    (entry,) = [n for n in data["nodes"] if n["type_key"] == f"relay.attrs.{key}"]
    entry["attrs"].update(changes)
    return json.dumps(data)


def test_json_of_0_7_pads_with_an_attribute():
    module = parse_text(f"def @main({IMAGE}) {{ {FORMS['pad'][3]} }}")
    data = json.loads(aged_attributes(to_json(module), "0.7.0", "PadAttrs", {"pad_value": "2.5"}))
    (call,) = [n for n in data["nodes"] if n["type_key"] == "relay.Call"]
    args = data["nodes"][int(call["attrs"]["args"])]
    args["data"] = args["data"][:1]
    old = lower_to(tidy(to_ir(module_graph(parse_json(json.dumps(data))))), 21)
    new = convert(IMAGE, FORMS["pad"][3])
    feeds = feeds_of(new)
    np.testing.assert_array_equal(
        run_model(to_proto(old), feeds)[0], run_model(to_proto(new), feeds)[0]
    )


@pytest.mark.parametrize(
    ("parameters", "body", "key", "tvm", "changes", "now"),
    [
        (IMAGE, "reshape(%x, newshape=[0, -1])", "ReshapeAttrs", "0.7.0", {"reverse": "0"},
         "reshape(%x, newshape=[0, -1])"),
        (KERNEL, 'nn.conv2d_transpose(%x, %w, kernel_layout="OIHW")', "Conv2DTransposeAttrs", "0.11.1",
         {}, "nn.conv2d_transpose(%x, %w)"),
        (KERNEL, 'nn.conv2d_transpose(%x, %w, kernel_layout="IOHW")', "Conv2DTransposeAttrs", "0.11.1",
         {}, "nn.conv2d_transpose(%x, transpose(%w, axes=[1, 0, 2, 3]))"),
        (SQUARE, "nn.batch_matmul(%x, %y)", "BatchMatmulAttrs", "0.8.0", {}, "nn.batch_matmul(%x, %y, "
         "transpose_b=False)"),
    ],
)  # fmt: skip
def test_json_of_older_releases(parameters, body, key, tvm, changes, now):
    module = parse_text(f"def @main({parameters}) {{ {body} }}")
    text = aged_attributes(to_json(module), tvm, key, changes)
    old = lower_to(tidy(to_ir(module_graph(parse_json(text)))), 21)
    new = convert(parameters, now)
    feeds = feeds_of(new)
    np.testing.assert_array_equal(
        run_model(to_proto(old), feeds)[0], run_model(to_proto(new), feeds)[0]
    )
