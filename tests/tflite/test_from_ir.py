"""Files compute in LiteRT what ONNX Runtime and MXNet do, with both sets of its kernels."""

from __future__ import annotations

from collections import Counter
from pathlib import Path

import numpy as np
import pytest

import serde
from serde.bridges.litert import LitertWorker
from serde.errors import SerdeError, Unconvertible
from serde.formats.tflite import encode
from serde.formats.tflite.from_ir import from_ir
from serde.ir.graph import Value
from testing import networks
from testing.node_cases import all_cases, difference, freeze
from testing.onnx_live import ir_of
from testing.onnx_live import run as run_onnx
from tests.tflite.litert_live import run_both, why_not

needs_litert = pytest.mark.skipif(bool(why_not()), reason=why_not() or "there is one")
# The most operators and TRANSPOSEs of each network, at a size of its own.
COUNTS = {
    "resnet18_v1": (37, 1), "mobilenetv2_0.25": (72, 1), "squeezenet1.0": (40, 1),
    "alexnet": (14, 1), "inceptionv3": (131, 1), "densenet121": (310, 1),
}  # fmt: skip
OPS = """add argmax_default_axis_example argmax_keepdims_example_select_last_index
averagepool_2d_pads averagepool_2d_pads_count_include_pad averagepool_2d_ceil batchnorm_epsilon
cast_FLOAT_to_INT32 clip concat_2d_axis_1 conv_with_strides_padding conv_with_strides_and_asymmetric_padding
convtranspose depthtospace_example div elu expand_dim_changed gather_0 gather_negative_indices
gelu_tanh_1 gelu_default_1 hardsigmoid instancenorm_example layer_normalization_2d_axis1 leakyrelu
logsoftmax_axis_1 matmul_4d max_int32 maxpool_1d_default maxpool_2d_pads maxpool_2d_dilations
maxpool_2d_same_lower pow_types_float32_int64 prelu_broadcast reduce_mean_keepdims_example
reduce_prod_do_not_keepdims_random reshape_negative_dim slice_neg_steps slice_end_out_of_bounds
softmax_axis_1 spacetodepth_example split_variable_parts_2d_opset18 squeeze tile top_k top_k_smallest
transpose_all_permutations_2 where_example xor_bcast4v3d reflect_pad constant_pad""".split()  # fmt: skip
CASES = [c for c in all_cases() if c.name.removeprefix("test_") in OPS]


@pytest.fixture(scope="module")
def worker() -> LitertWorker:
    """One process for all files."""
    return LitertWorker()


@needs_litert
@pytest.mark.parametrize("name", COUNTS)
def test_networks_compute_what_mxnet_does(name: str, worker, tmp_path: Path) -> None:
    network = networks.build(name, networks.smallest(name))
    symbol, _ = networks.export(network, tmp_path)
    feeds = networks.feeds(network, 1)
    graph = serde.load(symbol, inputs={k: v.shape for k, v in feeds.items()})
    serde.save(graph, tmp_path / "net.tflite")
    counted = Counter(node.op for node in from_ir(graph).nodes)
    most, transposes = COUNTS[name]
    assert counted.total() <= most and counted["TRANSPOSE"] <= transposes
    for got in run_both(worker, tmp_path / "net.tflite", [*feeds.values()]):
        for actual, expected in zip(got, networks.compute(network, feeds), strict=True):
            scale = np.abs(expected).max()
            np.testing.assert_allclose(actual, expected, rtol=0, atol=1e-5 * scale)


@needs_litert
@pytest.mark.parametrize("case", CASES, ids=lambda c: c.name)
def test_operators_compute_what_the_node_tests_say(case, worker, tmp_path: Path) -> None:
    test = freeze(case) or case
    (tmp_path / "m.onnx").write_bytes(test.model.SerializeToString())
    serde.convert(tmp_path / "m.onnx", tmp_path / "m.tflite", verify=False)
    for feeds, expected in test.data:
        for got in run_both(worker, tmp_path / "m.tflite", feeds):
            assert difference(test, expected, got) is None


