"""The profile relax: what it writes runs in live Relax, what it refuses it names."""

from __future__ import annotations

import json
import os
import subprocess
import sysconfig
from pathlib import Path

import numpy as np
import onnx
import pytest
from onnx import TensorProto, helper, numpy_helper

import serde
from conformance.relax_models import in_relax
from serde.errors import Unconvertible, UsageError
from serde.formats.onnx.consumers.relax.target import OPSET
from serde.formats.onnx.from_ir import from_ir
from serde.formats.onnx.reader import decode
from serde.formats.onnx.writer import to_proto
from serde.legalize.convert import raise_to_ir
from serde.passes import tidy
from testing import networks
from testing.node_cases import Case, all_cases, difference, freeze
from testing.onnx_live import error, model_of, run_model
from testing.relax.relax_live import RELAX, environment, run

# One test for each thing the importer lacks or gets wrong, and the profile says otherwise.
NODE_TESTS = """
test_lstm_with_peepholes test_gru_bidirectional test_simple_rnn_reverse test_scan9_sum
test_attention_23_boolmask_fullymasked_row_nan_robustness test_averagepool_2d_ceil
test_batchnorm_epsilon_training_mode test_bitshift_right_int8_shift_ge_width
test_celu_float16 test_constant_pad_negative_axes test_convtranspose_output_shape
test_einsum_batch_diagonal test_eyelike_with_dtype test_gridsample_bicubic test_if
test_isinf_negative test_layer_normalization_3d_axis1_epsilon test_lrn test_maxpool_2d_ceil
test_maxpool_with_argmax_2d_precomputed_pads test_mod_mixed_sign_float16
test_nonmaxsuppression_iou_threshold_boundary test_onehot_negative_indices
test_pow_types_int64_float32 test_prelu_broadcast test_qlinearconv test_reduce_max_bool_inputs
test_resize_downsample_scales_linear_align_corners test_resize_upsample_scales_cubic
test_roialign_mode_max test_top_k_negative_axis
test_attention_4d_gqa_with_past_and_present_fp16
test_attention_4d_gqa_with_past_and_present_fp16_expanded
""".split()


def rewrite(model: onnx.ModelProto) -> onnx.ModelProto:
    """The model as the profile writes it."""
    ir = tidy(raise_to_ir(decode(model)))
    return to_proto(from_ir(ir, profile="relax"))


def model(nodes, inputs, outputs, held=None, opset=17) -> onnx.ModelProto:
    """A model of nodes; inputs and outputs by name, shape and type."""
    ends = [
        [helper.make_tensor_value_info(n, t, s) for n, (t, s) in some.items()]
        for some in (inputs, outputs)
    ]
    held = [numpy_helper.from_array(np.asarray(a), n) for n, a in (held or {}).items()]
    graph = helper.make_graph(nodes, "g", *ends, held)
    return helper.make_model(graph, opset_imports=[helper.make_opsetid("", opset)], ir_version=8)


def ran(proto: onnx.ModelProto, feeds, folder: Path) -> list[np.ndarray]:
    path = folder / "relax.onnx"
    onnx.save(proto, path)
    return run(str(path), {i.name: feeds[i.name] for i in proto.graph.input})


@pytest.mark.parametrize("name", NODE_TESTS)
def test_node_tests(name: str, tmp_path: Path) -> None:
    (case,) = [c for c in all_cases() if c.name == name]
    case = freeze(case) or case
    names = [i.name for i in case.model.graph.input]
    names = [n for n in names if n not in {t.name for t in case.model.graph.initializer}]
    for feeds, expected in case.data:
        got = ran(rewrite(case.model), dict(zip(names, feeds, strict=True)), tmp_path)
        held = Case(case.name, case.model, (), max(case.rtol, 2e-3), case.atol)
        assert difference(held, expected, got) is None


@pytest.mark.parametrize("name", ["lstm_states", "bert_interleaved"])
def test_networks(name: str, tmp_path: Path) -> None:
    network = networks.build(name)
    feeds = networks.feeds(network, 1)
    expected = networks.compute(network, feeds)
    symbol, _ = networks.export(network, tmp_path)
    got = in_relax(serde.load(symbol, inputs=feeds), feeds)
    assert max(error(a, b) for a, b in zip(got, expected, strict=True)) < 1e-4


