"""Models joined with each other and with NumPy code, run as one file."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest
from click.testing import CliRunner

import serde
from serde.bridges import onnxruntime as runtime
from serde.cli.commands import main
from serde.errors import UsageError
from testing.onnx_live import ir_of

DIGITS = Path(__file__).resolve().parents[2] / "examples" / "digits"
RNG = np.random.default_rng(4)


def preprocess(image):
    """uint8 rows, columns, channels to what the digits take."""
    x = image.astype(np.float32) / np.float32(255)
    return np.transpose(x, (0, 3, 1, 2))


def classify(scores):
    return {"label": np.argmax(scores, -1), "sure": np.max(scores, -1) > np.float32(0.5)}


def run(graph, tmp_path, **feeds):
    path = tmp_path / "m.onnx"
    serde.save(graph, path)
    outputs = runtime.run(path, feeds)
    return dict(zip([v.name for v in graph.outputs], outputs, strict=True))


@pytest.fixture(scope="module")
def digits():
    return serde.load(DIGITS)


def test_wrapped_model_is_one_file(digits, tmp_path):
    (data,) = digits.inputs
    side = 8
    graph = serde.wrap(digits, preprocess, classify, inputs={
        "image": (("B", "H", "W", 1), "uint8")})  # fmt: skip
    image = RNG.integers(0, 256, (3, side, side, 1)).astype(np.uint8)
    scores = run(digits, tmp_path, **{data.name: preprocess(image)})[digits.outputs[0].name]
    actual = run(graph, tmp_path, image=image)
    expected = classify(scores)
    assert actual.keys() == expected.keys() and graph.inputs[0].shape[0] == "B"
    for name in expected:
        np.testing.assert_array_equal(actual[name], expected[name])


def test_commands(digits, tmp_path):
    (tmp_path / "code.py").write_text(
        "import numpy as np\n\ndef scale(x):\n    return x * np.float32(2)\n\n"
        "def best(scores):\n    return np.argmax(scores, 1)\n"
    )
    name, out = digits.inputs[0].name, digits.outputs[0].name
    wrapped, half = tmp_path / "wrapped.onnx", tmp_path / "half.onnx"
    serde.save(serde.trace(lambda x: x * np.float32(0.5), digits.inputs[0].shape), half)
    code = tmp_path / "code.py"
    run_command("wrap", DIGITS, "-o", wrapped, "--pre", f"{code}:scale", "--post", f"{code}:best")
    x = RNG.normal(size=(2, 1, 8, 8)).astype("f4")
    joined = tmp_path / "joined.onnx"
    run_command("join", half, DIGITS, "-o", joined, "--connect", f"output={name}")
    direct = run(digits, tmp_path, **{name: x * 2})[out]
    (best,) = runtime.run(wrapped, {"x": x})
    np.testing.assert_array_equal(best, direct.argmax(1))
    (scores,) = runtime.run(joined, {"x": x * 4})
    np.testing.assert_allclose(scores, direct, atol=1e-6)


def run_command(*arguments):
    result = CliRunner().invoke(main, [str(a) for a in arguments])
    assert result.exit_code == 0, result.output


@pytest.mark.parametrize("place", ["nothing", "no_such_module:f", "json:nothing"])
def test_places_of_functions(place):
    with pytest.raises(UsageError):
        serde.wrap(serde.trace(lambda x: x, (3,)), place)


class TestNames:
    """Names of the user's dicts are kept, whatever else has them."""

    BODY = "g (float[N,3] x) => (float[N,3] y) { t = Relu(x)\n y = Tanh(t) }"
    X = RNG.standard_normal((2, 3)).astype(np.float32)

    @pytest.mark.parametrize("name", ["y", "t", "x", "new", "Mul", "const", "y_in"])
    def test_of_post(self, tmp_path, name):
        graph = serde.wrap(ir_of(self.BODY), post=lambda y: {name: y * 2, "kept": y})
        assert [v.name for v in graph.outputs] == [name, "kept"]
        (fed,) = (v.name for v in graph.inputs)
        assert fed == ("x_in" if name == "x" else "x")
        outputs = run(graph, tmp_path, **{fed: self.X})
        np.testing.assert_allclose(outputs[name], np.tanh(np.maximum(self.X, 0)) * 2, rtol=1e-5)
        np.testing.assert_allclose(outputs["kept"] * 2, outputs[name], rtol=1e-6)

    @pytest.mark.parametrize("name", ["x", "t", "raw"])
    def test_of_pre(self, tmp_path, name):
        scope = {}
        exec(f"def pre({name}): return {{'x': {name} - 1, 'more': {name} * 3}}", scope)
        graph = serde.wrap(ir_of(self.BODY), scope["pre"], inputs={name: (2, 3)})
        assert [v.name for v in graph.inputs] == [name]
        assert [v.name for v in graph.outputs] == ["y", "more"]
        outputs = run(graph, tmp_path, **{name: self.X})
        np.testing.assert_allclose(outputs["y"], np.tanh(np.maximum(self.X - 1, 0)), rtol=1e-5)
        np.testing.assert_allclose(outputs["more"], self.X * 3, rtol=1e-6)

    def test_of_traced_code(self, tmp_path):
        def swap(x, y):
            a = x * 2
            return {"y": a, "x": y + a, "Mul": a - 3, "const": a + 3}

        graph = serde.trace(swap, (2, 3), (2, 3))
        assert [v.name for v in graph.inputs] == ["x_in", "y_in"]
        outputs = run(graph, tmp_path, x_in=self.X, y_in=self.X + 1)
        assert list(outputs) == ["y", "x", "Mul", "const"]
        np.testing.assert_allclose(outputs["x"], self.X * 3 + 1, rtol=1e-6)
        assert len(graph.notes) == 2 and "'x' is called 'x_in'" in " ".join(graph.notes)

    def test_parameters_keep_theirs_where_results_have_none(self):
        graph = serde.trace(lambda output: output * 2, (2,))
        assert [v.name for v in graph.inputs] == ["output"]
        assert [v.name for v in graph.outputs] == ["output_1"]

    def test_two_results_of_one_name_are_refused(self):
        with pytest.raises(UsageError, match="two results are called 'a_b'"):
            serde.trace(lambda x: {"a_b": x, "a": {"b": x + 1}}, (2,))

    def test_appended_operators(self):
        for name in ("x", "t", "y"):
            graph = serde.append_argmax(ir_of(self.BODY), "y", name=name)
            assert [v.name for v in graph.outputs] == [name]