@needs_litert
def test_a_batch_by_name_stays_open(worker, tmp_path: Path) -> None:
    network = networks.build("squeezenet1.0", networks.smallest("squeezenet1.0"))
    symbol, _ = networks.export(network, tmp_path)
    serde.convert(symbol, tmp_path / "net.tflite", inputs=networks.shapes(network), verify=False)
    for batch in (1, 3, 2):
        feeds = networks.feeds(network, batch)
        (expected,) = networks.compute(network, feeds)
        for (got,) in run_both(worker, tmp_path / "net.tflite", [*feeds.values()]):
            np.testing.assert_allclose(got, expected, rtol=0, atol=1e-5 * np.abs(expected).max())


@needs_litert
def test_rows_of_a_batch_by_name_are_counted(worker, tmp_path: Path) -> None:
    graph = ir_of("""g (float[N,2,3] x) => (float[N,M] y) <int64[1] rest = {-1}> {
        s = Shape<end=1>(x) t = Concat<axis=0>(s, rest) y = Reshape(x, t) }""")
    serde.save(graph, tmp_path / "m.tflite")
    for batch in (1, 3):
        x = np.random.default_rng(0).standard_normal((batch, 2, 3), np.float32)
        for (got,) in run_both(worker, tmp_path / "m.tflite", [x]):
            np.testing.assert_array_equal(got, x.reshape(batch, 6))


ONES = "one = Constant<value_ints=[1]>() two = Constant<value_ints=[2]>() four = Constant<value_ints=[4]>()"
SIZE = "n = Shape<start=0, end=1>(x)"
OPEN = {  # operators of a batch by name: the shape of the input behind it, the result's, and nodes
    "sizes": ("4,6", "3", "s = Shape(x) y = Cast<to=1>(s)"),
    "a size": ("4,6", "1", "s = Shape<start=1, end=-1>(x) y = Cast<to=1>(s)"),
    "zeros of a batch": ("4,6", "N,2", f"{SIZE} s = Concat<axis=0>(n, two) z = ConstantOfShape(s) v = ReduceSum<keepdims=0>(x, one) m = Slice(v, one, two, one) y = Add(z, m)"),
    "a row for each": ("4,6", "N,4,6", f"{SIZE} f = Slice(x, two, four, one) g = Slice(f, one, two, one) h = Slice(g, one, two, two) s = Concat<axis=0>(n, four, one) e = Expand(h, s) y = Add(x, e)"),
    "numbers of samples": ("4,6", "N,4,6", f"{SIZE} z = Constant<value_int=0>() o = Constant<value_int=1>() zz = Constant<value_ints=[0]>() c = Squeeze(n, zz) r = Range(z, c, o) f = Cast<to=1>(r) s = Concat<axis=0>(n, one, one) w = Reshape(f, s) y = Add(x, w)"),
    "repeated rows": ("4,6", "N,8,6", "s = Concat<axis=0>(one, two, one) y = Tile(x, s)"),
    "picked elements": ("4,6", "N,4,2", "v, i = TopK<axis=-1>(x, two) y = GatherElements<axis=2>(x, i)"),
    "as many as samples": ("4,6", "N,4,N", f"{SIZE} y, i = TopK<axis=-1>(x, n)"),
    "all but a sample": ("4,6", "M,4,6", "e = Constant<value_ints=[9223372036854775807]>() z = Constant<value_ints=[0]>() y = Slice(x, one, e, z)"),
    "from the end": ("4,6", "M,4,6", "b = Constant<value_ints=[-1]>() e = Constant<value_ints=[9]>() z = Constant<value_ints=[0]>() y = Slice(x, b, e, z)"),
    "a part of a part": ("4,6", "M,4,6", "b = Constant<value_ints=[-9223372036854775807]>() e = Constant<value_ints=[-1]>() z = Constant<value_ints=[0]>() f = Constant<value_ints=[5]>() v = Slice(x, b, f, z) y = Slice(v, b, e, z)"),
    "in reverse": ("4,6", "N,4,6", "b = Constant<value_ints=[-1]>() e = Constant<value_ints=[-9223372036854775807]>() z = Constant<value_ints=[0]>() y = Slice(x, b, e, z, b)"),
    "scattered": ("4,6", "N,4,6", "v, i = TopK<axis=-1>(x, two) f = Relu(v) y = ScatterElements<axis=2>(x, i, f)"),
    "rows of each sample": ("4,6", "N,2,6", "m = ReduceMax<keepdims=0>(x, two) v, i = TopK<axis=1>(m, two) j = Unsqueeze(i, two) y = GatherND<batch_dims=1>(x, j)"),
    "blocks": ("8,3,3", "N,2,6,6", "y = DepthToSpace<blocksize=2, mode=\"CRD\">(x)"),
    "pooled volumes": ("2,4,4,4", "N,2,2,2,2", "y = MaxPool<kernel_shape=[2,2,2], strides=[2,2,2]>(x)"),
    "normalized volumes": ("2,4,4,4", "N,2,4,4,4", "s = Constant<value_floats=[1.0, 2.0]>() y = InstanceNormalization(x, s, s)"),
    "volumes over channels": ("2,4,4,4", "N,2,4,4,4", "y = Softmax<axis=1>(x)"),
    "larger volumes": ("2,3,3,3", "N,1,4,4,4", "k = Constant<value_floats=[1.,2.,3.,4.,5.,6.,7.,8.,8.,7.,6.,5.,4.,3.,2.,1.]>() s = Constant<value_ints=[2,1,2,2,2]>() w = Reshape(k, s) y = ConvTranspose(x, w)"),
}  # fmt: skip