INFINITE = np.full((2, 3), -np.inf, np.float32)


@pytest.mark.parametrize("op", ["ReduceMax", "ArgMax", "Hardmax"])
def test_what_is_infinite_throughout(op: str, tmp_path: Path) -> None:
    x, attrs = INFINITE, {"axes": [1]} if op == "ReduceMax" else {"axis": 1}
    kind = TensorProto.INT64 if op == "ArgMax" else TensorProto.FLOAT
    node = helper.make_node(op, ["x"], ["y"], **attrs)
    proto = model([node], {"x": (TensorProto.FLOAT, x.shape)}, {"y": (kind, None)})
    (got,) = ran(rewrite(proto), {"x": x}, tmp_path)
    np.testing.assert_array_equal(got, run_model(proto, {"x": x})[0])


def test_the_first_of_the_least_integers_is_found(tmp_path: Path) -> None:
    proto = model_of("g (uint16[2,3] x) => (int64[2,1] y) { y = ArgMax <axis = 1> (x) }", 17, 8)
    (got,) = ran(rewrite(proto), {"x": np.zeros((2, 3), np.uint16)}, tmp_path)
    assert got.tolist() == [[0], [0]]


def test_hardmax_of_symbolic_sizes(tmp_path: Path) -> None:
    proto = model_of("g (float[N,3] x) => (float[N,3] y) { y = Hardmax (x) }", 17, 8)
    feeds = {"x": np.array([[1, 3, 2], [-np.inf] * 3], np.float32)}
    (got,) = ran(rewrite(proto), feeds, tmp_path)
    assert got.tolist() == [[0, 1, 0], [1, 0, 0]]


@pytest.mark.parametrize("sizes", [[4, 3, 2], [1, 1, 1], [0, 2, 3]])
def test_constants_of_dynamic_shapes(sizes: list[int], tmp_path: Path) -> None:
    proto = model_of("g (int64[3] s) => (float[A,B,C] y) { y = ConstantOfShape (s) }", 17, 8)
    (got,) = ran(rewrite(proto), {"s": np.array(sizes)}, tmp_path)
    assert got.shape == tuple(sizes) and not got.any()


def test_fractions_of_integers_are_refused() -> None:
    proto = model_of("g (int32[2,2] x) => (y) { y = Gemm <alpha = 0.5> (x, x, x) }", 17, 8)
    with pytest.raises(Unconvertible, match="alpha=0.5, beta=1.0 of int32 elements"):
        rewrite(proto)


def test_all_that_cannot_be_said_is_listed(tmp_path: Path) -> None:
    nodes = [
        helper.make_node("Det", ["x"], ["a"]),
        helper.make_node("StringNormalizer", ["s"], ["b"]),
        helper.make_node("GatherND", ["n", "i"], ["c"]),
    ]
    kinds = {"x": (TensorProto.FLOAT, (2, 2)), "s": (TensorProto.STRING, (3,)),
             "n": (TensorProto.FLOAT, ("N", 2))}  # fmt: skip
    ends = {"a": (TensorProto.FLOAT, ()), "b": (TensorProto.STRING, (None,)),
            "c": (TensorProto.FLOAT, (1,))}  # fmt: skip
    path = tmp_path / "m.onnx"
    onnx.save(model(nodes, kinds, ends, {"i": np.array([[0, 1]])}), path)
    report = serde.check(path, to="relax")
    assert not report.ok
    reasons = {p.op: p.reason for p in report.problems}
    assert "strings" in reasons["input"]
    assert "(N, 2)" in reasons["GatherND"] and "static=" in reasons["GatherND"]
    assert reasons.keys() >= {"StringNormalizer"}
    assert serde.check(path, to="relax", outputs=["c"], static={"N": 3}).ok


def test_a_loop_of_unknown_turns_is_refused() -> None:
    (case,) = [c for c in all_cases() if c.name == "test_loop11"]
    with pytest.raises(Unconvertible, match="a loop of dynamic length"):
        rewrite(case.model)


