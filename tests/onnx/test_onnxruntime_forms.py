"""Forms that ONNX Runtime gets wrong: what is written computes the same with its optimizers.

To measure a release, run this file with it in ``PYTHONPATH``.
"""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import numpy as np
import onnx
import onnxruntime
import pytest

from serde.formats.onnx.consumers.onnxruntime.forms import FORMS, MEASURED
from serde.formats.onnx.from_ir import from_ir
from serde.formats.onnx.writer import to_proto
from serde.legalize.convert import raise_to_ir
from testing.onnx_live import LEVELS, OPTIMIZED, PLAIN, decode_text, model_of, run_at, run_model

RELEASE = onnxruntime.__version__
IS_RECENT = tuple(map(int, RELEASE.split(".")[:2])) >= (1, 27)
PAD = "int64[8] p = {0,0,1,1,0,0,1,1}, float z = {0}"
RESIZE = '<mode="cubic", coordinate_transformation_mode="half_pixel">'
PAIR = "s = {0.1}, int8 z = {3}"
ONE = 0x3C00  # the bits of 1 in float16
OPSETS = {
    "moved-int8": 21,
    "multiplied-int8": 21,
    "pooled-regions": 22,
}  # that a form is wrong at, where not at 17
REPRODUCTIONS = {  # of each form: the smallest model, and the shapes of its inputs
    "moved-int8": (
        f"g (float[3,4] x) => (float[4,3] y) <float {PAIR}> {{ q = QuantizeLinear(x, s, z)"
        " d = DequantizeLinear(q, s, z) y = Transpose<perm=[1,0]>(d) }",
        [(3, 4)],
    ),
    "multiplied-int8": (
        f"g (float[2,3,4] x) => (float[2,3,4] y) <float {PAIR}, float[4] b = {{1, 2, 3, 4}},"
        " float[4,4] w = {1, 2, 3, 4, 5, 6, 7, 8, 9, 8, 7, 6, 5, 4, 3, 2}>"
        " { q = QuantizeLinear(x, s, z) d = DequantizeLinear(q, s, z) m = MatMul(d, w)"
        " y = Add(m, b) }",
        [(2, 3, 4)],
    ),
    "pad-pool": (
        "g (float[1,1,4,4] x) => (float[1,1,2,2] y)"
        f" <{PAD}> {{ t = Pad(x, p, z) y = MaxPool<kernel_shape=[3,3], strides=[2,2]>(t) }}",
        [(1, 1, 4, 4)],
    ),
    "pads-reach-kernel": (
        "g (float[1,1,4] x) => (float[1,1,7] y)"
        " { y = AveragePool<kernel_shape=[2], pads=[2,2], count_include_pad=1>(x) }",
        [(1, 1, 4)],
    ),
    "pooled-regions": (
        "g (float[1,2,5,6] x) => (float[2,2,2,3] y)"
        " <float[2,5] r = {0,0,1,4,5, 0,-3,2,9,9}>"
        " { y = MaxRoiPool<pooled_shape=[2,3], spatial_scale=0.8>(x, r) }",
        [(1, 2, 5, 6)],
    ),
    "transposed-matrix-vector": (
        "g (float[3,4] a, float[3] b) => (float[4] y)"
        " { t = Transpose<perm=[1,0]>(a) y = MatMul(t, b) }",
        [(3, 4), (3,)],
    ),
    "transposed-half": (
        "g (float[2,3,4] x) => (float[3,2,5] y)"
        f" <float16[4,5] w = {{{ONE},0,0,0,{ONE}, 0,{ONE},0,0,0, 0,0,{ONE},0,0, 0,0,0,{ONE},0}}>"
        " { h = Cast<to=10>(x)"
        " t = Transpose<perm=[1,0,2]>(h) m = MatMul(t, w) y = Cast<to=1>(m) }",
        [(2, 3, 4)],
    ),
    "transposed-resize": (
        "g (float[1,4,3,3] x) => (float[1,3,2,3] y) <int64[4] s = {1,3,3,2}>"
        f" {{ t = Transpose<perm=[0,3,1,2]>(x) r = Resize{RESIZE}(t,,,s)"
        " y = Transpose<perm=[0,2,3,1]>(r) }",
        [(1, 4, 3, 3)],
    ),
}


