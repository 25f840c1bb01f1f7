"""The result, run and compared: in its own format, with a user's tolerance, or not at all."""

from __future__ import annotations

import re

import numpy as np
import onnx
import pytest

import serde
from serde.errors import MissingDependency, SerdeError, UsageError
from serde.verification import compare, compare_results
from serde.verification.compare_outputs import Tolerance
from testing.mxnet_live import live_mxnet
from testing.onnx_live import model_of

X = "g (float[N,4] x) => (float[N,4] y) "


def write(path, body, opset=17):
    path.write_bytes(model_of(X + body, opset, 8).SerializeToString())
    return str(path)


class TestTolerance:
    """``atol + rtol * |expected|`` of each element, as ``numpy.allclose`` has it."""

    @pytest.mark.parametrize("seed", range(20))
    def test_it_is_that_of_numpy(self, seed):
        rng = np.random.default_rng(seed)
        expected = (rng.standard_normal(50) * 10.0 ** rng.integers(-4, 4, 50)).astype(np.float32)
        got = (expected * (1 + 1e-3 * rng.standard_normal(50))).astype(np.float32)
        rtol, atol = (10.0 ** rng.uniform(-5, -1, 2)).tolist()
        found = compare("y", got, expected, tolerance=Tolerance(rtol, atol))
        want = np.float64(expected)
        assert found.passed == np.allclose(np.float64(got), want, rtol, atol)
        if not found.passed:
            at = found.worst.index
            share = np.abs(np.float64(got) - want) / (atol + rtol * np.abs(want))
            assert share[at] == share.max()

    def test_it_is_that_of_integers_as_well(self):
        a, b = np.uint8([1, 2, 255]), np.uint8([2, 2, 253])
        assert not compare("y", a, b).passed
        assert compare("y", a, b, tolerance=Tolerance(atol=2)).passed
        found = compare("y", a, b, tolerance=Tolerance(atol=1))
        assert (found.passed, found.max_abs, found.worst.index) == (False, 2, (2,))

    def test_where_nothing_is_allowed_the_largest_difference_is_named(self):
        got, expected = np.float32([1, 2.25, 3]), np.float32([1, 2, 2.875])
        shown = compare("y", got, expected, tolerance=Tolerance(0, 0))
        assert shown.reason == "off by 0.25" and shown.worst.index == (1,)

    def test_differences_of_large_integers_do_not_wrap(self):
        least, most = np.iinfo(np.int64).min, np.iinfo(np.int64).max
        found = compare("y", np.int64([least, 5]), np.int64([most, 5]))
        assert found.max_abs == most - least
        assert found.reason == f"not equal: 1 of 2 elements, by {most - least:,} at most"

    @pytest.mark.parametrize("wrong", [{"rtol": -1}, {"atol": float("nan")}, {"rtol": "1"}])
    def test_what_is_none_is_refused(self, wrong, tmp_path):
        source = write(tmp_path / "a.onnx", "{ y = Relu(x) }")
        with pytest.raises(UsageError, match="give a finite number, 0 or more"):
            serde.convert(source, tmp_path / "b.onnx", **wrong)

    def test_it_decides_on_a_conversion(self, tmp_path):
        source = write(tmp_path / "a.onnx", "{ y = Relu(x) }")
        target = write(tmp_path / "b.onnx", "<float k = {1.01}> { r = Relu(x)\n y = Mul(r, k) }")
        assert not serde.verify(source, target).ok
        assert serde.verify(source, target, rtol=0.02).ok
        assert not serde.verify(source, target, rtol=0.002).ok
        assert serde.convert(source, tmp_path / "c.onnx", atol=1e-6).verification.ok