def test_other_opsets_are_refused(tmp_path: Path) -> None:
    node = helper.make_node("Relu", ["x"], ["y"])
    flat = (TensorProto.FLOAT, (2,))
    onnx.save(model([node], {"x": flat}, {"y": flat}), tmp_path / "m.onnx")
    with pytest.raises(UsageError, match=f"opset {OPSET}"):
        serde.convert(tmp_path / "m.onnx", tmp_path / "n.onnx", profile="relax", opset=13)


def test_live_modules(tmp_path: Path) -> None:
    """Names with odd letters, two outputs, one of them integers."""
    if isinstance(why := RELAX.start(), str):
        pytest.skip(why)
    nodes = [
        helper.make_node("MatMul", ["in/put.1", "w"], ["h"]),
        helper.make_node("ArgMax", ["h"], ["best:0"], axis=1, keepdims=0),
    ]
    x, w = (np.random.default_rng(i).normal(size=(2, 4)).astype("float32") for i in (0, 1))
    ends = {"h": (TensorProto.FLOAT, (2, 2)), "best:0": (TensorProto.INT64, (2,))}
    proto = model(nodes, {"in/put.1": (TensorProto.FLOAT, x.shape)}, ends, {"w": w.T})
    path, feed = tmp_path / "m.onnx", tmp_path / "x.npy"
    onnx.save(proto, path)
    np.save(feed, x)
    folder, site = Path(os.environ["SERDE_RELAX"]), sysconfig.get_paths()["purelib"]
    script = Path(__file__).with_name("relax_script.py")
    done = subprocess.run(
        [folder / "v/bin/python", script, site, path, feed], text=True, check=True,
        capture_output=True, env=environment(folder), timeout=300,
    )  # fmt: skip
    names, (scores, best) = json.loads(done.stdout.splitlines()[-1])
    assert names == ["in/put.1"]
    np.testing.assert_allclose(scores, x @ w.T, rtol=1e-5)
    assert best == (x @ w.T).argmax(axis=1).tolist()


F32, I64 = TensorProto.FLOAT, TensorProto.INT64
EMPTY_AXES = np.zeros(0, np.int64)
PLACES = np.array([0, 2, 5, 7]).reshape(1, 1, 2, 2)


@pytest.mark.parametrize("noop", [0, 1])
@pytest.mark.parametrize("keepdims", [0, 1])
@pytest.mark.parametrize("axes", [None, EMPTY_AXES, np.array([1]), np.array([-1, 0])])
def test_sums_over_axes_and_none(noop: int, keepdims: int, axes, tmp_path: Path) -> None:
    node = helper.make_node("ReduceSum", ["x"] if axes is None else ["x", "axes"], ["y"],
                            keepdims=keepdims, noop_with_empty_axes=noop)  # fmt: skip
    x = np.random.default_rng(0).normal(size=(2, 3)).astype(np.float32)
    held = {} if axes is None else {"axes": axes}
    proto = model([node], {"x": (F32, x.shape)}, {"y": (F32, None)}, held)
    (got,) = ran(rewrite(proto), {"x": x}, tmp_path)
    np.testing.assert_allclose(got, run_model(proto, {"x": x})[0], rtol=1e-6)


@pytest.mark.parametrize("attrs", [{}, {"strides": [1, 1]}, {"strides": [2, 2]}, {"pads": [0] * 4}])
def test_unpooling_with_what_is_left_out(attrs, tmp_path: Path) -> None:
    node = helper.make_node("MaxUnpool", ["x", "i"], ["y"], kernel_shape=[2, 2], **attrs)
    feeds = {"x": np.arange(4, dtype=np.float32).reshape(1, 1, 2, 2), "i": PLACES}
    proto = model([node], {"x": (F32, (1, 1, 2, 2)), "i": (I64, (1, 1, 2, 2))}, {"y": (F32, None)})
    (got,) = ran(rewrite(proto), feeds, tmp_path)
    np.testing.assert_array_equal(got, run_model(proto, feeds)[0])