def feeds_of(model: onnx.ModelProto, shapes, seed: int = 0) -> dict[str, np.ndarray]:
    """Negative numbers for images, which show what becomes of zeros around them."""
    rng = np.random.default_rng(seed)
    held = {t.name for t in model.graph.initializer}  # inputs as well before IR version 4
    names = [i.name for i in model.graph.input if i.name not in held]
    return {n: -rng.uniform(1, 2, s).astype("f") for n, s in zip(names, shapes, strict=True)}


def convert(body: str, opset: int) -> onnx.ModelProto:
    return to_proto(from_ir(raise_to_ir(decode_text(body, 17)), opset))


@pytest.mark.parametrize("name", FORMS)
def test_a_form_is_wrong_in_the_releases_that_are_declared(name: str, tmp_path: Path) -> None:
    if RELEASE not in MEASURED:
        pytest.skip(f"ONNX Runtime {RELEASE} is not among those measured")
    body, shapes = REPRODUCTIONS[name]
    model = model_of(body, OPSETS.get(name, 17), 10)
    feeds = feeds_of(model, shapes)
    if FORMS[name].effect.startswith("the process ends"):
        assert loads(model, tmp_path / "m.onnx") == (RELEASE not in FORMS[name].releases)
        return
    try:
        optimized, plain = (run_at(level, model, feeds)[0] for level in LEVELS)
        is_right = optimized.shape == plain.shape and np.allclose(optimized, plain)
    except Exception:  # its exceptions have no common base but this
        is_right = False
    assert is_right == (RELEASE not in FORMS[name].releases)


def loads(model: onnx.ModelProto, path: Path) -> bool:
    """Whether a process of its own loads a model, with all optimizers."""
    onnx.save(model, path)
    load = "import onnxruntime, sys; onnxruntime.InferenceSession(sys.argv[1])"
    return not subprocess.run([sys.executable, "-c", load, path], capture_output=True).returncode