@needs_litert
@pytest.mark.parametrize("name", OPEN)
def test_operators_of_a_batch_by_name(name: str, worker, tmp_path: Path) -> None:
    shape, result, body = OPEN[name]
    graph = ir_of(f"g (float[N,{shape}] x) => (float[{result}] y) {{ {ONES} {body} }}")
    serde.save(graph, tmp_path / "m.tflite")
    for batch in (3, 2, 4):
        x = np.random.default_rng(batch).standard_normal((batch, *map(int, shape.split(","))))
        x = x.astype(np.float32)
        (expected,) = run_onnx(graph, {"x": x})
        for (got,) in run_both(worker, tmp_path / "m.tflite", [x]):
            assert got.shape == expected.shape
            np.testing.assert_allclose(got, expected, rtol=0, atol=1e-5 * np.abs(expected).max())


@needs_litert
def test_a_size_by_name_may_be_the_one_that_is_repeated(worker, tmp_path: Path) -> None:
    graph = ir_of("""g (float[N,4] x, float[3,1] z) => (float[3,4] y, float[3,4] w)
        <int64[2] s = {3, 1}> { y = Expand(x, s) w = Add(x, z) }""")
    serde.save(graph, tmp_path / "m.tflite")
    for batch in (3, 1):
        feeds = {"x": np.random.default_rng(batch).standard_normal((batch, 4), np.float32),
                 "z": np.ones((3, 1), np.float32)}  # fmt: skip
        expected = run_onnx(graph, feeds)
        for got in run_both(worker, tmp_path / "m.tflite", [*feeds.values()]):
            for actual, right in zip(got, expected, strict=True):
                np.testing.assert_array_equal(actual, right)


GROUPS = {  # sizes of an image, groups, and operators
    "two groups": ("4,5,6", 2, 14), "one group": ("4,5,6", 1, 12),
    "groups of one": ("4,5,6", 4, 12), "a line": ("4,7", 2, 16),
}  # fmt: skip


