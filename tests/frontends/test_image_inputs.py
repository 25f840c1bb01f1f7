"""Images in place of prepared inputs: what the result computes of pixels."""

from __future__ import annotations

from itertools import product

import numpy as np
import onnx
import onnxruntime
import pytest
from click.testing import CliRunner

import serde
from serde.cli.commands import main
from serde.errors import UsageError
from testing.onnx_live import model_of

MEAN, STD = [123.675, 116.28, 103.53], [58.395, 57.12, 57.375]
MODELS = {  # input, what the model computes: its input as it is, and a score for each of 3 classes
    "NCHW": ("float[N,3,4,5] data", "<int64[2] a = {2, 3}>"),
    "NHWC": ("float[N,4,5,3] data", "<int64[2] a = {1, 2}>"),
}


def write(folder, layout="NCHW", kind="float"):
    data, axes = MODELS[layout]
    body = (f"g ({data.replace('float', kind)}, float[2] other) => "
            f"({kind}[N,a,b,c] seen, {kind}[N,3] scores, float[2] rest) {axes} "
            "{ seen = Identity(data)\n scores = ReduceMean<keepdims=0>(data, a)\n"
            "  rest = Neg(other) }")  # fmt: skip
    onnx.save(model_of(body, 18, 8), folder / "a.onnx")
    return folder / "a.onnx"


def prepare(image, layout, own, options):
    """What the options mean, by NumPy, one step after the other."""
    x = np.moveaxis(image, layout.index("C"), -1).astype(np.float64)  # …HWC
    if "bgr" in options:
        x = x[..., ::-1]
    x = x * options.get("scale", 1)
    x = (x - np.asarray(options.get("mean", 0))) / np.asarray(options.get("std", 1))
    return x if own == "NHWC" else np.moveaxis(x, -1, 1)


@pytest.mark.parametrize(("own", "layout"), [*product(MODELS, MODELS)])
@pytest.mark.parametrize("dtype", ["uint8", "float32"])
@pytest.mark.parametrize(
    "options",
    [{}, {"scale": 1 / 255}, {"mean": MEAN}, {"mean": MEAN, "std": STD}, {"bgr": True},
     {"scale": 0.5, "mean": [1.5], "std": [2], "bgr": True}],
    ids=str,
)  # fmt: skip
def test_it_computes_of_pixels(own, layout, dtype, options, tmp_path):
    source, target = write(tmp_path, own), tmp_path / "b.onnx"
    images = {n: {"data": v} for n, v in options.items() if n != "bgr"}
    images |= {"bgr": ["data"]} if "bgr" in options else {}
    report = serde.convert(
        source, target, images={**images, "layout": {"data": f"{layout}:{dtype}"}}, verify="layers"
    )
    assert report.verification.done and report.ok
    rng = np.random.default_rng(0)
    sizes = {"N": 2, "C": 3, "H": 4, "W": 5}
    image = rng.integers(0, 256, [sizes[c] for c in layout]).astype(dtype)
    session = onnxruntime.InferenceSession(target)
    assert [i.name for i in session.get_inputs()] == ["data", "other"]
    got, scores, _ = session.run(None, {"data": image, "other": np.float32([1, 2])})
    want = prepare(image, layout, own, options)
    np.testing.assert_allclose(got, want, rtol=1e-5, atol=1e-4)
    axes = (2, 3) if own == "NCHW" else (1, 2)
    np.testing.assert_allclose(scores, want.mean(axes), rtol=1e-4, atol=1e-4)


def test_labels_are_those_of_the_largest_scores(tmp_path):
    target = tmp_path / "b.onnx"
    report = serde.convert(
        write(tmp_path), target, images={"labels": ["cat", "dog", "owl"]}, verify=True
    )
    assert report.ok and report.verification.done
    image = np.random.default_rng(1).standard_normal((6, 3, 4, 5)).astype(np.float32)
    feeds = {"data": image, "other": np.float32([1, 2])}
    *_, label = onnxruntime.InferenceSession(target).run(None, feeds)
    names = np.array(["cat", "dog", "owl"])
    np.testing.assert_array_equal(label, names[image.mean((2, 3)).argmax(-1)])


@pytest.mark.parametrize("options", [{"fp16": True}, {"rename": {"data": "image"}}, {"opset": 11}])
def test_other_options_apply_as_well(options, tmp_path):
    images = {"mean": {"data": MEAN}, "layout": {"data": "NHWC"}}
    report = serde.convert(
        write(tmp_path), tmp_path / "b.onnx", images=images, verify=True, **options
    )
    assert report.ok and report.verification.done
    assert report.inputs[0]["shape"] == "(N, 4, 5, 3)"