@pytest.mark.parametrize("opset", [13, 17, 21])
@pytest.mark.parametrize("perm", ["1,2,0", "1,2,0,3", "1,2,3,0"])
def test_halves_whose_first_axis_moves_are_multiplied(
    perm: str, opset: int, tmp_path: Path
) -> None:
    shape = [4, 3, 2, 4][: len(perm) // 2 + 1]
    body = (
        f"g (float[{','.join(map(str, shape))}] x) => (float[{','.join('abcd'[: len(shape)])}] y)"
        f" <float16[4,2] w = {{{ONE},0, 0,{ONE}, 0,0, 0,0}}> {{ h = Cast<to=10>(x)"
        f" t = Transpose<perm=[{perm}]>(h) m = MatMul(t, w) y = Cast<to=1>(m) }}"
    )
    model = convert(body, opset)
    assert loads(model, tmp_path / "m.onnx")
    feeds = {"x": np.arange(np.prod(shape), dtype="f").reshape(shape)}
    np.testing.assert_array_equal(run_model(model, feeds)[0], reference(body, feeds)[0])


@pytest.mark.parametrize("opset", [8, 9, 10, 11, 13, 17, 18, 21, 23])
@pytest.mark.parametrize("name", FORMS)
def test_what_is_written_for_a_form_is_right(name: str, opset: int) -> None:
    body, shapes = REPRODUCTIONS[name]
    model = convert(body, opset)
    feeds = feeds_of(model, shapes)
    (y,) = run_model(model, feeds)
    (expected,) = reference(body, feeds)
    np.testing.assert_allclose(y, expected, 1e-4, 1e-5)


def reference(body: str, feeds, opset: int = 21) -> list[np.ndarray]:
    from onnx.reference import ReferenceEvaluator

    if "MaxRoiPool" in body:  # which onnx does not evaluate
        return run_at(PLAIN, model_of(body, 17, 8), feeds)
    return list(ReferenceEvaluator(model_of(body, opset, 10)).run(None, feeds))


POOLS = {  # a pool, and whether it takes in the zeros before it as pads
    "MaxPool<kernel_shape=[3,3], strides=[2,2]>": False,
    "MaxPool<kernel_shape=[3,3], strides=[2,2], pads=[1,1,1,1]>": False,
    "MaxPool<kernel_shape=[2,2], strides=[2,2], ceil_mode=1>": False,
    "MaxPool<kernel_shape=[2,2], strides=[2,2], pads=[0,1,1,0], ceil_mode=1>": False,
    "MaxPool<kernel_shape=[2,2], dilations=[2,2]>": False,
    "AveragePool<kernel_shape=[3,3], strides=[2,2]>": True,
    "AveragePool<kernel_shape=[3,3], pads=[1,1,1,1], count_include_pad=1>": True,
    "AveragePool<kernel_shape=[2,2], pads=[1,1,1,1], count_include_pad=1>": False,
    "AveragePool<kernel_shape=[3,3], strides=[2,2], pads=[1,1,1,1]>": False,
    "AveragePool<kernel_shape=[2,2], strides=[2,2], ceil_mode=1>": False,
}
SIZES = {"static": "1,2,6,5", "named": "N,2,H,W"}


@pytest.mark.parametrize("opset", [9, 10, 11, 17, 18, 21])
@pytest.mark.parametrize("sizes", SIZES)
@pytest.mark.parametrize("pool", POOLS)
def test_zeros_before_a_pool_stay(pool: str, sizes: str, opset: int) -> None:
    body = (
        f"g (float[{SIZES[sizes]}] x) => (float[a,b,c,d] y) <{PAD}>"
        f" {{ t = Pad(x, p, z) y = {pool}(t) }}"
    )
    model = convert(body, opset)
    assert not any(is_fused(model, n) for n in model.graph.node)
    assert ("Pad" not in {n.op_type for n in model.graph.node}) == POOLS[pool]
    feeds = feeds_of(model, [(1, 2, 6, 5)])
    (expected,) = run_at(PLAIN, model_of(body, 17, 8), feeds)
    np.testing.assert_allclose(run_model(model, feeds)[0], expected, 1e-5)


def is_fused(model: onnx.ModelProto, pool: onnx.NodeProto) -> bool:
    """Whether a Pad of zeros stands before a pool in the form that ONNX Runtime fuses."""
    producers = {n.output[0]: n for n in model.graph.node}
    pad = producers.get(pool.input[0])
    if pad is not None and pad.op_type == "Cast":
        pad = producers.get(pad.input[0])
    attrs = {a.name: onnx.helper.get_attribute_value(a) for a in pool.attribute}
    if pool.op_type not in ("MaxPool", "AveragePool") or pad is None or pad.op_type != "Pad":
        return False
    if len(pad.input) > 3 or attrs.get("auto_pad") == b"VALID":
        return False
    held = {t.name: onnx.numpy_helper.to_array(t) for t in model.graph.initializer}
    if len(pad.input) > 1:
        return pad.input[1] in held and not any(held[pad.input[2]].tobytes())
    return not next((a.f for a in pad.attribute if a.name == "value"), 0.0)


@pytest.mark.parametrize("opset", [11, 17, 21])
def test_zeros_are_seen_through_a_cast(opset: int) -> None:
    body = (
        "g (float16[1,2,6,5] x) => (float[a,b,c,d] y)"
        " <int64[8] p = {0,0,1,1,0,0,1,1}, float16 z = {0}>"
        " { t = Pad(x, p, z) u = Cast<to=1>(t) y = MaxPool<kernel_shape=[3,3]>(u) }"
    )
    model = convert(body, opset)
    assert not any(is_fused(model, n) for n in model.graph.node)
    x = -np.random.default_rng(0).uniform(1, 2, (1, 2, 6, 5)).astype("float16")
    (y,) = run_model(model, {"x": x})
    np.testing.assert_array_equal(y, run_at(PLAIN, model, {"x": x})[0])


@pytest.mark.parametrize("opset", [9, 17, 21])
def test_pads_of_a_maximum_of_numbers_above_zero_are_its_own(opset: int) -> None:
    body = (
        f"g (float[N,2,6,5] x) => (float[a,b,c,d] y) <{PAD}> {{ r = Relu(x) t = Pad(r, p, z)"
        " y = MaxPool<kernel_shape=[3,3], strides=[2,2]>(t) }"
    )
    model = convert(body, opset)
    assert [n.op_type for n in model.graph.node] == ["Relu", "MaxPool"]
    x = np.random.default_rng(0).standard_normal((1, 2, 6, 5)).astype("f")
    (y,) = run_model(model, {"x": x})
    np.testing.assert_array_equal(y, run_at(PLAIN, model_of(body, 17, 8), {"x": x})[0])


MOVES = {
    "Transpose<perm=[0,2,1]>(d)": "",
    "Reshape(d, c)": "int64[2] c = {-1,2}",
    "Squeeze(d, c)": "int64[1] c = {0}",
    "Unsqueeze(d, c)": "int64[1] c = {1}",
    "Slice(d, c, e)": "int64[2] c = {0,1}, int64[2] e = {1,3}",
    "MaxPool<kernel_shape=[2]>(d)": "",
    "MaxPool<kernel_shape=[2], pads=[1,1], strides=[2]>(d)": "",
}


@pytest.mark.parametrize("opset", [13, 21, 23])
@pytest.mark.parametrize("sizes", ["1,3,4", "N,3,W"])
@pytest.mark.parametrize("kind", ["int8", "uint8"])
@pytest.mark.parametrize("move", MOVES)
def test_dequantized_elements_move_as_integers(
    move: str, kind: str, sizes: str, opset: int
) -> None:
    held = ", ".join(v for v in (f"float {PAIR.replace('int8', kind)}", MOVES[move]) if v)
    body = (
        f"g (float[{sizes}] x) => (float y, float r) <{held}> {{ q = QuantizeLinear(x, s, z)"
        f" d = DequantizeLinear(q, s, z) m = {move} n = Transpose(m) y = Sin(n) r = Sin(d) }}"
    )
    model = convert(body, opset)
    ops = [n.op_type for n in model.graph.node]
    moved = ops.index(move.split("<")[0].split("(")[0])
    is_moved = kind == "int8" and opset >= 21
    assert ("DequantizeLinear" in ops[moved:]) == is_moved
    x = np.random.default_rng(0).standard_normal((1, 3, 4)).astype("f")
    for actual, expected in zip(run_model(model, {"x": x}), reference(body, {"x": x}), strict=True):
        np.testing.assert_allclose(actual, expected, atol=1e-6)


def test_integers_of_scales_by_channel_stay_in_place() -> None:
    body = (
        "g (int8[2,3] x) => (float[3,2] y) <float[2] s = {0.1, 0.2}, int8[2] z = {1, 2}>"
        " { d = DequantizeLinear<axis=0>(x, s, z) y = Transpose<perm=[1,0]>(d) }"
    )
    model = convert(body, 21)
    assert [n.op_type for n in model.graph.node] == ["DequantizeLinear", "Transpose"]
    x = np.int8([[1, 2, 3], [-4, -5, 6]])
    np.testing.assert_allclose(run_model(model, {"x": x})[0], reference(body, {"x": x})[0])


REACHING = [  # pads that reach the kernel
    "AveragePool<kernel_shape=[2], pads=[2,3], count_include_pad=1>",
    "AveragePool<kernel_shape=[3], pads=[3,0], strides=[2], count_include_pad=1>",
    "MaxPool<kernel_shape=[2], pads=[2,2], strides=[3]>",
    "LpPool<kernel_shape=[2], pads=[2,2], p=2>",
]


@pytest.mark.parametrize("opset", [7, 9, 11, 17, 18, 21])
@pytest.mark.parametrize("size", ["5", "L"])
@pytest.mark.parametrize("pool", REACHING)
def test_pads_that_reach_the_kernel(pool: str, size: str, opset: int) -> None:
    body = f"g (float[1,2,{size}] x) => (float[a,b,c] y) {{ y = {pool}(x) }}"
    model = convert(body, opset)
    feeds = feeds_of(model, [(1, 2, 5)])
    (y,) = run_model(model, feeds)
    op, attrs = pool.split("<")[0], onnx.parser.parse_node(f"y = {pool}(x)").attribute
    values = {a.name: onnx.helper.get_attribute_value(a) for a in attrs}
    np.testing.assert_allclose(y, pool_along(feeds["x"], op, **values), 1e-5)


def pool_along(x, op, kernel_shape, pads, strides=(1,), **_) -> np.ndarray:
    """What a pool with the elements of its pads counted computes along one axis."""
    fill = np.finfo("f").min if op == "MaxPool" else 0.0
    x = np.pad(x, ((0, 0), (0, 0), tuple(pads)), constant_values=fill)
    view = np.lib.stride_tricks.sliding_window_view(x, kernel_shape[0], 2)[:, :, :: strides[0]]
    if op == "LpPool":
        return np.sqrt((view.astype(float) ** 2).sum(-1)).astype("f")
    return view.max(-1) if op == "MaxPool" else view.mean(-1, dtype=float).astype("f")


VECTORS = [  # products with a vector, and the shapes of their operands
    ("t = Transpose<perm=[1,0]>(a) y = MatMul(t, b)", (3, 4), (3,)),
    ("t = Transpose<perm=[0,2,1]>(a) y = MatMul(t, b)", (2, 3, 4), (3,)),
    ("t = Transpose<perm=[1,0]>(a) u = Relu(t) y = MatMul(u, b)", (3, 4), (3,)),
    ("t = Transpose<perm=[1,0]>(a) u = Mul(t, t) v = Neg(u) y = MatMul(v, b)", (3, 4), (3,)),
    ("t = Transpose<perm=[1,2,0]>(a) y = MatMul(t, b)", (2, 3, 4), (2,)),
    ("t = Transpose<perm=[1,0]>(b) y = MatMul(a, t)", (3,), (4, 3)),
]


@pytest.mark.parametrize("opset", [9, 13, 17, 21])
@pytest.mark.parametrize("kind", ["float", "double", "int32"])
@pytest.mark.parametrize(("nodes", "a", "b"), VECTORS)
def test_products_with_a_vector(nodes: str, a, b, kind: str, opset: int) -> None:
    if kind == "int32" and "Relu" in nodes:
        nodes = nodes.replace("Relu", "Abs")
    shapes = (",".join(map(str, s)) for s in (a, b))
    typed = ", ".join(f"{kind}[{s}] {n}" for s, n in zip(shapes, "ab", strict=True))
    names = ", ".join(f"d{i}" for i in range(max(len(a), len(b)) - 1))
    body = f"g ({typed}) => ({kind}[{names}] y) {{ {nodes} }}"
    rng = np.random.default_rng(0)
    dtype = {"float": "f4", "double": "f8", "int32": "i4"}[kind]
    feeds = {n: (9 * rng.standard_normal(s)).astype(dtype) for n, s in (("a", a), ("b", b))}
    (expected,) = run_at(PLAIN, model_of(body, 17, 8), feeds)
    np.testing.assert_allclose(run_model(convert(body, opset), feeds)[0], expected, 1e-4, 1e-4)


RESIZES = {  # a Resize, the values of its operands by opset 18's axes or without them
    "cubic": ('mode="cubic"', "1,{c},5,7"),
    "cubic, antialiased": ('mode="cubic", antialias=1', "1,{c},5,7"),
    "cubic axes": ('mode="cubic", axes=[2,3]', "5,7"),
    "linear axes": ('mode="linear", axes=[2,3]', "5,7"),
    "linear axes, other order": ('mode="linear", axes=[3,2]', "7,5"),
    "not larger": ('mode="linear", axes=[2,3], keep_aspect_ratio_policy="not_larger"', "5,7"),
}


@pytest.mark.parametrize("opset", [18, 21])
@pytest.mark.parametrize("channels", [1, 3])
@pytest.mark.parametrize("batch", ["1", "2", "N"])
@pytest.mark.parametrize("name", RESIZES)
def test_resized_images_with_channels_last(name, batch, channels, opset) -> None:
    attrs, sizes = RESIZES[name]
    sizes = sizes.format(c=channels)
    if "axes" not in attrs:
        sizes = batch.replace("N", "1") + sizes[1:]
    body = (
        f"g (float[{batch},4,3,{channels}] x) => (float[a,b,c,d] y)"
        f" <int64[{sizes.count(',') + 1}] s = {{{sizes}}}> {{ t = Transpose<perm=[0,3,1,2]>(x)"
        f" r = Resize<{attrs}>(t,,,s) y = Transpose<perm=[0,2,3,1]>(r) }}"
    )
    source = model_of(body, opset)
    model = to_proto(from_ir(raise_to_ir(decode_text(body, opset)), opset))
    feeds = feeds_of(model, [(2 if batch == "2" else 1, 4, 3, channels)])
    (expected,) = run_at(PLAIN, source, feeds)
    np.testing.assert_allclose(run_model(model, feeds)[0], expected, 1e-4, 1e-5)


def test_models_without_such_forms_stay_as_they_are() -> None:
    body = (
        "g (float[N,3,8,8] x, float[4,3,3,3] w, float[4,5] m) => (float[N,4,6,5] y)"
        " { c = Conv<kernel_shape=[3,3], pads=[1,1,1,1]>(x, w)"
        " p = MaxPool<kernel_shape=[3,3], pads=[1,1,1,1], strides=[2,2]>(c)"
        " t = Transpose<perm=[0,2,3,1]>(p) y = MatMul(t, m) }"
    )
    model = convert(body, 17)
    assert [n.op_type for n in model.graph.node] == ["Conv", "MaxPool", "Transpose", "MatMul"]


def test_defaults_are_left_out() -> None:
    body = (
        "g (float[1,4,8,8] x) => (float[a,b,c,d] y)"
        " { p = AveragePool<kernel_shape=[2,2], dilations=[1,1]>(x)"
        " q = LeakyRelu<alpha=0.01>(p) r = LeakyRelu<alpha=0.5>(q) y = Softmax<axis=-1>(r) }"
    )
    model = to_proto(from_ir(raise_to_ir(decode_text(body, 21)), 21))
    attrs = [sorted(a.name for a in n.attribute) for n in model.graph.node]
    assert attrs == [["kernel_shape", "pads", "strides"], [], ["alpha"], ["axis"]]


def test_defaults_that_a_consumer_looks_up_are_written() -> None:
    """pnnx knows Pad and Resize by attributes, and takes none for granted."""
    body = (
        "g (float[1,4,8,8] x) => (float[1,4,18,18] y)"
        " <int64[8] p = {0,0,1,1,0,0,0,0}, float[4] s = {1.0,1.0,2.0,2.0}>"
        " { q = Pad(x, p) r = LeakyRelu<alpha=0.01>(q)"
        ' y = Resize<coordinate_transformation_mode="asymmetric", nearest_mode="floor">(r, , s) }'
    )
    model = to_proto(from_ir(raise_to_ir(decode_text(body, 17)), 17, profile="ncnn"))
    attrs = {n.op_type: sorted(a.name for a in n.attribute) for n in model.graph.node}
    sampling = ["coordinate_transformation_mode", "mode", "nearest_mode"]
    assert attrs == {"Pad": ["mode"], "LeakyRelu": [], "Resize": sampling}


def test_quantized_pools_load_at_every_opset() -> None:
    body = (
        "g (float[1,4,8,8] x) => (float[1,4,4,4] y) <float s = {0.05}, int8 z = {3}>"
        " { q = QuantizeLinear(x, s, z) d = DequantizeLinear(q, s, z)"
        " p = AveragePool<kernel_shape=[2,2], strides=[2,2]>(d)"
        " r = QuantizeLinear(p, s, z) y = DequantizeLinear(r, s, z) }"
    )
    x = np.random.default_rng(0).standard_normal((1, 4, 8, 8)).astype("f")
    for opset in (13, 17, 18, 19, 21, 25):
        if opset < 25 or IS_RECENT:
            (y,) = run_at(OPTIMIZED, convert(body, opset), {"x": x})
            assert abs(y - x.reshape(1, 4, 4, 2, 4, 2).mean((3, 5))).max() < 0.06


@pytest.mark.skipif(not IS_RECENT, reason="opset 25 is too new for this ONNX Runtime")
def test_attention_loads_at_every_opset() -> None:
    body = (
        "g (float[1,1,2,2] q, float[1,1,2,2] k, float[1,1,2,2] v) => (float[1,1,2,2] y)"
        " { y = Attention(q, k, v) }"
    )
    graph = raise_to_ir(decode_text(body, 23))
    feeds = {n: np.ones((1, 1, 2, 2), "f") for n in "qkv"}
    for opset in (23, 24, 25):
        model = to_proto(from_ir(graph, opset))
        assert not model.graph.node[0].attribute
        np.testing.assert_allclose(run_model(model, feeds)[0], np.ones((1, 1, 2, 2)))