class TestWhatCannotRun:
    def test_a_runtime_of_the_result_that_is_not_installed(self, tmp_path, monkeypatch):
        source = write(tmp_path / "a.onnx", "{ y = Relu(x) }")

        def absent(*arguments, **options):
            raise MissingDependency("pip install it")

        monkeypatch.setattr(compare_results, "prepare", absent)
        check = serde.convert(source, tmp_path / "b.onnx", verify=True).verification
        assert not check.done and check.ok
        assert check.statement == "not compared: the result could not be run. pip install it"

    def test_what_a_runtime_lacks(self, tmp_path):
        """An operator of another domain, which no ONNX Runtime has a kernel for."""
        text = """<ir_version: 8, opset_import: ["": 17, "their.own": 1]>
        g (float[2] x) => (float[2] y) { y = their.own.Odd(x) }"""
        onnx.save(onnx.parser.parse_model(text), tmp_path / "a.onnx")
        check = serde.convert(
            tmp_path / "a.onnx", tmp_path / "b.onnx", keep_domain=["their.own"], verify=True
        ).verification
        assert not check.done and "not a registered function/op" in check.statement

    @pytest.mark.parametrize("when", ["prepared", "run"])
    def test_a_result_that_fails_is_wrong(self, when, tmp_path, monkeypatch):
        source = write(tmp_path / "a.onnx", "{ y = Relu(x) }")
        prepare = compare_results.prepare

        def fail(*arguments):
            raise SerdeError("it is broken")

        def breaking(bridge, path, **options):
            if when == "prepared":
                fail()
            prepare(bridge, path, **options)
            return fail

        monkeypatch.setattr(compare_results, "prepare", breaking)
        check = serde.convert(source, tmp_path / "b.onnx", verify=True).verification
        assert check.done and not check.ok
        (output,) = check.outputs
        assert re.match("the result failed to run, its source did not: it is broken", output.reason)
        assert "serde chose the sizes x=2,4, which --input x=DIMS sets" in output.reason


@pytest.mark.parametrize("shape", [(2, 7), (2, 4, 1), (4,)])
def test_an_array_of_another_shape_is_no_fault_of_the_result(shape, tmp_path):
    """The source takes any shape, its result was written for the one that was named."""
    mx = live_mxnet()
    mx.sym.relu(mx.sym.var("x")).save(f"{tmp_path}/net-symbol.json")
    paths = tmp_path / "net", tmp_path / "net.onnx"
    serde.convert(*paths, inputs={"x": ("N", 4)})
    with pytest.raises(UsageError, match=r"the input 'x' is \(N, 4\), and not \("):
        serde.verify(*paths, inputs={"x": ("N", 4)}, data={"x": np.zeros(shape, np.float32)})


def test_formats_are_those_that_are_named(tmp_path):
    """A name that says MXNet, with ONNX in the file, as source and as result."""
    source = write(tmp_path / "net-symbol.json", "{ a = Abs(x)\n y = Relu(a) }")
    report = serde.convert(source, tmp_path / "b.onnx", from_format="onnx", verify="layers")
    assert report.verification.done and len(report.verification.layers.layers) == 2
    target = write(tmp_path / "m-symbol.json", "{ a = Abs(x)\n y = Relu(a) }")
    check = serde.verify(source, target, from_format="onnx", to_format="onnx", layers=True)
    assert check.done and check.ok and check.layers.first is None


class TestArguments:
    def test_unknown_ones_are_a_type_error(self, tmp_path):
        source = write(tmp_path / "a.onnx", "{ y = Relu(x) }")
        with pytest.raises(
            TypeError, match=r"verify\(\) has no argument 'layer'; did you mean layers"
        ):
            serde.verify(source, source, layer=True)

    def test_sizes_that_a_caller_gives_are_run(self, tmp_path):
        source = write(tmp_path / "a.onnx", "{ y = Relu(x) }")
        serde.convert(source, tmp_path / "b.onnx", rename={"x": "z"})
        check = serde.verify(
            source, tmp_path / "b.onnx", inputs={"x": (7, 4)}, rename={"x": "z"}, layers=True
        )
        assert check.outputs[0].shape == (7, 4) and check.layers.first is None