@pytest.mark.parametrize(
    ("images", "reason"),
    [
        ({"mean": {"dat": 1}}, "no input is called 'dat'; there are: 'data', 'other'"),
        ({"mean": {"other": 1}}, "'other' is no image"),
        ({"mean": {"data": [1, 2]}}, r"mean of 'data' is \[1, 2\]: give 1 or 3 numbers"),
        ({"std": {"data": [1, 0, 1]}}, "give 1 or 3 numbers, no 0"),
        ({"scale": {"data": [1, 2, 3]}}, "give one number"),
        ({"layout": {"data": "CNHW"}}, "is none of NCHW, NHWC"),
        ({"layout": {"data": "NHWC:int64"}}, "pixels of 'int64': give one of"),
        ({"labels": list("abcde")}, "5 labels fit no output"),
        ({"labels": "abc"}, "labels='abc' is no list of texts"),
        ({"labels": {"cat": 1}}, "is no list of texts"),
        ({"labels": [1, 2, 3]}, "is no list of texts"),
        ({"labels": 3}, "is no list of texts"),
        ({"mean": {"data": "x"}}, "mean of 'data' is 'x': give"),
        ({"mean": {"data": [[1], 2]}}, "mean of 'data' is"),
        ({"scale": {"data": {}}}, "scale of 'data' is {}: give one number"),
        ({"std": {"data": [None]}}, "std of 'data' is"),
        ({"layout": {"data": 5}}, "layout 5 of 'data' is none of"),
        ({"bgr": 5}, "bgr=5 is not a list of names"),
        ({"bgr": [["data"]]}, "bgr"),
        ({"color": ["data"]}, "images takes mean, std, .* and no color"),
    ],
)
def test_what_means_nothing_is_refused(images, reason, tmp_path):
    with pytest.raises(UsageError, match=reason):
        serde.convert(write(tmp_path), tmp_path / "b.onnx", images=images)
    assert not (tmp_path / "b.onnx").exists()


def test_an_input_of_unknown_channels_needs_a_shape(tmp_path):
    onnx.save(
        model_of("g (float[N,C,H,W] data) => (float[N,C,H,W] y) { y = Neg(data) }", 18, 8),
        tmp_path / "a.onnx",
    )
    images = {"mean": {"data": 1}}
    with pytest.raises(
        UsageError, match=r"give its shape, as inputs=.'data': \('N', 3, 224, 224\)"
    ):
        serde.convert(tmp_path / "a.onnx", tmp_path / "b.onnx", images=images)
    serde.convert(
        tmp_path / "a.onnx", tmp_path / "b.onnx", images=images, inputs={"data": (1, 3, 8, 8)}
    )


def test_the_command_takes_them(tmp_path):
    (tmp_path / "labels.txt").write_text("cat\ndog\nowl\n")
    arguments = ["convert", write(tmp_path), "-o", tmp_path / "b.onnx", "--verify-strict",
                 "--mean", "data=123.675,116.28,103.53", "--std", "data=58.395,57.12,57.375",
                 "--bgr", "data", "--layout", "data=NHWC:uint8",
                 "--labels", tmp_path / "labels.txt"]  # fmt: skip
    result = CliRunner().invoke(main, [str(a) for a in arguments])
    assert result.exit_code == 0 and result.stdout.count(": pass") == 4, result.output
    graph = onnx.load(tmp_path / "b.onnx").graph
    assert graph.node[0].name == "prepare/Transpose"  # and no line of what started the command
    names = {name for node in graph.node for name in (node.name, *node.output)}
    assert not [name for name in names if ":" in name]
    for wrong in (["--mean", "data"], ["--mean", "data=a"], ["--layout", "NHWC"]):
        result = CliRunner().invoke(main, [*map(str, arguments[:4]), *wrong])
        assert result.exit_code == 2 and "is not NAME=" in result.output


@pytest.mark.parametrize("name", ["image", "x", "pixels", "image_pixels", "output"])
def test_the_input_may_be_called_as_the_code_calls_its_own(tmp_path, name):
    body = f"g (float[N,3,4,5] {name}) => (float[N,3,4,5] y) {{ image_1 = Neg({name}) y = Neg(image_1) }}"
    onnx.save(model_of(body, 18, 8), tmp_path / "a.onnx")
    report = serde.convert(
        tmp_path / "a.onnx", tmp_path / "b.onnx", images={"mean": {name: MEAN}}, verify=True
    )
    assert report.ok and [v["name"] for v in report.inputs] == [name]
    x = np.random.default_rng(0).uniform(0, 255, (1, 3, 4, 5)).astype(np.float32)
    (got,) = onnxruntime.InferenceSession(tmp_path / "b.onnx").run(None, {name: x})
    np.testing.assert_allclose(got, x - np.float32(MEAN).reshape(1, 3, 1, 1), rtol=1e-5)


@pytest.mark.parametrize(("layout", "names", "is_refused"), [
    ("NHWC:uint8", ["all"], True), ("nhwc", ["seen", "data"], True), ("NHWC", ["seen"], False),
    ("NCHW", ["all"], False), (None, ["all"], False),
])  # fmt: skip
def test_an_image_with_channels_last_is_not_turned_again(tmp_path, layout, names, is_refused):
    model, result = write(tmp_path), tmp_path / "b.tflite"
    images = {"mean": {"data": 127.5}, "layout": {"data": layout} if layout else {}}

    def convert():
        return serde.convert(model, result, images=images, channels_last=names,
                             inputs={"data": (1, 3, 4, 5)})  # fmt: skip

    if is_refused:
        with pytest.raises(UsageError, match="^channels_last= would turn 'data', whose layout is .* "
                           "already: name the other inputs and outputs"):  # fmt: skip
            convert()
    else:
        shapes = {i["name"]: i["shape"] for i in convert().inputs}
        assert shapes["data"] == "(1, 4, 5, 3)"
