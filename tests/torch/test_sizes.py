"""Sizes that are computed are integers of the source, which ``torch.export`` follows."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import numpy as np
import onnx
import onnxruntime
import pytest

import serde
from serde.bridges.torch import TorchWorker
from testing.onnx_live import ir_of
from tests.torch.torch_live import VARIABLE, why_not

HEAD = '<ir_version: 8, opset_import: ["": 17]>\n'
# Bodies after ``c``, a tensor whose sizes no name tells, and ``s``, its shape.
MODELS = {
    "parts of a shape": """a = Gather(s, zero) b = Slice(s, one, two) m = Unsqueeze(a, zero1)
        t = Concat<axis = 0>(m, b, less) y = Reshape(c, t)""",
    "an expanded size": """e = Equal(s, less2) o = ConstantOfShape<value = int64[1] {1}>(count2)
        w = Where(e, o, s) p = Slice(c, zero1, one, zero1) y = Expand(p, w)""",
    "products and quotients": """a = Gather(s, zero) b = Gather(s, one0) m = Mul(a, b)
        h = Div(m, two0) u = Unsqueeze(h, zero1) t = Concat<axis = 0>(u, two) y = Reshape(c, t)""",
    "a remainder": """a = Gather(s, zero1) r = Mod(a, two) p = Concat<axis = 0>(zero1, zero1, r, zero1)
        y = Pad(c, p)""",
    "a range": """a = Gather(s, zero) r = Range(zero, a, one0) f = Cast<to = 1>(r)
        u = Unsqueeze(f, one) y = Add(c, u)""",
    "a shape of zeros": """o = ConstantOfShape<value = float[1] {2.0}>(s) y = Add(c, o)""",
    "a number of elements": """n = Size(c) u = Unsqueeze(n, zero1) y = Reshape(c, u)""",
    "a product of sizes": """n = ReduceProd<keepdims = 1>(s) y = Reshape(c, n)""",
    "the smaller size": """a = Gather(s, zero1) b = Gather(s, one) m = Min(a, b)
        y = Slice(c, zero1, m, one)""",
    "sizes of int32": """i = Cast<to = 6>(s) j = Add(i, i) q = Cast<to = 7>(j) p = Div(q, two)
        y = Reshape(c, p)""",
    "repeats": """a = Gather(s, zero1) t = Concat<axis = 0>(a, one) y = Tile(c, t)""",
    "equal parts": """a = Gather(s, one) h = Div(a, two) p = Concat<axis = 0>(h, h)
        y, z = Split<axis = 1>(c, p)""",
    "the largest of half": """a = Gather(s, one) h = Div(a, two) y, z = TopK(c, h)""",
    "a size that is one": """a = Gather(s, zero1) e = Greater(a, two) w = Where(e, one, two)
        t = Concat<axis = 0>(w, less) y = Reshape(c, t)""",
}  # fmt: skip
CONSTANTS = {"zero": 0, "one0": 1, "two0": 2, "zero1": [0], "one": [1], "two": [2], "less": [-1],
             "less2": [-1, -1], "count2": [2], "starts": [0, 0]}  # fmt: skip

pytestmark = pytest.mark.skipif(bool(why_not()), reason=why_not() or "there is one")


def make_model(name: str) -> onnx.ModelProto:
    """The model of a name: ``c`` has the smaller of two sizes along each axis, which has no name."""
    results = ["y", "z"] if "z = " in MODELS[name] or "y, z" in MODELS[name] else ["y"]
    model = onnx.parser.parse_model(HEAD + f"""g (float[N,M] x, float[K,L] k) => (float y) {{
        ends = Shape(k) c = Slice(x, starts, ends) s = Shape(c) {MODELS[name]}
    }}""")  # fmt: skip
    del model.graph.output[:]
    model.graph.output.extend(onnx.helper.make_empty_tensor_value_info(r) for r in results)
    model.graph.initializer.extend(
        onnx.numpy_helper.from_array(np.array(n, np.int64), name) for name, n in CONSTANTS.items()
    )
    return model


@pytest.fixture(scope="module")
def folder(tmp_path_factory) -> Path:
    """The modules of all models, and what their exported programs compute of other sizes."""
    place = tmp_path_factory.mktemp("sizes")
    for name in MODELS:
        path = place / f"{name.replace(' ', '_')}.py"
        serde.convert(make_model(name), path)
        for number, sizes in ((1, ((6, 8), (4, 6))), (2, ((9, 12), (6, 10)))):
            generator = np.random.default_rng(number)
            arrays = [generator.standard_normal(s, np.float32) for s in sizes]
            np.savez(path.with_suffix(f".{number}.npz"), *arrays)
    script = Path(__file__).with_name("export_step.py")
    command = [os.environ.get(VARIABLE) or sys.executable, script, place]
    done = subprocess.run(command, capture_output=True, text=True)
    assert not done.returncode, done.stderr
    return place


@pytest.mark.parametrize("name", MODELS)
def test_the_exported_program_computes_what_onnx_runtime_does(name: str, folder: Path) -> None:
    path = folder / f"{name.replace(' ', '_')}.py"
    body = path.read_text().partition("def load")[0]
    assert not any(word in body for word in (".tolist()", ".item()", "torch.tensor"))
    reason = path.with_suffix(".txt")
    assert not reason.exists(), reason.read_text()
    session = onnxruntime.InferenceSession(make_model(name).SerializeToString())
    with np.load(path.with_suffix(".2.npz")) as arrays:
        feeds = dict(zip(("x", "k"), arrays.values(), strict=True))
    with np.load(path.with_suffix(".out.npz")) as got:
        for actual, expected in zip(got.values(), session.run(None, feeds), strict=True):
            assert actual.shape == expected.shape
            np.testing.assert_allclose(actual, expected, rtol=1e-6)


def test_a_shape_that_is_two_results_is_followed_still(tmp_path: Path) -> None:
    graph = ir_of("""g (float[3,M,5] x) => (int64[3] a, int64[3] b, float[] y)
        <int64[3] i = {0, 2, 1}> { s = Shape(x) a = Gather(s, i) b = Identity(a) y = Reshape(x, a) }""")
    serde.save(graph, tmp_path / "n.py")
    x = np.random.default_rng(0).standard_normal((3, 2, 5), np.float32)
    got = TorchWorker().run(str(tmp_path / "n.py"), [x])
    for actual, right in zip(got, ([3, 5, 2], [3, 5, 2], x.reshape(3, 5, 2)), strict=True):
        np.testing.assert_array_equal(actual, right)


FROM_DATA = {  # of what an operand holds
    "pads": ("y = Pad(x, n)", [1, 0, 2, -1]),
    "pads of some axes": ("y = Pad(x, n, , last)", [2, 1]),
    "pads with what is there": ("y = Pad<mode = 'edge'>(x, n)", [0, 2, 0, 1]),
}


@pytest.mark.parametrize("name", FROM_DATA)
def test_sizes_are_elements_of_an_input(name: str, tmp_path: Path) -> None:
    body, numbers = FROM_DATA[name]
    model = onnx.parser.parse_model(
        f"""<ir_version: 8, opset_import: ["": 19]> g (float[3,M] x, int64[{len(numbers)}] n) =>
        (float[A,B] y) <int64[1] last = {{1}}> {{ {body} }}""".replace("'", '"')
    )
    serde.convert(model, tmp_path / "n.py")
    feeds = [np.random.default_rng(0).standard_normal((3, 4), np.float32), np.array(numbers)]
    (got,) = TorchWorker().run(str(tmp_path / "n.py"), feeds)
    session = onnxruntime.InferenceSession(model.SerializeToString())
    (expected,) = session.run(None, dict(zip("xn", feeds, strict=True)))
    np.testing.assert_array_equal(got, expected)


def test_a_slice_goes_backwards_from_before_the_front(tmp_path: Path) -> None:
    graph = ir_of("""g (float[1,3] x) => (float[] y) <int64[2] b = {-9, -9}, int64[2] e = {-9, -9},
        int64[2] a = {0, 1}, int64[2] s = {-2, -1}> { y = Slice(x, b, e, a, s) }""")
    serde.save(graph, tmp_path / "n.py")
    (got,) = TorchWorker().run(str(tmp_path / "n.py"), [np.array([[1, 2, 3]], np.float32)])
    np.testing.assert_array_equal(got, [[1]])


ENDS = (-(2**63) + 1, -3, -2, -1, 0, 2, 9)


@pytest.mark.parametrize("step", [-1, -2])
def test_slices_of_named_sizes_go_backwards(step: int, tmp_path: Path) -> None:
    pairs = [(begin, end) for begin in ENDS for end in ENDS]
    names = [f"y{at}" for at in range(len(pairs))]
    slices = "".join(f"{n} = Slice(x, b{n}, e{n}, axis, step) " for n in names)
    results = ", ".join(f"float[2,K] {n}" for n in names)
    model = onnx.parser.parse_model(f"{HEAD} g (float[2,N] x) => ({results}) {{ {slices} }}")
    numbers = {"axis": 1, "step": step}
    for name, (begin, end) in zip(names, pairs, strict=True):
        numbers |= {f"b{name}": begin, f"e{name}": end}
    model.graph.initializer.extend(
        onnx.numpy_helper.from_array(np.array([v], np.int64), n) for n, v in numbers.items()
    )
    for result in model.graph.output:  # the sizes are not all the same
        result.type.tensor_type.shape.dim[1].dim_param = f"of {result.name}"
    serde.convert(model, tmp_path / "n.py")
    session = onnxruntime.InferenceSession(model.SerializeToString())
    worker = TorchWorker()
    for size in (1, 2, 3, 4, 7):
        x = np.arange(2 * size, dtype=np.float32).reshape(2, size)
        got = worker.run(str(tmp_path / "n.py"), [x])
        for pair, a, b in zip(pairs, got, session.run(None, {"x": x}), strict=True):
            np.testing.assert_array_equal(a, b, err_msg=f"{pair} of {size}")


BODIES = [  # with the size of the last axis, which is squeezed if it is one
    (1, "u = Unsqueeze(v, last) c = Conv(u, w) y = ReduceMean<axes = [1], keepdims = 0>(c)"),
    (2, "c = Conv(v, w) r = Relu(c) y = ReduceMean<axes = [-1], keepdims = 0>(r)"),
    (1, "y = LayerNormalization<axis = -1>(v, k)"),
]


@pytest.mark.parametrize(("size", "body"), BODIES)
def test_layers_take_tensors_of_unknown_rank(size: int, body: str, tmp_path: Path) -> None:
    """PyTorch's ``squeeze`` of an axis is exported as two branches of different ranks."""
    text = """<ir_version: 8, opset_import: ["": 17]> g (float[N,3,L] x) => (float[] y)
        <int64[1] last = {-1}, int64[1] first = {1}> {
        s = Shape(x) n = Gather(s, last) e = Equal(n, first)
        v = If(e) <then_branch = t () => (float[N,3] a) { a = Squeeze(x, last) },
                   else_branch = f () => (float[N,3,L] b) { b = Identity(x) }>
        BODY }"""
    model = onnx.parser.parse_model(text.replace("BODY", body))
    generator = np.random.default_rng(0)
    for name, shape in (("w", (4, 3, 1)), ("k", (3,))):
        weight = generator.standard_normal(shape, np.float32)
        model.graph.initializer.append(onnx.numpy_helper.from_array(weight, name))
    serde.convert(model, tmp_path / "n.py")
    x = generator.standard_normal((2, 3, size), np.float32)
    (got,) = TorchWorker().run(str(tmp_path / "n.py"), [x])
    (right,) = onnxruntime.InferenceSession(model.SerializeToString()).run(None, {"x": x})
    np.testing.assert_allclose(got, right, rtol=1e-5, atol=1e-6)
