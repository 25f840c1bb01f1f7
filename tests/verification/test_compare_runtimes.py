"""Verification: what is equal passes, what is not is found, what cannot run is said."""

from __future__ import annotations

import json
import sys

import ml_dtypes
import numpy as np
import onnx
import onnxruntime
import pytest

import serde
from serde import plugins
from serde.errors import MalformedFile, MissingDependency, UsageError
from serde.ir.graph import DType, Value
from serde.verification import compare, compare_results, make_random_inputs, verify_conversion
from serde.verification.input_sets import input_sets
from testing.onnx_live import ir_of, model_of

NAN, INF = np.nan, np.inf


def f32(*numbers):
    return np.array(numbers, np.float32)


@pytest.mark.parametrize(
    ("got", "expected", "passed", "reason"),
    [
        (f32(1, 2), f32(1, 2), True, ""),
        (f32(1, 2.0001), f32(1, 2), True, ""),
        (f32(1, 2.001), f32(1, 2), False, "off by 0.001"),
        (f32(1e6, 50), f32(1e6, 0), True, ""),  # small beside the tensor's scale
        (f32(1e6, 200), f32(1e6, 0), False, "off by 200"),
        (f32(5e-5), f32(0), True, ""),
        (f32(0, 1e-36), f32(1e-37, 1e-36), True, ""),  # what underflows on the way
        (f32(0, 1e-24), f32(1e-25, 1e-24), False, "off by 1e-25"),
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
def test_two_outputs_compared(got, expected, passed, reason):
    shown = compare("y", got, expected)
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


def write_model(path, numbers=None, body=BODY):
    numbers = list(range(27)) if numbers is None else numbers
    onnx.save(model_of(body.format(", ".join(map(str, numbers))), 17, 8), path)
    return str(path)


def test_a_conversion_is_verified_on_seeded_inputs(tmp_path):
    source = write_model(tmp_path / "a.onnx")
    check = serde.convert(source, tmp_path / "b.onnx", opset=13, verify=True).verification
    assert (check.done, check.ok, check.source) == (True, True, "onnx")
    assert check.inputs == "random inputs, seed 0"
    assert [(o.name, o.max_abs) for o in check.outputs] == [("y", 0), ("z", 0)]


def test_an_injected_error_is_found(tmp_path):
    source = write_model(tmp_path / "a.onnx")
    other = write_model(tmp_path / "b.onnx", [n + (n == 4) * 0.01 for n in range(27)])
    check = serde.verify(source, other, data={"x": np.float32([[1, 2, 3]]), "i": np.arange(9)})
    assert not check.ok and [o.passed for o in check.outputs] == [True, False]
    assert check.outputs[1].reason == "off by 0.01"
    assert check.inputs == "the inputs given"


def test_a_number_that_is_none_is_found(tmp_path):
    body = "g (float[2] x) => (float[2] y) {{ y = {0}(x) }}"
    source = write_model(tmp_path / "a.onnx", ["Sqrt"], body)
    other = write_model(tmp_path / "b.onnx", ["Abs"], body)
    check = serde.verify(source, other, data={"x": f32(1, -1)})
    assert check.outputs[0].reason.startswith("NaN or infinity")


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
    check = serde.verify(str(tmp_path / "a.onnx"), str(tmp_path / "b.onnx"))
    assert check.outputs[0].reason.startswith(reason)


class TestGivenArrays:
    @pytest.fixture
    def paths(self, tmp_path):
        return write_model(tmp_path / "a.onnx"), str(tmp_path / "b.onnx")

    feeds = {"x": np.float32([[1, -1, 2]]), "i": np.array([0, 8])}
    table = np.arange(27, dtype=np.float32).reshape(9, 3)
    right = {"y": np.float32([[1, 0, 2]]), "z": table[[0, 8]]}

    def test_expected_outputs_by_name(self, paths, tmp_path):
        np.savez(tmp_path / "in.npz", **self.feeds)
        np.savez(tmp_path / "out.npz", **self.right)
        check = serde.convert(
            *paths, data=tmp_path / "in.npz", expected=str(tmp_path / "out.npz")
        ).verification
        assert (check.ok, check.source) == (True, "the outputs given")

    def test_expected_outputs_in_order(self, paths):
        check = serde.convert(
            *paths, data=self.feeds, expected={"first": self.right["y"], "second": self.right["z"]}
        ).verification
        assert check.ok and len(check.outputs) == 2

    def test_wrong_expected_outputs_fail(self, paths):
        wrong = {**self.right, "z": self.right["z"] + 1}
        report = serde.convert(*paths, data=self.feeds, expected=wrong)
        assert not report.ok and not report.verification.ok

    @pytest.mark.parametrize(
        ("options", "why"),
        [
            ({"expected": {"y": f32(1)}}, "expected outputs are called 'y', the model's 'y', 'z'"),
            (
                {"expected": right, "data": {"x": f32(1)}},
                "the data have no input 'i'; they have 'x'",
            ),
        ],
    )
    def test_what_does_not_fit_the_model_is_refused(self, paths, options, why):
        with pytest.raises(UsageError, match=why):
            serde.convert(*paths, **{"data": self.feeds, **options})

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
        check = serde.convert(
            str(tmp_path / "a.onnx"), str(tmp_path / "b.onnx"),
            data={"arr_0": f32(1, -1)}, expected={"expected": f32(1, 0)},
        ).verification  # fmt: skip
        assert check.ok


def test_a_source_that_cannot_run_here_is_said_so(tmp_path, monkeypatch):
    target = write_model(tmp_path / "b.onnx")
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
    check = verify_conversion(Source(), target, graph=graph)
    assert (check.done, check.ok, check.outputs) == (False, True, [])
    assert check.statement == (
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
        feeds = make_random_inputs(graph)
        assert feeds["a"].max() <= 2 and feeds["b"].max() <= 2 and feeds["a"].min() >= 0
        assert {n: (a.shape, str(a.dtype)) for n, a in feeds.items()} == {
            "a": ((2, 8), "float32"), "b": ((2,), "int64"), "c": ((2, 3, 64, 64), "float32"),
            "d": ((2,), "bool"), "e": ((4,), "uint8"),
        }  # fmt: skip

    def test_they_depend_on_the_seed_alone(self):
        graph = ir_of("g (float[N,3] x) => (y) { y = Relu(x) }")
        one, again, other = (make_random_inputs(graph, s)["x"] for s in (1, 1, 2))
        assert np.array_equal(one, again) and not np.array_equal(one, other)

    def test_a_name_has_one_size_throughout(self):
        graph = ir_of("g (float[N,T] x, float[T,N] y) => (z) { z = MatMul(x, y) }")
        feeds = make_random_inputs(graph)
        assert feeds["x"].shape == feeds["y"].shape[::-1]

    @pytest.mark.parametrize("op", ["SequenceMask", "SequenceReverse", "SequenceLast"])
    @pytest.mark.parametrize("steps", [7, "T"])
    def test_lengths_are_those_of_sequences(self, op, steps, tmp_path):
        """MXNet reads outside of its data at others."""
        symbol = {
            "nodes": [
                {"op": "null", "name": "x", "inputs": []},
                {"op": "null", "name": "n", "inputs": []},
                {"op": op, "name": "y", "attrs": {"use_sequence_length": "True"},
                 "inputs": [[0, 0, 0], [1, 0, 0]]},
            ],
            "arg_nodes": [0, 1], "heads": [[2, 0, 0]],
        }  # fmt: skip
        path = tmp_path / "m-symbol.json"
        path.write_text(json.dumps(symbol))
        graph = serde.load(path, inputs={"x": (steps, 40, 3), "n": (40,)})
        feeds = make_random_inputs(graph)
        assert set(feeds["n"]) == set(range(1, feeds["x"].shape[0] + 1))
        changed = {s.name: s.feeds["n"] for s in input_sets(graph, graph, 0)}
        assert all(lengths is changed["normal"] for lengths in changed.values())

    def test_texts_are_drawn_of_a_few(self, tmp_path):
        body = "g (string[40] x) => (string[40] y) { y = Identity(x) }"
        feeds = make_random_inputs(ir_of(body))
        assert feeds["x"].dtype == object and len(set(feeds["x"])) > 3
        source = save(tmp_path / "a.onnx", body)
        assert serde.convert(source, tmp_path / "b.onnx", verify=True).verification.done

    def test_complex_numbers_cannot_be_made_up(self):
        graph = ir_of("g (complex64[2] x) => (y) { y = Identity(x) }")
        with pytest.raises(UsageError, match="'x' is complex64, which is not drawn at random"):
            make_random_inputs(graph)
        assert Value("x", DType.STRING).dtype.kind == "S"


def save(path, body, opset=17):
    onnx.save(model_of(body, opset, 8), path)
    return str(path)


X = "g (float[N,4] x) => (float[N,4] y) "


class TestInputSets:
    """Faults that normal numbers hide; each is shown by one set of inputs alone."""

    # The source's body, a wrong result's, and the sets on which they differ.
    FAULTS = {
        "negative": (X + "{ y = Relu(x) }", X + "{ a = Abs(x)\n b = Max(x, a)\n y = Mul(b, b) }",
                     "off by"),
        "zero": (X + "{ y = Sign(x) }",
                 X + "<float[1] z = {0}, float[1] p = {1}, float[1] m = {-1}>"
                 "{ c = Less(x, z)\n y = Where(c, m, p) }", "on zero inputs"),
        "equal": (X + "<float[1] h = {0.5}> { c = Greater(x, h)\n y = Cast<to=1>(c) }",
                  X + "<float[1] h = {0.5}> { c = GreaterOrEqual(x, h)\n y = Cast<to=1>(c) }",
                  "on equal inputs"),
        "special": (X + "{ y = Round(x) }",
                    X + "<float[1] h = {0.5}> { a = Add(x, h)\n y = Floor(a) }",
                    "on "),
        "large": (X + "{ y = Identity(x) }",
                  X + "<float lo = {-50}, float hi = {200}> { y = Clip(x, lo, hi) }", "on "),
        "infinite": (X + "{ y = Identity(x) }",
                     X + "<float lo = {-100000}, float hi = {100000}> { y = Clip(x, lo, hi) }",
                     "on infinite inputs"),
        "NaN": (X + "<float[1] z = {0}> { n = IsNaN(x)\n y = Where(n, z, x) }",
                X + "<float[1] z = {1}> { n = IsNaN(x)\n y = Where(n, z, x) }", "on NaN inputs"),
    }  # fmt: skip

    @pytest.mark.parametrize("name", FAULTS)
    def test_a_fault_is_found(self, name, tmp_path):
        right, wrong, reason = self.FAULTS[name]
        paths = save(tmp_path / "a.onnx", right), save(tmp_path / "b.onnx", wrong)
        check = serde.verify(*paths)
        assert not check.ok and reason in check.outputs[0].reason
        assert serde.verify(paths[0], paths[0]).ok

    def test_a_pooling_that_loses_zeros(self, tmp_path):
        """Wrong on negative numbers alone: a window of normal ones has a positive number."""
        g = "g (float[1,1,16,16] x) => (float[1,1,4,4] y) "
        source = save(
            tmp_path / "a.onnx",
            g + "<int64[8] p = {0,0,0,0,0,0,4,4}> { z = Pad(x, p)\n"
            "y = MaxPool<kernel_shape=[8,8], strides=[4,4]>(z) }",
        )
        result = save(
            tmp_path / "b.onnx",
            g + "{ y = MaxPool<kernel_shape=[8,8], strides=[4,4], pads=[0,0,4,4]>(x) }",
        )
        check = serde.verify(source, result)
        assert check.outputs[0].reason.endswith("on negative inputs")
        assert check.sets[:2] == ["normal", "negative"]

    def names_of(self, body):
        graph = ir_of(body)
        normal, *others = input_sets(graph, graph, 0)
        assert normal.name == "normal"
        return {s.name: {n for n in s.feeds if s.feeds[n] is not normal.feeds[n]} for s in others}

    FLOATS = {"negative", "zero", "equal", "special", "large", "infinite"}

    @pytest.mark.parametrize(
        ("body", "changed"),
        [
            ("g (float[2] x) => (y) { y = Relu(x) }", {n: {"x"} for n in FLOATS}),
            ("g (float16[2] x) => (y) { y = Relu(x) }", {n: {"x"} for n in FLOATS}),
            ("g (int64[2] i) => (y) { y = Neg(i) }", {}),
            ("g (float[2] x, bool[2] c) => (y) { y = Where(c, x, x) }",
             {n: {"x"} for n in FLOATS}),
            ("g (int64[2] i) => (y) <float[3,2] t = {0,1,2,3,4,5}> { y = Gather(t, i) }",
             {"zero": {"i"}, "equal": {"i"}}),
            ("g (int64[2] i) => (y) <float[3,2] t = {0,1,2,3,4,5}> { n = ReduceSum<keepdims = 0>(i)"
             "f = Cast<to = 1>(n) r = Gather(t, i) y = Mul(r, f) }", {"equal": {"i"}}),
            ("g (float[2] i) => (y) <float[3] t = {0,1,2}> { j = Cast<to=7>(i)\n y = Gather(t, j) }", {"zero": {"i"}, "equal": {"i"}}),
            ("g (float[2] i, float[3] t) => (y) <float o = {1}> { k = Sub(i, o)\n"
             "j = Cast<to=7>(k)\n y = Gather(t, j) }", {n: {"t"} for n in FLOATS}),
            ("g (float[2] x) => (y) <float l = {0}, float h = {9}> { c = Clip(x, l, h)\n"
             "y = Cast<to=2>(c) }", {n: {"x"} for n in FLOATS - {"infinite"}}),
            ("g (float[3,1] x) => (y) <float[2] c = {0, 1}> { e = Equal(x, c)\n y = Cast<to=1>(e) }",
             {}),
            ("g (float[2] x) => (y) { y, s, z = DynamicQuantizeLinear(x) }",
             {n: {"x"} for n in FLOATS - {"zero", "infinite"}}),
            ("g (float n) => (y) <float z = {0}, float d = {1}> { y = Range(z, n, d) }", {}),
        ],
    )  # fmt: skip
    def test_indices_lengths_and_sizes_stay(self, body, changed):
        assert self.names_of(body) == changed

    def test_a_slow_model_runs_on_normal_inputs_alone(self, tmp_path, monkeypatch):
        monkeypatch.setattr(compare_results, "EXTRA_SECONDS", -1.0)
        source = save(tmp_path / "a.onnx", X + "{ y = Relu(x) }")
        check = serde.verify(source, source)
        assert check.ok and check.sets == ["normal"]
        (line,) = check.not_compared
        assert line.startswith("negative, zero, equal, special, large, infinite inputs: the source")

    def test_given_data_are_the_only_ones(self, tmp_path):
        source = save(tmp_path / "a.onnx", X + "{ y = Relu(x) }")
        check = serde.verify(source, source, data={"x": np.zeros((1, 4), np.float32)})
        assert (check.sets, check.inputs) == (["normal"], "the inputs given")

    def test_what_the_source_itself_does_not_hold_still_is_not_compared(self, tmp_path):
        """Sines of large numbers depend on their last digits."""
        many = "g (float[64] x) => (float[64] y) "
        source = save(
            tmp_path / "a.onnx", many + "<float k = {1000.1}> { a = Mul(x, k)\n y = Sin(a) }"
        )
        other = save(
            tmp_path / "b.onnx",
            many + "<float k = {10.001}, float h = {100}> { b = Mul(x, k)\n a = Mul(b, h)\n"
            "y = Sin(a) }",
        )
        check = serde.verify(source, other)
        assert any("y on large inputs: the source itself changes" in n for n in check.not_compared)


class TestSettings:
    """A result is right as users run it and without ONNX Runtime's optimiser."""

    @pytest.mark.parametrize("broken", ["", "without ONNX Runtime's optimiser"])
    def test_both_have_to_be_right(self, broken, tmp_path, monkeypatch):
        source = save(tmp_path / "a.onnx", X + "{ y = Relu(x) }")
        target = save(tmp_path / "b.onnx", X + "{ y = Relu(x) }")
        prepare = compare_results.prepare

        def breaking(bridge, path, **options):
            run = prepare(bridge, path, **options)
            is_broken = options.get("optimize", True) is (broken == "")
            return lambda feeds: [y + is_broken for y in run(feeds)]

        monkeypatch.setattr(compare_results, "prepare", breaking)
        check = serde.verify(source, target)
        assert not check.ok and check.outputs[0].reason == f"off by 1 {broken}".strip()
        assert check.settings == ["by default", "without ONNX Runtime's optimiser"]

    def test_the_runtime_is_told(self, tmp_path, monkeypatch):
        levels = []
        session = onnxruntime.InferenceSession

        def record(model, settings, **options):
            levels.append(settings.graph_optimization_level)
            return session(model, settings, **options)

        monkeypatch.setattr(onnxruntime, "InferenceSession", record)
        source = save(tmp_path / "a.onnx", X + "{ y = Relu(x) }")
        assert serde.verify(source, source).ok
        level = onnxruntime.GraphOptimizationLevel
        assert set(levels) == {level.ORT_ENABLE_ALL, level.ORT_DISABLE_ALL}

    def test_a_source_that_the_optimiser_breaks_is_compared_without(self, tmp_path, monkeypatch):
        from serde.verification import source_runs

        source = save(tmp_path / "a.onnx", X + "{ y = Relu(x) }")
        target = save(tmp_path / "b.onnx", X + "{ y = Relu(x) }")
        prepare = source_runs.prepare

        def breaking(bridge, path, **options):
            run = prepare(bridge, path, **options)
            return lambda feeds: [y + options.get("optimize", True) for y in run(feeds)]

        monkeypatch.setattr(source_runs, "prepare", breaking)
        assert serde.verify(source, target).ok

    def test_a_source_converted_in_place_is_run_before(self, tmp_path):
        path = save(tmp_path / "a.onnx", X + "{ y = Abs(x) }")
        wrong = model_of(X + "{ y = Relu(x) }", 17, 8)
        encode = serde.plugins.get_format("onnx").encode

        def write_wrong(graph, target):
            encode(graph, target)
            onnx.save(wrong, target)
            return [str(target)]

        from dataclasses import replace

        from serde import api

        real = api.get_format
        fake = replace(real("onnx"), encode=write_wrong)
        with pytest.MonkeyPatch.context() as patch:
            patch.setattr(api, "get_format", lambda name: fake)
            report = serde.convert(path, path, to_format="onnx", verify=True)
        assert not report.ok and report.verification.done


class TestTies:
    """Equals may stand in another order; others may not."""

    SORT = ("g (float[6] x) => (float[K] v, int64[K] i) <int64[1] k = {6}>"
            "{ v, i = TopK<axis=0>(x, k) }")  # fmt: skip
    # As SORT, but equals in the order of their indices from the last to the first.
    BACKWARDS = ("g (float[6] x) => (float[K] v, int64[K] i) <int64[1] k = {6}, int64[1] s = {5},"
                 "int64[1] e = {-7}, int64[1] a = {0}, int64[1] m = {-1}, int64 five = {5}>"
                 "{ r = Slice(x, s, e, a, m)\n v, j = TopK<axis=0>(r, k)\n i = Sub(five, j) }")  # fmt: skip
    DATA = np.float32([3, 1, 3, 2, 1, 3])

    def test_indices_of_equal_numbers(self, tmp_path):
        paths = save(tmp_path / "a.onnx", self.BACKWARDS), save(tmp_path / "b.onnx", self.SORT)
        for data in (None, {"x": self.DATA}):
            check = serde.verify(*paths, data=data)
            assert check.ok
        assert check.outputs[1].reason == "equals stand in another order"

    @pytest.mark.parametrize("wrong", [[0, 2, 5, 3, 1, 1], [0, 2, 5, 1, 3, 4], [0, 2, 5, 3, 1, 9]])
    def test_other_indices_are_wrong(self, wrong, tmp_path):
        target = save(tmp_path / "b.onnx", self.SORT)
        expected = {"v": np.float32([3, 3, 3, 2, 1, 1]), "i": np.int64(wrong)}
        check = verify_conversion(
            target, target, graph=serde.load(target), data={"x": self.DATA}, expected=expected
        )
        assert [o.passed for o in check.outputs] == [True, False]

    # Rows of a detector: class, score, place. Sorted by scores; some are equal.
    ROWS = np.float32([[0, 0.9, 5], [1, 0.8, 2], [0, 0.8, 7], [2, 0.8, 1], [1, 0.3, 4]])

    @pytest.mark.parametrize(
        ("order", "passed"),
        [([0, 1, 2, 3, 4], True), ([0, 3, 1, 2, 4], True), ([0, 2, 1, 3, 4], True),
         ([1, 0, 2, 3, 4], False), ([0, 1, 2, 4, 3], False), ([0, 1, 1, 3, 4], False)],
    )  # fmt: skip
    @pytest.mark.parametrize("columns", [[[0, 1, 2]], [[1], [0, 2]], [[0], [2], [1]]])
    def test_rows_by_their_scores(self, order, passed, columns):
        from serde.verification.ties import count_new_rows

        expected = [self.ROWS[None, :, c] for c in columns]
        got = [self.ROWS[None, order][:, :, c] for c in columns]
        for at in range(len(columns)):
            assert count_new_rows(at, got, expected) == (0 if passed else None)

    @pytest.mark.parametrize(("others", "count"), [(0, 0), (1, 1), (4, 4), (30, None)])
    def test_rows_that_others_suppress(self, others, count):
        """Two boxes of a score change places, and ``others`` of 600 rows are of another class."""
        from serde.verification.ties import count_new_rows

        rng = np.random.default_rng(0)
        expected = rng.uniform(0, 1, (1, 600, 4)).astype(np.float32)
        expected[..., 0] = -np.sort(-expected[..., 0], 1)
        expected[0, 7, 0] = expected[0, 8, 0]
        got = expected.copy()
        got[0, [7, 8]] = expected[0, [8, 7]]
        got[0, 100 : 100 + others, 1] = -1
        assert count_new_rows(0, [got], [expected]) == count
        last = expected[:, :10], got[:, :10]  # as of a detector that sorts its best rows only
        behind = [np.concatenate([x, expected[:, :9]], 1) for x in last]
        if others == 0:
            assert count_new_rows(0, behind[1:], behind[:1]) == 0
        got[0, [7, 8]] = expected[0, [7, 8]]  # in the source's order, the classes are wrong
        assert count_new_rows(0, [got], [expected]) == (None if others else 0)

    def test_boxes_of_equal_scores(self, tmp_path):
        body = ("g (float[1,3,4] boxes, float[1,1,3] scores) => (int64[M,3] y)"
                "<int64 n = {3}> { y = NonMaxSuppression(boxes, scores, n) }")  # fmt: skip
        target = save(tmp_path / "b.onnx", body)
        boxes = np.float32([[[0, 0, 1, 1], [2, 2, 3, 3], [4, 4, 5, 5]]])
        feeds = {"boxes": boxes, "scores": np.float32([[[0.5, 0.9, 0.5]]])}
        for last, passed in (([0, 2], True), ([2, 0], True), ([2, 2], False)):
            expected = {"y": np.int64([[0, 0, 1], *([0, 0, i] for i in last)])}
            check = verify_conversion(
                target, target, graph=serde.load(target), data=feeds, expected=expected
            )
            assert check.ok is passed


def zeros(*shape):
    """A constant of that shape, as the parser takes it."""
    return "{" + ",".join(["0.1"] * int(np.prod(shape))) + "}"


class TestFittingSizes:
    """Sizes that what lies behind an input fixes; the body, the constants, the input's shape."""

    CONV = "a = Conv<kernel_shape=[3,3],pads=[1,1,1,1]>(x, w)\n"
    CASES = {
        "dense behind a flattened image": (
            "float[N,3,H,W]", "float[4,3,3,3] w, float[10,784] d", CONV +
            "p = MaxPool<kernel_shape=[2,2],strides=[2,2]>(a)\n f = Flatten(p)\n"
            "y = Gemm<transB=1>(f, d)", (2, 3, 28, 28),
        ),
        "a range of sides": (
            "float[N,3,H,W]", "float[4,3,3,3] w, float[196,10] d", CONV +
            "p = MaxPool<kernel_shape=[32,32],strides=[32,32]>(a)\n f = Flatten(p)\n"
            "y = MatMul(f, d)", (2, 3, 224, 224),
        ),
        "sides that differ": (
            "float[N,1,H,W]", "float[480,3] d", "f = Flatten(x)\n y = MatMul(f, d)",
            (2, 1, 32, 15),
        ),
        "a reshape by a count": (
            "float[N,1,H,W]", "float[784,3] d",
            "s = Constant<value_ints=[-1,784]>()\n f = Reshape(x, s)\n y = MatMul(f, d)",
            (2, 1, 28, 28),
        ),
        "features": ("float[N,F]", "float[30,3] d", "y = MatMul(x, d)", (2, 30)),
        "a weight on the left": ("float[N,F,5]", "float[3,30] d", "y = MatMul(d, x)", (2, 30, 5)),
        "embeddings of places": ("float[N,T,5]", "float[1,17,5] d", "y = Add(x, d)", (2, 17, 5)),
        "one fixed side": ("float[N,1,H,20]", "float[240,3] d",
                           "f = Flatten(x)\n y = MatMul(f, d)", (2, 1, 12, 20)),
        "nothing that fixes them": ("float[N,3,H,W]", "float[4,3,3,3] w",
                                    CONV + "y = GlobalAveragePool(a)", (2, 3, 64, 64)),
        "none that fits": ("float[N,2,H,W]", "float[7,3] d", "f = Flatten(x)\n y = MatMul(f, d)",
                           (2, 2, 64, 64)),
    }  # fmt: skip

    @pytest.mark.parametrize(("x", "constants", "body", "shape"), CASES.values(), ids=CASES)
    def test_sizes(self, x, constants, body, shape):
        parts = [c.strip() for c in constants.replace(", ", ";").split(";")]
        dims = [[int(d) for d in p[p.index("[") + 1 : p.index("]")].split(",")] for p in parts]
        held = ", ".join(f"{p} = {zeros(*d)}" for p, d in zip(parts, dims, strict=True))
        feeds = make_random_inputs(ir_of(f"g ({x} x) => (y) <{held}> {{ {body} }}"))
        assert feeds["x"].shape == shape


class TestQuantizedNeighbours:
    """A rounding may decide between two integers; the source's own ways of being run tell."""

    BODY = (
        "g (float[1,4,8,8] x) => (float[1,4,4,4] y) <float s = {0.05}, uint8 z = {128}> {"
        "a = QuantizeLinear(x, s, z)\n b = DequantizeLinear(a, s, z)\n"
        "c = AveragePool<kernel_shape=[2,2], strides=[2,2]>(b)\n"
        "d = QuantizeLinear(c, s, z)\n y = DequantizeLinear(d, s, z) }"
    )

    def source(self, tmp_path, body=BODY, name="a.onnx"):
        onnx.save(model_of(body, 15, 8), tmp_path / name)
        return tmp_path / name

    def test_they_are_no_fault_of_the_conversion(self, tmp_path):
        report = serde.convert(self.source(tmp_path), tmp_path / "b.onnx", opset=21, verify=True)
        assert report.verification.ok

    def test_a_wrong_result_is_found_beside_them(self, tmp_path):
        wrong = self.source(tmp_path, self.BODY.replace("s = {0.05}", "s = {0.06}"), "b.onnx")
        check = serde.verify(self.source(tmp_path), wrong)
        assert not check.ok


@pytest.mark.parametrize("options", [{}, {"fp32": True}])
@pytest.mark.parametrize("data", [None, {"x": np.ones((3, 2)), "z": np.ones(2)}])
def test_sequences_are_fed_as_lists(data, options, tmp_path):
    text = """g (seq(float16[2]) x, float16[2] z) => (float16[2] y, float16[2] w) {
        i = Constant<value_int = 0>() y = SequenceAt(x, i) w = Add(z, z)
    }"""
    onnx.save(model_of(text, opset=17, ir_version=8), tmp_path / "a.onnx")
    dtype = np.float32 if options else np.float16
    held = None if data is None else {n: a.astype(dtype) for n, a in data.items()}
    report = serde.convert(
        tmp_path / "a.onnx", tmp_path / "b.onnx", verify="layers", data=held, **options
    )
    assert report.ok and len(report.verification.outputs) == 2
