"""Verification: what is equal passes, what is not is found, what cannot run is said."""

from __future__ import annotations

import sys

import ml_dtypes
import numpy as np
import onnx
import pytest

import serde
from serde import plugins
from serde.errors import MalformedFile, MissingDependency, UsageError
from serde.graph import DType, Value
from serde.verification import compare, random_inputs, verify_conversion
from tests.onnx_live import ir_of, model_of

NAN, INF = np.nan, np.inf


def f32(*numbers):
    return np.array(numbers, np.float32)


@pytest.mark.parametrize(
    ("got", "wanted", "passed", "reason"),
    [
        (f32(1, 2), f32(1, 2), True, ""),
        (f32(1, 2.0001), f32(1, 2), True, ""),
        (f32(1, 2.001), f32(1, 2), False, "off by 0.001"),
        (f32(1e6, 50), f32(1e6, 0), True, ""),  # small beside the tensor's scale
        (f32(1e6, 200), f32(1e6, 0), False, "off by 200"),
        (f32(5e-5), f32(0), True, ""),
        (f32(2e-4), f32(0), False, "off by 0.0002"),
        (f32(1, NAN), f32(1, NAN), True, ""),
        (f32(1, NAN), f32(1, 2), False, "NaN or infinity in other places"),
        (f32(1, 2), f32(1, NAN), False, "NaN or infinity in other places"),
        (f32(1, INF), f32(1, -INF), False, "NaN or infinity in other places"),
        (f32(1, INF), f32(1, INF), True, ""),
        (f32(INF, NAN), f32(INF, NAN), True, ""),
        (f32(), f32(), True, ""),
        (f32(1, 2), f32(1, 2, 3), False, "shape [2] where the source has [3]"),
        (f32(1), f32(1)[0], False, "shape [1] where the source has []"),
        (np.float64([1]), f32(1), False, "float64 elements where the source has float32"),
        (np.int64([1, 2]), np.int64([1, 2]), True, ""),
        (np.int64([1, 2]), np.int64([1, 3]), False, "not equal"),
        (np.array([True]), np.array([False]), False, "not equal"),
        (np.array(["a"], object), np.array(["a"], object), True, ""),
        (np.array(["a"], object), np.array(["b"], object), False, "not equal"),
        (np.float16([1.01]), np.float16([1]), True, ""),
        (np.float64([1 + 1e-5]), np.float64([1]), False, "off by 1e-05"),
        (np.complex64([1 + 1j]), np.complex64([1 + 1j]), True, ""),
        (np.complex64([1 + 1j]), np.complex64([1 + 2j]), False, "off by 1"),
        (np.array([1.5], ml_dtypes.bfloat16), np.array([1.5], ml_dtypes.bfloat16), True, ""),
    ],
)
def test_two_outputs_compared(got, wanted, passed, reason):
    shown = compare("y", got, wanted)
    assert shown.passed is passed and shown.reason.startswith(reason)


def test_the_measures():
    shown = compare("y", f32(1, 2, 4), f32(1, 2, 2))
    assert (shown.max_abs, shown.max_rel, shown.tolerance) == (2.0, 1.0, pytest.approx(2e-4))
    assert shown.rmse == pytest.approx((4 / 3) ** 0.5)
    assert shown.cosine == pytest.approx(13 / (21**0.5 * 3))
    assert (shown.name, shown.shape, shown.dtype) == ("y", (3,), "float32")
    assert compare("y", f32(0, 0), f32(0, 0)).cosine == 1.0


BODY = """g (float[N,3] x, int64[M] i) => (float[N,3] y, float[M,3] z) <float[9,3] t = {{{0}}}>
{{ y = Relu(x)
   z = Gather(t, i) }}"""


def written(path, numbers=None, body=BODY):
    numbers = list(range(27)) if numbers is None else numbers
    onnx.save(model_of(body.format(", ".join(map(str, numbers))), 17, 8), path)
    return str(path)