def test_a_slice_to_a_size_without_axes(tmp_path: Path) -> None:
    nodes = [
        helper.make_node("Shape", ["x"], ["s"]),
        helper.make_node("Gather", ["s", "zero"], ["end"]),
        helper.make_node("Slice", ["x", "first", "end", "axis"], ["y"]),
    ]
    held = {"zero": np.int64(0), "first": np.array([1]), "axis": np.array([0])}
    x = np.arange(24, dtype=np.float32).reshape(4, 6)
    proto = model(nodes, {"x": (F32, x.shape)}, {"y": (F32, None)}, held)
    (got,) = ran(rewrite(proto), {"x": x}, tmp_path)
    np.testing.assert_array_equal(got, x[1:])


SYMBOLIC_MODELS = {  # the text, the shapes of the inputs, those of the weights
    "a network of images": (
        "g (float[N,3,H,W] x, float[4,3,3,3] w, float[4] b, float[5,4] d) => (y) {"
        "c = Conv <pads = [1,1,1,1], strides = [2,2]> (x, w, b)"
        "n = BatchNormalization (c, b, b, b, b) \n r = LeakyRelu (n)"
        "m = MaxPool <kernel_shape = [2,2]> (r) \n v = AveragePool <kernel_shape = [2,1]> (m)"
        "p = GlobalAveragePool (v) \n f = Flatten (p)"
        "e = Gemm <transB = 1> (f, d) \n y = Softmax (e) }",
        {"x": ("N", 3, "H", "W")},
        {"w": (4, 3, 3, 3), "b": (4,), "d": (5, 4)},
    ),
    "attention": (
        "g (float[N,L,8] x, float[8,8] q, float[8,8] k, float[8] one) => (y)"
        "<int64[4] heads = {0, -1, 2, 4}, int64[3] whole = {0, -1, 8}, float scale = {0.5}> {"
        "n = LayerNormalization (x, one, one) \n a = MatMul (n, q) \n b = MatMul (n, k)"
        "ah = Reshape (a, heads) \n at = Transpose <perm = [0,2,1,3]> (ah)"
        "bh = Reshape (b, heads) \n bt = Transpose <perm = [0,2,3,1]> (bh)"
        "s = MatMul (at, bt) \n z = Mul (s, scale) \n p = Softmax (z)"
        "v = Transpose <perm = [0,2,1,3]> (bh) \n o = MatMul (p, v)"
        "t = Transpose <perm = [0,2,1,3]> (o) \n u = Reshape (t, whole) \n y = Add (u, x) }",
        {"x": ("N", "L", 8)},
        {"q": (8, 8), "k": (8, 8), "one": (8,)},
    ),
    "indexing and reductions": (
        "g (float[N,L] x, float[N,1] f) => (y)"
        "<int64[1] one = {1}, int64[1] last = {3}, int64[2] at = {0, 1}> {"
        "s = Slice (x, one, last, one) \n c = Concat <axis = 1> (x, s)"
        "g0 = Gather <axis = 1> (c, at) \n m = ReduceMax <axes = [1]> (c)"
        "t = ReduceSum (c, one) \n p = Pow (t, m) \n big = Less (p, m)"
        "w = Where (big, p, m) \n d = Div (w, f)"
        "a = ArgMax <axis = 0> (c) \n k = Cast <to = 1> (a) \n h = ReduceMean (k)"
        "q = Sub (d, h) \n y = Max (g0, q) }",
        {"x": ("N", "L"), "f": ("N", 1)},
        {},
    ),
}


@pytest.mark.parametrize("sizes", [(2, 5, 12, 9), (3, 7, 8, 14)])
@pytest.mark.parametrize("name", SYMBOLIC_MODELS)
def test_symbolic_sizes(name: str, sizes: tuple[int, ...], tmp_path: Path) -> None:
    body, shapes, weights = SYMBOLIC_MODELS[name]
    rng, numbers = np.random.default_rng(0), dict(zip("NLHW", sizes, strict=True))
    proto = model_of(body, 17, 8)
    kept = [i for i in proto.graph.input if i.name not in weights]
    del proto.graph.input[:]
    proto.graph.input.extend(kept)
    for weight, shape in weights.items():
        array = rng.uniform(0.1, 1, shape).astype(np.float32)
        proto.graph.initializer.append(numpy_helper.from_array(array, weight))
    feeds = {
        n: rng.uniform(0.5, 1, [numbers.get(d, d) for d in s]).astype(np.float32)
        for n, s in shapes.items()
    }
    (got,) = ran(rewrite(proto), feeds, tmp_path)
    (expected,) = run_model(proto, feeds)
    np.testing.assert_allclose(got, expected, rtol=1e-4, atol=1e-5)