@needs_litert
@pytest.mark.parametrize("name", GROUPS)
def test_groups_are_normalized_with_channels_last(name: str, worker, tmp_path: Path) -> None:
    size, groups, most = GROUPS[name]
    rank, ones = size.count(",") + 2, ",1" * size.count(",")
    factors, summands = (", ".join([v] * groups) for v in ("1", "0"))
    graph = ir_of(f"""g (float[N,{size}] x) => (float[N,{size}] y)
        <int64[3] split = {{0,{groups},-1}}, int64[{rank}] shape = {{0,{size}}},
        int64[{rank}] k = {{4,4{ones}}}, float[4{ones}] f = {{1, 2, 3, 4}},
        float[{groups}] one = {{{factors}}}, float[{groups}] zero = {{{summands}}}> {{
        w = ConstantOfShape<value = float[1] {{0.25}}>(k) c = Conv(x, w) d = Mul(c, f)
        r = Reshape(d, split) n = InstanceNormalization(r, one, zero) e = Reshape(n, shape)
        y = Mul(e, f) }}""")
    serde.save(graph, tmp_path / "m.tflite")
    counted = Counter(node.op for node in from_ir(graph).nodes)
    assert counted["TRANSPOSE"] <= 2 and counted.total() <= most
    for batch in (2, 3):
        x = np.random.default_rng(batch).standard_normal((batch, *map(int, size.split(","))))
        feeds = {"x": x.astype(np.float32)}
        (expected,) = run_onnx(graph, feeds)
        for (got,) in run_both(worker, tmp_path / "m.tflite", [feeds["x"]]):
            np.testing.assert_allclose(got, expected, rtol=0, atol=1e-5 * np.abs(expected).max())


@needs_litert
@pytest.mark.parametrize(("tflite", "ops"), [(None, {"GELU"}), ("2.8", {"EXP", "MUL", "ADD"})])
def test_gelus_in_parts_are_one_operator(tflite, ops, worker, tmp_path: Path) -> None:
    graph = ir_of("""g (float[2,300] x) => (float[2,300] y)
        <float root = {1.41421354}, float one = {1}, float half = {0.5}> {
        t = Div(x, root) e = Erf(t) a = Add(e, one) m = Mul(x, a) y = Mul(m, half) }""")
    serde.save(graph, tmp_path / "m.tflite", tflite=tflite)
    assert {node.op for node in from_ir(graph, tflite=tflite).nodes} >= ops
    x = np.linspace(-6, 6, 600, dtype=np.float32).reshape(2, 300)
    (expected,) = run_onnx(graph, {"x": x})
    for (got,) in run_both(worker, tmp_path / "m.tflite", [x]):
        np.testing.assert_allclose(got, expected, rtol=0, atol=1e-6)


REPEATED = {  # the shape that is repeated, that of the result, the operator, and what is written
    "a product": ("2,1,5", "2,4,5", "Mul", "MUL"),
    "a quotient by it": ("1,5", "4,5", "Div", "DIV"),
    "many axes": ("2,1,1,2,3", "2,2,2,2,3", "Add", "BROADCAST_TO ADD"),
}  # fmt: skip


@needs_litert
@pytest.mark.parametrize("name", REPEATED)
def test_operands_are_repeated_by_the_operator(name: str, worker, tmp_path: Path) -> None:
    small, large, op, ops = REPEATED[name]
    axes = large.count(",") + 1
    graph = ir_of(f"""g (float[{small}] x, float[{large}] z) => (float[{large}] y)
        <int64[{axes}] s = {{{large}}}> {{ e = Expand(x, s) y = {op}(z, e) }}""")
    assert [node.op for node in from_ir(graph).nodes] == ops.split()
    serde.save(graph, tmp_path / "m.tflite")
    draws = np.random.default_rng(0)
    feeds = {v.name: draws.uniform(1, 2, v.static_shape).astype("f") for v in graph.inputs}
    (expected,) = run_onnx(graph, feeds)
    for (got,) in run_both(worker, tmp_path / "m.tflite", [*feeds.values()]):
        np.testing.assert_allclose(got, expected, rtol=1e-6)


