"""Verification: what is equal passes, what is not is found, what cannot run is said."""

from __future__ import annotations

import sys

import numpy as np
import onnx
import pytest

import serde
from serde import plugins
from serde.bridges.onnxruntime import RuntimeWorker
from serde.errors import MissingDependency
from serde.verification import compare_results, verify_conversion
from testing.onnx_live import ir_of, model_of, save_model

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
    check = serde.verify(source, other, data={"x": np.float32([1, -1])})
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


X = "g (float[N,4] x) => (float[N,4] y) "


class TestSettings:
    """A result is right as users run it and without ONNX Runtime's optimiser."""

    @pytest.mark.parametrize("broken", ["", "without ONNX Runtime's optimiser"])
    def test_both_have_to_be_right(self, broken, tmp_path, monkeypatch):
        source = save_model(tmp_path / "a.onnx", X + "{ y = Relu(x) }")
        target = save_model(tmp_path / "b.onnx", X + "{ y = Relu(x) }")
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
        load = RuntimeWorker.load

        def record(worker, **options):
            levels.append(options["optimize"])
            return load(worker, **options)

        monkeypatch.setattr(RuntimeWorker, "load", record)
        source = save_model(tmp_path / "a.onnx", X + "{ y = Relu(x) }")
        assert serde.verify(source, source).ok
        assert set(levels) == {True, False}

    def test_a_source_that_the_optimiser_breaks_is_compared_without(self, tmp_path, monkeypatch):
        from serde.verification import source_runs

        source = save_model(tmp_path / "a.onnx", X + "{ y = Relu(x) }")
        target = save_model(tmp_path / "b.onnx", X + "{ y = Relu(x) }")
        prepare = source_runs.prepare

        def breaking(bridge, path, **options):
            run = prepare(bridge, path, **options)
            return lambda feeds: [y + options.get("optimize", True) for y in run(feeds)]

        monkeypatch.setattr(source_runs, "prepare", breaking)
        assert serde.verify(source, target).ok

    def test_a_source_converted_in_place_is_run_before(self, tmp_path):
        path = save_model(tmp_path / "a.onnx", X + "{ y = Abs(x) }")
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
