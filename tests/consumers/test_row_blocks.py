"""The profile onnxruntime: layers of integers in blocks of rows, with their scales and biases."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import onnx
import pytest
from onnx import numpy_helper

import serde
from serde.formats.onnx.consumers.onnxruntime import bias_rows
from testing.mxnet.int8 import needs_exact_int8
from testing.onnx_live import LEVELS, PLAIN, model_of, run_at

DEPTH, WIDTH, SIDE = 32, 64, 65  # 65 * 65 * 64 numbers: above what is worth blocks
SUMS = """
    sums = MatMulInteger(x, w, xz, wz)
    real = Cast<to = 1>(sums)
    biased = Add(real, bias)
    scaled = Mul(biased, scale)
"""
RESIDUAL = f"""
    g (uint8[{{batch}},{{side}},{{side}},{DEPTH}] x, uint8[{{batch}},{{side}},{{side}},{{width}}] r)
    => (uint8[A,B,C,D] y) {{{{
        {SUMS}
        held = DequantizeLinear(r, one, z)
        {{added}}
        least = Min(total, most)
        y = QuantizeLinear(least, one, z)
    }}}}
"""
ROWS = """
        flat = Reshape(held, {flat})
        left = Reshape(scaled, {flat})
        product = Gemm<alpha = 0.7>({operands}, left)
        {sizes}
        total = Reshape(product, sizes)