def test_blocks_take_their_order_from_the_convolution() -> None:
    shapes = "float[1,3,4,4] x, float[8,3,1,1] w"
    graph = ir_of(
        f'g ({shapes}) => (float[1,2,8,8] y) {{ c = Conv(x, w) y = DepthToSpace<blocksize=2, mode="CRD">(c) }}'
    )
    assert Counter(node.op for node in from_ir(graph).nodes)["TRANSPOSE"] == 3
    numbers = ", ".join(map(str, range(24)))
    graph = ir_of(
        f'g (float[1,3,4,4] x) => (float[1,2,8,8] y) <float[8,3,1,1] w = {{{numbers}}}> {{ c = Conv(x, w) y = DepthToSpace<blocksize=2, mode="CRD">(c) }}'
    )
    assert Counter(node.op for node in from_ir(graph).nodes)["TRANSPOSE"] == 2


@needs_litert
def test_blocks_of_an_image_are_turned_with_channels_last(worker, tmp_path: Path) -> None:
    """Patches as rows, as MobileViT has them, take one TRANSPOSE beside those of the ends."""
    graph = ir_of("""g (float[N,4,6,4] x) => (float[N,4,4,6] y)
        <int64[4] k = {4,4,1,1}, int64[6] blocks = {0,4,3,2,2,2}, int64[4] rows = {0,4,4,6}> {
        w = ConstantOfShape<value = float[1] {0.25}>(k) a = Conv(x, w) b = Reshape(a, blocks)
        c = Transpose<perm=[0,1,3,5,2,4]>(b) d = Reshape(c, rows) y = Conv(d, w) }""")
    serde.save(graph, tmp_path / "m.tflite")
    assert Counter(node.op for node in from_ir(graph).nodes)["TRANSPOSE"] == 3
    x = np.random.default_rng(0).standard_normal((2, 4, 6, 4), np.float32)
    (expected,) = run_onnx(graph, {"x": x})
    for (got,) in run_both(worker, tmp_path / "m.tflite", [x]):
        np.testing.assert_allclose(got, expected, rtol=0, atol=1e-6)


def test_means_of_integers_over_sizes_by_name_are_read_as_written(tmp_path: Path) -> None:
    graph = ir_of("""g (int64[M,M,5] x) => (int64[] y) <int64[3] a = {-2, -3, 2}> {
        y = ReduceMean<keepdims=0>(x, a) }""")
    serde.save(graph, tmp_path / "m.tflite")
    x = np.random.default_rng(0).integers(0, 100, (3, 3, 5))
    (got,) = run_onnx(serde.load(tmp_path / "m.tflite"), {"x": x})
    assert got.shape == () and got == x.sum() // x.size


def test_parts_of_known_sizes_are_cut_by_numbers() -> None:
    """XNNPACK takes no sizes of -1."""
    split = "y, z = Split<axis=1, num_outputs=2>(x)"
    for batch, rows in (("2", 2), ("N", -1)):
        graph = ir_of(
            f"g (float[{batch},6] x) => (float[{batch},3] y, float[{batch},3] z) {{ {split} }}"
        )
        sizes = [n.inputs[2].ints() for n in from_ir(graph).nodes if n.op == "SLICE"]
        assert sizes == [(rows, 3)] * 2


def test_many_parts_are_counted_once(monkeypatch) -> None:
    sizes = [1 + at % 3 for at in range(300)]
    names = ", ".join(f"y{at}" for at in range(300))
    graph = ir_of(
        f"g (float[2,{sum(sizes)}] x) => ({', '.join(f'float[] y{at}' for at in range(300))}) "
        f"<int64[300] s = {{{', '.join(map(str, sizes))}}}> {{ {names} = Split<axis=1>(x, s) }}"
    )
    read, calls = Value.ints, []
    monkeypatch.setattr(Value, "ints", lambda value: calls.append(value) or read(value))
    slices = [n for n in from_ir(graph).nodes if n.op == "SLICE"]
    assert len(calls) < 10
    starts = [read(n.inputs[1])[1] for n in slices]
    assert starts == [sum(sizes[:at]) for at in range(300)]