@pytest.mark.parametrize(
    ("body", "op"),
    [
        ("g (float[N,4] x, int64[1,2] i) => (y) { y = GatherND (x, i) }", "GatherND"),
        ("g (float[N,4] x) => (y) { y = Shape (x) }", "Shape"),
        ("g (float[N,2,H,W] x) => (y) { y = MaxPool <kernel_shape = [2,2], strides = [2,2], "
         'auto_pad = "SAME_UPPER"> (x) }', "MaxPool"),
        ("g (float[N,4] x, int64[2] s) => (y) { y = Expand (x, s) }", "Expand"),
    ],
)  # fmt: skip
def test_symbolic_sizes_that_are_wrong_are_refused_by_name(body: str, op: str) -> None:
    with pytest.raises(Unconvertible) as caught:
        rewrite(model_of(body, 17, 8))
    (problem,) = [p for p in caught.value.problems if p.op == op]
    assert "symbolic" in problem.reason or "Relax gets no" in problem.reason


@pytest.mark.parametrize(
    ("body", "name"),
    [("(float[N,4] x, float[3,4] y) => (float[3,4] z) { z = Add(x, y) }", "N"),
     ("(float[2,N] x, float[M,2,1] y) => (float[M,2,N] z) { z = Mul(x, y) }", None),
     ("(float[N,4] x, float[M,4] y) => (float[P,4] z) { z = Max(x, y) }", "N"),
     ("(bool[3,1] c, float[3,H] x, float[3,5] y) => (float[3,5] z) { z = Where(c, x, y) }", "H"),
     ("(float[N,4] x, float[N,1] y) => (float[N,4] z) { z = Sub(x, y) }", None)],
)  # fmt: skip
def test_broadcasts_that_data_decides_are_refused(body: str, name: str | None) -> None:
    model = model_of(f"g {body}", 17, 8)
    if name is None:
        assert rewrite(model).graph.node
        return
    with pytest.raises(
        Unconvertible, match=rf"whether {name} is 1: give numbers \(--static {name}"
    ):
        rewrite(model)


UNNAMED = {  # the text, the shapes of the inputs
    "an image": (
        "g (float[?,?,?,?] x, float[4,3,3,3] w) => (y) { c = Conv (x, w) \n r = Relu (c)"
        "y = GlobalAveragePool (r) }",
        {"x": (2, 3, 6, 7), "w": (4, 3, 3, 3)},
    ),
    "a product": (
        "g (float[?,3] x, float[?,?] w) => (y) { y = MatMul (x, w) }", {"x": (2, 3), "w": (3, 5)}
    ),
    "one input twice": (
        "g (float[?,?] x) => (y) { a = Softmax (x) \n b = Concat <axis = 1> (a, x)"
        "c = Add (a, x) \n d = ReduceMax <axes = [1]> (b) \n y = Mul (c, d) }",
        {"x": (2, 3)},
    ),
}  # fmt: skip


@pytest.mark.parametrize("name", UNNAMED)
def test_sizes_without_a_name(name: str, tmp_path: Path) -> None:
    body, shapes = UNNAMED[name]
    proto, rng = model_of(body, 17, 8), np.random.default_rng(0)
    feeds = {n: rng.normal(size=s).astype(np.float32) for n, s in shapes.items()}
    written = rewrite(proto)
    dims = [d for i in written.graph.input for d in i.type.tensor_type.shape.dim]
    assert all(d.dim_value or d.dim_param for d in dims)
    (got,) = ran(written, feeds, tmp_path)
    np.testing.assert_allclose(got, run_model(proto, feeds)[0], rtol=1e-5, atol=1e-6)