"""
SIZES = {
    "static": "sizes = Shape(scaled)",
    "by name": "n = Shape<start = 0, end = 1>(x)\n sizes = Concat<axis = 0>(n, others)",
}
LANES = ROWS.format(flat="lanes", operands="flat, same", sizes=SIZES["by name"])
ONE_ROW = ROWS.format(flat="row", operands="single, flat", sizes=SIZES["static"])
PLAIN_SUM = "total = Add(scaled, held)"


def model_with(text: str, draws: np.random.Generator, **given) -> onnx.ModelProto:
    """A model with the constants that ``text`` names."""
    width = given.get("bias", np.zeros(WIDTH)).size
    constants = {
        "w": draws.integers(1, 256, (DEPTH, width)).astype(np.uint8), "xz": np.uint8(0),
        "wz": np.uint8(128), "bias": draws.integers(-20_000, 20_000, width).astype(np.float32),
        "scale": draws.uniform(1e-4, 1e-3, width).astype(np.float32), "one": np.float32(1),
        "z": np.uint8(0), "most": np.float32(127), "lanes": np.array([-1, 16]),
        "row": np.array([1, -1]), "same": np.eye(16, dtype=np.float32),
        "single": np.ones((1, 1), np.float32), "others": np.array([SIDE, SIDE, width]),
    }  # fmt: skip
    source = model_of(text, 21)
    constants |= given
    read = {name for node in source.graph.node for name in node.input}
    source.graph.initializer.extend(
        numpy_helper.from_array(np.asarray(a), n) for n, a in constants.items() if n in read
    )
    return source


def residual(added: str, batch: object = 1, side: int = SIDE, **given) -> onnx.ModelProto:
    width = given.get("bias", np.zeros(WIDTH)).size
    text = RESIDUAL.format(added=added, batch=batch, side=side, width=width)
    return model_with(text, np.random.default_rng(0), **given)


def draw_feeds(batch: int = 1, side: int = SIDE, width: int = WIDTH) -> dict[str, np.ndarray]:
    draws = np.random.default_rng(1)
    sizes = {"x": DEPTH, "r": width}
    return {n: draws.integers(0, 256, (batch, side, side, c), np.uint8) for n, c in sizes.items()}


def convert(source: onnx.ModelProto, folder: Path) -> onnx.ModelProto:
    onnx.save(source, folder / "source.onnx")
    serde.convert(folder / "source.onnx", folder / "made.onnx", profile="onnxruntime")
    new_model = onnx.load(folder / "made.onnx")
    onnx.checker.check_model(new_model, full_check=True)
    return new_model


def branches(model: onnx.ModelProto) -> list[onnx.GraphProto]:
    """The two ways of computing integers."""
    return [a.g for n in model.graph.node if n.op_type == "If" for a in n.attribute]


def bodies(model: onnx.ModelProto) -> list[onnx.GraphProto]:
    """What is computed of a block, in each branch."""
    nodes = [n for g in (model.graph, *branches(model)) for n in g.node]
    loops = [n for n in nodes if n.op_type in ("Loop", "Scan")]
    return [a.g for n in loops for a in n.attribute if a.name == "body"]


def assert_same(new_model: onnx.ModelProto, source: onnx.ModelProto, feeds) -> None:
    for level in LEVELS:
        (got,), (expected,) = run_at(level, new_model, feeds), run_at(level, source, feeds)
        np.testing.assert_array_equal(got, expected, level, strict=True)
    assert not expected.size or len(np.unique(expected)) > 100


@needs_exact_int8
@pytest.mark.parametrize("added", [LANES, ONE_ROW, PLAIN_SUM], ids=["lanes", "one row", "sum"])
@pytest.mark.parametrize("batch", [1, 3])
def test_large_layers_are_computed_in_blocks(added, batch, tmp_path):
    source = residual(added, batch)
    new_model = convert(source, tmp_path)
    inside = [[n.op_type for n in body.node] for body in bodies(new_model)]
    assert len(inside) == 2 and inside[0] == inside[1]
    assert inside[0][0:2] == ["Concat", "MatMulIntegerToFloat"]
    assert inside[0][-1] == "QuantizeLinear" and "Cast" not in inside[0]
    assert_same(new_model, source, draw_feeds(batch))


@needs_exact_int8
@pytest.mark.parametrize("samples", [0, 1, 2])
def test_samples_by_name(samples, tmp_path):
    source = residual(LANES, "N")
    new_model = convert(source, tmp_path)
    assert len(bodies(new_model)) == 2
    assert_same(new_model, source, draw_feeds(samples))


@needs_exact_int8
@pytest.mark.parametrize(
    ("given", "has_rows"),
    [
        ({"xz": np.uint8(128)}, True),
        ({"xz": np.uint8(255)}, False),  # data are 0 at most
        ({"wz": np.full(WIDTH, 128, np.uint8)}, True),
        ({"wz": np.uint8(100)}, False),
        ({"bias": np.linspace(-220_000, 220_000, WIDTH).round().astype(np.float32)}, True),
        ({"bias": np.linspace(-250_000, 250_000, WIDTH).round().astype(np.float32)}, False),
        ({"bias": np.linspace(-1000, 1000, WIDTH).astype(np.float32)}, False),  # no integers
        ({"bias": np.arange(16, dtype=np.float32)}, False),  # fewer columns than the data
    ],
    ids=["signed data", "no data", "zeros by column", "another zero", "8 rows", "9 rows",
         "fractions", "narrow"],
)  # fmt: skip
def test_biases(given, has_rows, tmp_path):
    width = given["bias"].size if "bias" in given else WIDTH
    side = SIDE * 2 if width < WIDTH else SIDE
    source = residual(PLAIN_SUM, side=side, **given)
    new_model = convert(source, tmp_path)
    graphs = [*branches(new_model), *bodies(new_model), new_model.graph]
    operators = {n.op_type for g in graphs for n in g.node}
    assert ("Concat" in operators) is has_rows
    assert "MatMulIntegerToFloat" in operators and ("Mul" in operators) is not has_rows
    assert_same(new_model, source, draw_feeds(side=side, width=width))


@needs_exact_int8
def test_sums_beyond_the_integers_of_float32_keep_their_order(tmp_path):
    """All rows of a column add up to 600 * 127 * 255: more than float32 counts in units of 1."""
    depth = 600
    text = f"""g (uint8[4,{depth}] x) => (float[4,{depth}] scaled) {{ {SUMS} }}"""
    draws = np.random.default_rng(0)
    given = {
        "w": np.full((depth, depth), 255, np.uint8), "bias": np.full(depth, 1001, np.float32),
        "scale": draws.uniform(0.5, 1, depth).astype(np.float32),
    }  # fmt: skip
    source = model_with(text, draws, **given)
    new_model = convert(source, tmp_path)
    operators = [n.op_type for g in branches(new_model) for n in g.node]
    assert "Concat" not in operators and operators.count("MatMulIntegerToFloat") == 2
    feeds = {"x": draws.integers(240, 256, (4, depth), np.uint8)}
    for level in LEVELS:
        np.testing.assert_array_equal(
            run_at(level, new_model, feeds)[0], run_at(level, source, feeds)[0], level
        )


@needs_exact_int8
@pytest.mark.parametrize(
    "text",
    [
        "g (uint8[9,32] x) => (float[9,64] y) { s = MatMulInteger(x, w, xz, wz) "
        "r = Cast<to = 1>(s) y = Mul(r, scale) }",
        "g (uint8[9,32] x) => (float[9,64] y) { s = MatMulInteger(x, w, xz, wz) "
        "r = Cast<to = 1>(s) t = Mul(r, most) y = Add(t, bias) }",
        "g (uint8[9,32] x) => (float[9,64] y) { s = MatMulInteger(x, w, xz, wz) "
        "r = Cast<to = 1>(s) y = Add(r, most) }",
        "g (uint8[9,32] x, float[9,64] b) => (float[9,64] y) { s = MatMulInteger(x, w, xz, wz) "
        "r = Cast<to = 1>(s) y = Add(r, b) }",
        "g (uint8[9,32] x) => (float[9,64] y, float[9,64] r) { s = MatMulInteger(x, w, xz, wz) "
        "r = Cast<to = 1>(s) y = Mul(r, scale) }",
    ],
    ids=["scale", "scale and bias", "one number", "fed bias", "sums are an output"],
)
def test_products_become_float32_as_they_are_made(text, tmp_path):
    source = model_with(text, np.random.default_rng(0))
    new_model = convert(source, tmp_path)
    operators = [n.op_type for g in branches(new_model) for n in g.node]
    assert operators.count("MatMulIntegerToFloat") == 2 and "Cast" not in operators
    draws = np.random.default_rng(1)
    feeds = {
        "x": draws.integers(0, 256, (9, DEPTH), np.uint8),
        "b": draws.standard_normal((9, WIDTH), np.float32),
    }
    for level in LEVELS:
        for got, expected in zip(
            run_at(level, new_model, feeds), run_at(level, source, feeds), strict=True
        ):
            np.testing.assert_array_equal(got, expected, level, strict=True)


@pytest.mark.parametrize(
    ("side", "changes"),
    [
        (20, {}),  # it fits the cache
        (SIDE, {"real = Cast<to = 1>(sums)": "real = Cast<to = 1>(sums) more = Neg(real)"}),
        (SIDE, {"biased = Add(real, bias)": "biased = Add(real, fed)"}),
    ],
    ids=["small", "read twice", "another shape"],
)
def test_others_stay_whole(side, changes, tmp_path):
    text = RESIDUAL.format(added=PLAIN_SUM, batch=1, side=side, width=WIDTH)
    for old, new in changes.items():
        text = text.replace(old, new)
    text = text.replace(
        "=> (uint8[A,B,C,D] y)",
        "=> (uint8[A,B,C,D] y, float[E,F,G,H] more)" if "more" in text else "=> (uint8[A,B,C,D] y)",
    )
    text = text.replace("] r)", f"] r, float[1,{side},1,{WIDTH}] fed)") if "fed" in text else text
    new_model = convert(model_with(text, np.random.default_rng(0)), tmp_path)
    assert branches(new_model) and not bodies(new_model)


@needs_exact_int8
def test_files_with_blocks_are_read(tmp_path):
    source = residual(LANES)
    convert(source, tmp_path)
    serde.convert(tmp_path / "made.onnx", tmp_path / "again.onnx")
    again = onnx.load(tmp_path / "again.onnx")
    assert {o.domain for o in again.opset_import} == {""}
    (got,), (expected,) = (run_at(PLAIN, m, draw_feeds()) for m in (again, source))
    np.testing.assert_array_equal(got, expected)


@pytest.mark.parametrize("step", [255, 127, 1])
def test_rows_add_up_to_the_bias(step):
    most = 3 * 127 * step + step // 2
    bias = np.array([0, 1, -1, step, most, -most, most - 1], np.int64)
    rows = bias_rows.split_bias(bias, step)
    assert rows is not None and rows.shape == (4, 7) and np.abs(rows).max() <= 127
    units = np.full(4, step)
    units[-1] = 1
    np.testing.assert_array_equal(units @ rows, bias)
    wider = bias_rows.split_bias(bias * 2, step)
    assert wider is not None and wider.shape == (8, 7)
    assert bias_rows.split_bias(bias * 4, step) is None