def test_a_conversion_is_verified_on_seeded_inputs(tmp_path):
    source = written(tmp_path / "a.onnx")
    found = serde.convert(source, tmp_path / "b.onnx", opset=13, verify=True).verification
    assert (found.done, found.ok, found.source) == (True, True, "onnx")
    assert found.inputs == "random inputs, seed 0"
    assert [(o.name, o.max_abs) for o in found.outputs] == [("y", 0), ("z", 0)]


def test_an_injected_error_is_found(tmp_path):
    source = written(tmp_path / "a.onnx")
    other = written(tmp_path / "b.onnx", [n + (n == 4) * 0.01 for n in range(27)])
    found = serde.verify(source, other, data={"x": np.float32([[1, 2, 3]]), "i": np.arange(9)})
    assert not found.ok and [o.passed for o in found.outputs] == [True, False]
    assert found.outputs[1].reason == "off by 0.01"
    assert found.inputs == "the inputs given"


def test_a_number_that_is_none_is_found(tmp_path):
    body = "g (float[2] x) => (float[2] y) {{ y = {0}(x) }}"
    source = written(tmp_path / "a.onnx", ["Sqrt"], body)
    other = written(tmp_path / "b.onnx", ["Abs"], body)
    found = serde.verify(source, other, data={"x": f32(1, -1)})
    assert found.outputs[0].reason.startswith("NaN or infinity")


@pytest.mark.parametrize(
    ("body", "reason"),
    [
        ("g (float[2] x) => (double[2] y) { y = Cast<to=11>(x) }", "float64 elements where"),
        (
            "g (float[2] x) => (float[1,2] y) <int64[1] a = {0}> { y = Unsqueeze(x, a) }",
            "shape [1,",
        ),
    ],
)
def test_other_types_and_shapes_are_found(tmp_path, body, reason):
    onnx.save(
        model_of("g (float[2] x) => (float[2] y) { y = Identity(x) }", 17, 8), tmp_path / "a.onnx"
    )
    onnx.save(model_of(body, 17, 8), tmp_path / "b.onnx")
    found = serde.verify(str(tmp_path / "a.onnx"), str(tmp_path / "b.onnx"))
    assert found.outputs[0].reason.startswith(reason)


class TestGivenArrays:
    @pytest.fixture
    def paths(self, tmp_path):
        return written(tmp_path / "a.onnx"), str(tmp_path / "b.onnx")

    feeds = {"x": np.float32([[1, -1, 2]]), "i": np.array([0, 8])}
    table = np.arange(27, dtype=np.float32).reshape(9, 3)
    right = {"y": np.float32([[1, 0, 2]]), "z": table[[0, 8]]}

    def test_expected_outputs_by_name(self, paths, tmp_path):
        np.savez(tmp_path / "in.npz", **self.feeds)
        np.savez(tmp_path / "out.npz", **self.right)
        found = serde.convert(
            *paths, data=tmp_path / "in.npz", expected=str(tmp_path / "out.npz")
        ).verification
        assert (found.ok, found.source) == (True, "the outputs given")

    def test_expected_outputs_in_order(self, paths):
        found = serde.convert(
            *paths, data=self.feeds, expected={"first": self.right["y"], "second": self.right["z"]}
        ).verification
        assert found.ok and len(found.outputs) == 2

    def test_wrong_expected_outputs_fail(self, paths):
        wrong = {**self.right, "z": self.right["z"] + 1}
        report = serde.convert(*paths, data=self.feeds, expected=wrong)
        assert not report.ok and not report.verification.ok

    @pytest.mark.parametrize(
        ("given", "why"),
        [
            ({"expected": {"y": f32(1)}}, "expected outputs are called 'y', the model's 'y', 'z'"),
            (
                {"expected": right, "data": {"x": f32(1)}},
                "the data have no input 'i'; they have 'x'",
            ),
        ],
    )
    def test_what_does_not_fit_the_model_is_refused(self, paths, given, why):
        with pytest.raises(UsageError, match=why):
            serde.convert(*paths, **{"data": self.feeds, **given})

    @pytest.mark.parametrize("content", [b"", b"PK\3\4 nothing", b"no archive"])
    def test_what_is_no_npz_is_refused(self, paths, tmp_path, content):
        (tmp_path / "in.npz").write_bytes(content)
        with pytest.raises(MalformedFile, match="not an .npz file of arrays"):
            serde.convert(*paths, verify=True, data=tmp_path / "in.npz")

    def test_pickles_are_not_loaded(self, paths, tmp_path):
        np.savez(tmp_path / "in.npz", x=np.array([{}], object), i=np.array([0]))
        with pytest.raises(MalformedFile, match="not an .npz file of arrays"):
            serde.convert(*paths, verify=True, data=tmp_path / "in.npz")

    def test_one_array_for_one_input_needs_no_name(self, tmp_path):
        onnx.save(
            model_of("g (float[2] x) => (float[2] y) { y = Relu(x) }", 17, 8), tmp_path / "a.onnx"
        )
        found = serde.convert(
            str(tmp_path / "a.onnx"), str(tmp_path / "b.onnx"),
            data={"arr_0": f32(1, -1)}, expected={"expected": f32(1, 0)},
        ).verification  # fmt: skip
        assert found.ok