@needs_litert
def test_a_conversion_is_verified_with_both_kernel_sets(tmp_path: Path) -> None:
    network = networks.build("resnet18_v1", 32)
    symbol, _ = networks.export(network, tmp_path)
    shapes = {k: v.shape for k, v in networks.feeds(network, 1).items()}
    done = serde.convert(symbol, tmp_path / "net.tflite", inputs=shapes, verify=True)
    assert done.verification is not None and done.verification.done


@needs_litert
def test_what_litert_cannot_run_is_an_error(worker, tmp_path: Path) -> None:
    (tmp_path / "m.tflite").write_bytes(b"\x1c\0\0\0TFL3" + bytes(40))
    with pytest.raises(SerdeError, match="LiteRT cannot run the model"):
        LitertWorker().run(str(tmp_path / "m.tflite"), [])


REFUSED = {
    "float64": ("g (double[2] x) => (double[2] y) { y = Neg(x) }", "no Neg of float64 elements. Give --fp32"),
    "uint64": ("g (uint64[2] x) => (uint64[2] y) { y = Add(x, x) }", "'x' is of uint64"),
    "without elements": ("g (float[0] x) => (float[0] y) { y = Neg(x) }", "'x' has no elements"),
    "infinity": (
        "g (float[2] x) => (bool[2] y) <float i = {inf}> { a = Mul(x, x) y = Equal(a, i) }",
        "infinite constant",
    ),
    "recurrent of dynamic length": (
        "g (float[T,1,2] x, float[1,3,2] w, float[1,3,1] r) => (float[T,1,1,1] y) "
        "{ y = GRU<hidden_size=1>(x, w, r) }", "a GRU over a sequence of dynamic length",
    ),
}  # fmt: skip


@pytest.mark.parametrize("name", REFUSED)
def test_what_cannot_be_written_is_refused(name: str) -> None:
    body, reason = REFUSED[name]
    with pytest.raises(Unconvertible, match=reason):
        from_ir(ir_of(body))


@needs_litert
def test_ends_keep_their_names_and_shapes(worker, tmp_path: Path) -> None:
    body = """g (float[1,2,4,5] x) => (float[1,2,4,5] x2, float[1,2,4,5] y, float[2] c)
        <float[2] c = {1, 2}> { x2 = Identity(x) a = MaxPool<kernel_shape=[1,1]>(x) y = Relu(a) }"""
    graph = ir_of(body)
    feeds = {"x": np.random.default_rng(1).standard_normal((1, 2, 4, 5), np.float32)}
    serde.save(graph, tmp_path / "m.tflite")
    written = from_ir(graph)
    assert [v.name for v in (*written.inputs, *written.outputs)] == ["x", "x2", "y", "c"]
    for got in run_both(worker, tmp_path / "m.tflite", [feeds["x"]]):
        for actual, expected in zip(got, run_onnx(graph, feeds), strict=True):
            np.testing.assert_array_equal(actual, expected)


@needs_litert
def test_weights_of_a_large_file_lie_behind_its_tables(worker, tmp_path: Path, monkeypatch) -> None:
    monkeypatch.setattr(encode, "SPARE", encode.LARGEST)  # as if there were more than 2 GiB
    graph = ir_of("""g (float[2,3] x) => (float[2,3] y, float[2,3] z)
        <float[3] a = {1, 2, 3}, float b = {4}> { y = Add(x, a) z = Mul(y, b) }""")
    serde.save(graph, tmp_path / "m.tflite")
    x = np.ones((2, 3), np.float32)
    data = (tmp_path / "m.tflite").read_bytes()
    assert data.index(np.float32(4).tobytes()) > data.index(b"serving_default")
    for y, z in run_both(worker, tmp_path / "m.tflite", [x]):
        assert y.tolist() == [[2, 3, 4]] * 2 and z.tolist() == [[8, 12, 16]] * 2


def test_results_without_elements_need_numbers() -> None:
    graph = ir_of("""g (float[5,4,M] x) => (float[5,0,M] y) <int64[1] a = {9}, int64[1] b = {0},
        int64[1] c = {1}> { y = Slice(x, a, b, c) }""")
    with pytest.raises(Unconvertible, match="'y' has no elements, and a size by name"):
        from_ir(graph)
