"""Models as one: names, sizes and ends of what is joined, selected and renamed."""

from __future__ import annotations

import numpy as np
import pytest

import serde
from serde.bridges import onnxruntime as runtime
from serde.errors import UsageError
from testing.onnx_live import ir_of

RNG = np.random.default_rng(4)


def run(graph, tmp_path, **feeds):
    path = tmp_path / "m.onnx"
    serde.save(graph, path)
    outputs = runtime.run(path, feeds)
    return dict(zip([v.name for v in graph.outputs], outputs, strict=True))


def test_names_and_sizes_of_joined_graphs(tmp_path):
    first = serde.trace(lambda x: {"y": x[:, ::2] + 1, "rest": x.sum()}, ("N", "W"))
    second = serde.trace(lambda y, x: {"out": y * x, "wide": y.shape[1] + y}, ("B", "W"), (4,))
    joined = serde.compose(first, second, {"y": "y"}, keep=["y"])
    shapes = {v.name: v.shape for v in (*joined.inputs, *joined.outputs)}
    assert list(shapes) == ["x", "x_1", "out", "wide", "y", "rest"]
    assert shapes["x"] == ("N", "W") and shapes["y"] == ("N", "(W+1)/2") == shapes["wide"]
    x = RNG.normal(size=(2, 7)).astype("f4")
    outputs = run(joined, tmp_path, x=x, x_1=np.arange(4, dtype="f4"))
    np.testing.assert_allclose(outputs["out"], (x[:, ::2] + 1) * np.arange(4, dtype="f4"))


def test_a_number_fixes_the_size_by_name():
    first = serde.trace(lambda x: x + 1, ("N", 3, "H", "H"))
    second = serde.trace(lambda x: x.mean((2, 3)), ("B", 3, 8, 8))
    joined = serde.compose(first, second)
    assert joined.inputs[0].shape == ("N", 3, 8, 8) and joined.outputs[0].shape == ("N", 3)


@pytest.mark.parametrize(
    ("spec", "links", "message"),
    [
        (((3, 4), "float64"), None, "cast one of them"),
        ((3, 5), None, "5 is not 4|4 is not 5"),
        (("N", "N"), None, "4 is not 3|3 is not 4"),
        ((3,), None, "their ranks differ"),
        ((3, 4), {"y": "x"}, "no output of the first model is called 'y'"),
        ((3, 4), {"output": "z"}, "no input of the second model is called 'z'"),
    ],
)
def test_what_does_not_fit_is_refused(spec, links, message):
    first = serde.trace(lambda x: x, (3, 4))
    second = serde.trace(lambda x: x * 2, spec)
    with pytest.raises(UsageError, match=message):
        serde.compose(first, second, links)


def test_a_graph_joined_with_itself(tmp_path):
    double = serde.trace(lambda x: x * 2, (3,))
    outputs = run(serde.compose(double, double), tmp_path, x=np.ones(3, "f4"))
    assert [list(v) for v in outputs.values()] == [[4, 4, 4]]


def test_ends_of_detectors(tmp_path):
    def head(x):
        return {"boxes": x[None, :, :4], "scores": x[None, :, 4:].swapaxes(1, 2)}

    graph = serde.trace(head, ("K", 6))
    graph = serde.append_nms(graph, "boxes", "scores", iou_threshold=0.4, score_threshold=0.1)
    graph = serde.append_argmax(graph, "scores", axis=1, name="label")
    assert [v.name for v in graph.outputs] == ["label", "selected", "boxes"]
    x = np.array([[0, 0, 2, 2, 0.9, 0], [0, 0, 2, 2.1, 0.8, 0.2], [3, 3, 4, 4, 0, 0.7]], "f4")
    outputs = run(graph, tmp_path, x=x)
    assert outputs["selected"].tolist() == [[0, 0, 0], [0, 1, 2], [0, 1, 1]]
    assert outputs["label"].tolist() == [[0, 0, 1]]
    renamed = serde.rename(serde.select(graph, ["label"]), {"label": "best", "x": "rows"})
    assert [v.name for v in (*renamed.inputs, *renamed.outputs)] == ["rows", "best"]


CHAIN = "g (float[N,3] x) => (float[N,3] y, float[N,3] z) { t = Relu(x) y = Neg(t) z = Abs(x) }"


def test_a_part_has_what_its_outputs_need():
    graph = ir_of(CHAIN)
    assert [n.op for n in serde.select(graph, ["t"]).nodes] == ["Relu"]
    assert [v.name for v in serde.select(graph, ["z", "t"]).outputs] == ["z", "t"]
    with pytest.raises(UsageError, match="'nothing'"):
        serde.select(graph, ["nothing"])


@pytest.mark.parametrize(("names", "ends"), [
    ({"x": "a"}, ["a", "y", "z"]), ({"y": "t"}, ["x", "t", "z"]), ({"y": "z", "z": "y"}, ["x", "z", "y"]),
])  # fmt: skip
def test_ends_are_renamed_whatever_is_called_so_inside(tmp_path, names, ends):
    graph = ir_of(CHAIN)
    renamed = serde.rename(graph, names)
    assert [v.name for v in (*renamed.inputs, *renamed.outputs)] == ends
    x = RNG.standard_normal((2, 3)).astype(np.float32)
    got = [*run(renamed, tmp_path, **{ends[0]: x}).values()]
    for one, other in zip(got, run(graph, tmp_path, x=x).values(), strict=True):
        np.testing.assert_array_equal(one, other)


@pytest.mark.parametrize("names", [{"x": "y"}, {"nothing": "a"}, {"y": "a", "z": "a"}])
def test_names_that_are_taken_or_of_nothing_are_refused(names):
    with pytest.raises(UsageError):
        serde.rename(ir_of(CHAIN), names)


def test_a_name_for_the_whole():
    first = serde.trace(lambda x: x + 1, (3,))
    assert serde.compose(first, first, name="twice").name == "twice"