def test_a_source_that_cannot_run_here_is_said_so(tmp_path, monkeypatch):
    target = written(tmp_path / "b.onnx")
    graph = ir_of(BODY.format(", ".join("0" * 27)))
    bridge = plugins.get_bridge("onnx")

    def absent(*args, **kwargs):
        raise MissingDependency("pip install the-runtime")

    class Source:
        """A live object of a framework that cannot be run."""

    monkeypatch.setattr(
        sys.modules["serde.verification.source_runs"], "bridge_for",
        lambda thing: type(bridge)("x", (), "onnx", None, absent),
    )  # fmt: skip
    found = verify_conversion(Source(), target, graph=graph)
    assert (found.done, found.ok, found.outputs) == (False, True, [])
    assert found.statement == (
        "not compared: the source could not be run. pip install the-runtime. "
        "Its outputs can be given instead: --expected out.npz with --data in.npz"
    )


class TestRandomInputs:
    def test_indices_are_valid_through_what_passes_them_on(self):
        graph = ir_of(
            "g (float[N,T] a, int64[N] b, float[N,3,H,W] c, bool[2] d, uint8[4] e)"
            "=> (u, v, w, p, q) <float[3,2] t = {0, 1, 2, 3, 4, 5}>"
            "{ i = Cast<to=7>(a)\n u = Gather(t, i)\n v = Gather(t, b)\n"
            "  w = Relu(c)\n p = Not(d)\n q = Identity(e) }"
        )
        feeds = random_inputs(graph)
        assert feeds["a"].max() <= 2 and feeds["b"].max() <= 2 and feeds["a"].min() >= 0
        assert {n: (a.shape, str(a.dtype)) for n, a in feeds.items()} == {
            "a": ((2, 8), "float32"), "b": ((2,), "int64"), "c": ((2, 3, 64, 64), "float32"),
            "d": ((2,), "bool"), "e": ((4,), "uint8"),
        }  # fmt: skip

    def test_they_depend_on_the_seed_alone(self):
        graph = ir_of("g (float[N,3] x) => (y) { y = Relu(x) }")
        one, again, other = (random_inputs(graph, s)["x"] for s in (1, 1, 2))
        assert np.array_equal(one, again) and not np.array_equal(one, other)

    def test_a_name_has_one_size_throughout(self):
        graph = ir_of("g (float[N,T] x, float[T,N] y) => (z) { z = MatMul(x, y) }")
        feeds = random_inputs(graph)
        assert feeds["x"].shape == feeds["y"].shape[::-1]

    def test_texts_cannot_be_made_up(self):
        graph = ir_of("g (string[2] x) => (y) { y = Identity(x) }")
        with pytest.raises(UsageError, match="no random inputs of type object: give data"):
            random_inputs(graph)
        assert Value("x", DType.STRING).dtype.kind == "S"
