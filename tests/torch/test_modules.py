"""Written modules compute what their sources do, run in live PyTorch, and read as a person writes."""

from __future__ import annotations

import ast
import subprocess
import sys
from pathlib import Path

import numpy as np
import onnx
import onnxruntime
import pytest

import serde
from serde.bridges.torch import TorchWorker
from serde.errors import SerdeError
from testing import networks
from testing.node_cases import all_cases, difference, freeze
from tests.torch.torch_live import why_not

SMALL = ["squeezenet1.1", "resnet18_v2", "mobilenetv2_0.25", "lstm_ntc_2", "lstm_bidirectional",
         "lstm_states", "lstm_tied", "gru_ntc_2", "rnn_relu", "bert_interleaved_where"]  # fmt: skip
OPS = """add argmax_default_axis_example averagepool_2d_pads_count_include_pad batchnorm_epsilon cast_FLOAT_to_FLOAT16 clip concat_2d_axis_1
cumsum_1d_exclusive conv_with_strides_padding convtranspose_pads div_uint8 einsum_inner_prod
expand_dim_changed gather_elements_0 gathernd_example_float32 gelu_tanh_1 gru_seq_length hardsigmoid
instancenorm_example layer_normalization_2d_axis1 lstm_with_initial_bias matmul_4d max_int32
maxpool_2d_ceil mod_mixed_sign_int64 nonzero_example onehot_with_axis pow_types_float32_int64
prelu_broadcast reduce_log_sum_exp_keepdims_example resize_upsample_scales_linear roialign_aligned_true
scan_sum scatter_elements_with_reduction_max scatternd_add slice_neg_steps softmax_axis_1
split_variable_parts_2d_opset18 sce_mean_no_weight_ii_4d tile top_k top_k_same_values triu_one_row where_example
xor_bcast4v3d add_uint64 bitshift_left_uint16 bitshift_right_uint64 bitwise_not_3d greater_equal_uint64
min_uint64 top_k_uint64 batchnorm_example_training_mode bernoulli training_dropout_mask reduce_max_empty_set_bool""".split()  # fmt: skip
CASES = [c for c in all_cases() if c.name.removeprefix("test_") in OPS]

needs_torch = pytest.mark.skipif(bool(why_not()), reason=why_not() or "there is one")


@pytest.fixture(scope="module")
def worker() -> TorchWorker:
    """One process for all modules."""
    return TorchWorker()


@needs_torch
@pytest.mark.parametrize("name", SMALL)
def test_networks_compute_what_mxnet_does(name: str, worker, tmp_path: Path) -> None:
    size = networks.smallest(name) if name in networks.VISION else None
    network = networks.build(name, size)
    symbol, _ = networks.export(network, tmp_path)
    feeds = networks.feeds(network, 2)
    serde.convert(symbol, tmp_path / "net.py", inputs=networks.shapes(network))
    got = worker.run(str(tmp_path / "net.py"), [*feeds.values()])
    for actual, expected in zip(got, networks.compute(network, feeds), strict=True):
        scale = np.abs(expected).max()
        np.testing.assert_allclose(actual, expected, rtol=0, atol=1e-5 * scale)


@needs_torch
@pytest.mark.parametrize("case", CASES, ids=lambda c: c.name)
def test_operators_compute_what_the_node_tests_say(case, worker, tmp_path: Path) -> None:
    test = freeze(case) or case
    serde.convert(test.model, tmp_path / "n.py", to_format="torch")
    for feeds, expected in test.data:
        got = worker.run(str(tmp_path / "n.py"), [np.asarray(a) for a in feeds])
        assert difference(test, expected, got) is None


def write_text(text: str, folder: Path, **options) -> str:
    """The source that a model in ONNX's text form becomes."""
    model = onnx.parser.parse_model(text)
    serde.convert(model, folder / "n.py", to_format="torch", **options)
    return (folder / "n.py").read_text()


HEAD = '<ir_version: 8, opset_import: ["": 17]>\n'


def test_names_of_a_file_are_no_code(tmp_path: Path) -> None:
    names = ["x'); import os; ('", 'a"b', "line\nbreak", "class", "3"]
    graph = onnx.helper.make_graph(
        [onnx.helper.make_node("Relu", [names[0]], [names[1]], names[2]),
         onnx.helper.make_node("Add", [names[1], names[3]], [names[4]], names[0])],
        'g"""\nimport os', [onnx.helper.make_tensor_value_info(names[0], 1, [2])],
        [onnx.helper.make_tensor_value_info(names[4], 1, [2])],
        [onnx.numpy_helper.from_array(np.ones(2, np.float32), names[3])],
    )  # fmt: skip
    model = onnx.helper.make_model(graph, opset_imports=[onnx.helper.make_opsetid("", 17)])
    serde.convert(model, tmp_path / "n.py", to_format="torch")
    source = (tmp_path / "n.py").read_text()
    tree = ast.parse(source)
    imports = [n for n in ast.walk(tree) if isinstance(n, (ast.Import, ast.ImportFrom))]
    assert "os" not in ast.unparse(ast.Module(imports, []))
    kinds = {type(n) for n in tree.body}
    assert kinds <= {
        ast.Expr,
        ast.Import,
        ast.ImportFrom,
        ast.Assign,
        ast.ClassDef,
        ast.FunctionDef,
    }


def test_sizes_by_name_are_read_of_the_inputs(tmp_path: Path) -> None:
    source = write_text(HEAD + """g (float[N,6] x) => (float[N,2,3] y) {
        s = Shape<start = 0, end = 1>(x)
        t = Constant<value_ints = [2, 3]>()
        z = Concat<axis = 0>(s, t)
        y = Reshape(x, z)
    }""", tmp_path)  # fmt: skip
    assert "x.reshape(x.shape[0], 2, 3)" in source


def test_what_pytorch_lacks_is_refused_all_at_once(tmp_path: Path) -> None:
    with pytest.raises(serde.Unconvertible) as caught:
        write_text(HEAD + """g (string[2] x, float[2] y) => (string[2] a, float8e5m2[2] b) {
            a = Identity(x)
            b = Cast<to = 19>(y)
        }""".replace("float8e5m2", "float"), tmp_path)  # fmt: skip
    assert "strings" in str(caught.value) or "object" in str(caught.value)
    assert not (tmp_path / "n.py").exists()


@pytest.mark.parametrize("name", ["resnet18_v2", "lstm_bidirectional", "bert_interleaved_where"])
def test_the_source_passes_ruff(name: str, tmp_path: Path) -> None:
    size = networks.smallest(name) if name in networks.VISION else None
    network = networks.build(name, size)
    symbol, _ = networks.export(network, tmp_path)
    serde.convert(symbol, tmp_path / "net.py", inputs=networks.shapes(network))
    for command in (["check"], ["format", "--check"]):
        subprocess.run(
            [sys.executable, "-m", "ruff", *command, "--isolated", tmp_path / "net.py"], check=True
        )


@needs_torch
def test_arrays_of_modules_have_the_types_of_the_file(worker, tmp_path: Path) -> None:
    text = (
        HEAD.replace("17", "21")
        + """layers (float[2, 4, 6] x) => (float[2, 4, 6] y) {
          a = ConvTranspose(x, w)
          b = GroupNormalization<num_groups=2>(a, scale, bias)
          c = PRelu(b, slope)
          d = InstanceNormalization(c, scale, bias)
          y = LayerNormalization<axis=2>(d, row)
        }"""
    )
    model = onnx.parser.parse_model(text)
    generator = np.random.default_rng(0)
    shapes = {"w": (4, 4, 1), "scale": (4,), "bias": (4,), "slope": (4, 1), "row": (6,)}
    for name, shape in shapes.items():
        array = generator.uniform(0.5, 1.5, shape).astype(np.float32)
        model.graph.initializer.append(onnx.numpy_helper.from_array(array, name))
    x = generator.standard_normal((2, 4, 6), np.float32)
    (expected,) = onnx.reference.ReferenceEvaluator(model).run(None, {"x": x})
    serde.convert(model, tmp_path / "n.py", to_format="torch", fp16=True)
    (actual,) = worker.run(str(tmp_path / "n.py"), [x])
    np.testing.assert_allclose(actual, expected, rtol=0, atol=2e-2 * np.abs(expected).max())
    assert "nn.PReLU(4, dtype=torch.float16)" in (tmp_path / "n.py").read_text()


@needs_torch
@pytest.mark.parametrize("names", [["1", "2"], ["params.0", "params.1"], ["d.a-b", "d.class"]])
def test_arrays_may_have_names_that_are_no_identifiers(names, worker, tmp_path: Path) -> None:
    first, second = (np.array(row, np.float32) for row in ([1, 2, 3], [4, 5, 6]))
    nodes = [onnx.helper.make_node("Mul", ["x", names[0]], ["t"]),
             onnx.helper.make_node("Add", ["t", names[1]], ["y"])]  # fmt: skip
    arrays = [onnx.numpy_helper.from_array(a, n)
              for a, n in zip((first, second), names, strict=True)]  # fmt: skip
    ends = [[onnx.helper.make_tensor_value_info(name, onnx.TensorProto.FLOAT, (2, 3))]
            for name in ("x", "y")]  # fmt: skip
    graph = onnx.helper.make_graph(nodes, "numbered", *ends, arrays)
    model = onnx.helper.make_model(graph, opset_imports=[onnx.helper.make_opsetid("", 17)])
    serde.convert(model, tmp_path / "n.py", to_format="torch")
    x = np.arange(6, dtype=np.float32).reshape(2, 3)
    (actual,) = worker.run(str(tmp_path / "n.py"), [x])
    np.testing.assert_array_equal(actual, x * first + second)


def test_each_kind_of_dropout_is_its_own_module(worker, tmp_path: Path) -> None:
    program = Path(__file__).parents[1] / "data/pt2/dropouts.pt2"
    serde.convert(program, tmp_path / "n.py")
    source = (tmp_path / "n.py").read_text()
    modules = ("nn.Dropout2d(0.3)", "nn.Dropout(0.1)", "nn.AlphaDropout(0.25)")
    assert all(module in source for module in modules)
    with np.load(program.with_suffix(".npz")) as arrays:
        (got,) = worker.run(str(tmp_path / "n.py"), [arrays["in0"]])
        np.testing.assert_array_equal(got, arrays["out0"])
    with pytest.raises(SerdeError, match="AlphaDropout.* Convert without training"):
        serde.convert(program, tmp_path / "n.onnx", training=True)
    serde.convert(program, tmp_path / "n.onnx")


@needs_torch
@pytest.mark.parametrize("reverse", [0, 1])
def test_the_axis_of_sums_may_be_an_input(reverse: int, worker, tmp_path: Path) -> None:
    model = onnx.parser.parse_model(f"""<ir_version: 8, opset_import: ["": 17]>
        g (float[2,3] x, int64 axis) => (float[2,3] y) {{ y = CumSum<reverse = {reverse}>(x, axis) }}""")
    serde.convert(model, tmp_path / "n.py")
    x = np.arange(6, dtype=np.float32).reshape(2, 3)
    session = onnxruntime.InferenceSession(model.SerializeToString())
    for axis in (0, 1, -1):
        feeds = {"x": x, "axis": np.array(axis)}
        (got,) = worker.run(str(tmp_path / "n.py"), [*feeds.values()])
        np.testing.assert_array_equal(got, session.run(None, feeds)[0])


@needs_torch
@pytest.mark.parametrize("states", ["h", ", c", "h, c"])
@pytest.mark.parametrize("direction", ["forward", "bidirectional"])
def test_recurrent_layers_begin_with_either_state(
    states: str, direction: str, worker, tmp_path: Path
) -> None:
    ways = 2 if direction == "bidirectional" else 1
    generator = np.random.default_rng(3)
    shapes = {"x": (4, 2, 3), "h": (ways, 2, 5), "c": (ways, 2, 5)}
    feeds = {n: generator.standard_normal(s, np.float32) for n, s in shapes.items()
             if n == "x" or n in states}  # fmt: skip
    inputs = ", ".join(f"float[{','.join(map(str, a.shape))}] {n}" for n, a in feeds.items())
    model = onnx.parser.parse_model(
        HEAD.replace("17", "21")
        + f"""g ({inputs}) => (float[] y) {{
        y = LSTM<hidden_size=5, direction="{direction}">(x, w, r, , , {states}) }}"""
    )
    for name, shape in {"w": (ways, 20, 3), "r": (ways, 20, 5)}.items():
        array = generator.standard_normal(shape, np.float32)
        model.graph.initializer.append(onnx.numpy_helper.from_array(array, name))
    (expected,) = onnxruntime.InferenceSession(model.SerializeToString()).run(None, feeds)
    serde.convert(model, tmp_path / "n.py", to_format="torch")
    (actual,) = worker.run(str(tmp_path / "n.py"), [*feeds.values()])
    np.testing.assert_allclose(actual, expected, rtol=1e-5, atol=1e-5)


@needs_torch
@pytest.mark.parametrize("padding", ["zeros", "border", "reflection"])
@pytest.mark.parametrize("rank, mode", [(4, "linear"), (4, "nearest"), (4, "cubic"), (5, "linear"),
                                        (5, "nearest"), (3, "linear")])  # fmt: skip
def test_images_are_sampled_by_one_call(rank, mode, padding, worker, tmp_path: Path) -> None:
    random = np.random.default_rng(rank)
    sizes = [5, 6, 4][: rank - 2]
    x = random.standard_normal((2, 3, *sizes)).astype(np.float32)
    places = (random.standard_normal((2, 4, *sizes[1:], rank - 2)) * 1.2).astype(np.float32)
    shapes = [",".join(map(str, a.shape)) for a in (x, places)]
    for corners in (0, 1):
        text = (
            f'<ir_version: 9, opset_import: ["": 20]>\n'
            f"g (float[{shapes[0]}] x, float[{shapes[1]}] p) => (float y) {{ y = GridSample"
            f'<mode="{mode}", padding_mode="{padding}", align_corners={corners}>(x, p) }}'
        )
        folder = tmp_path / str(corners)
        folder.mkdir()
        source = write_text(text, folder)
        assert ("F.grid_sample(" in source) == (rank > 3)
        (got,) = worker.run(str(folder / "n.py"), [x, places])
        model = onnx.parser.parse_model(text)
        if rank == 3:  # which ONNX Runtime has not
            (expected,) = onnx.reference.ReferenceEvaluator(model).run(None, {"x": x, "p": places})
        else:
            session = onnxruntime.InferenceSession(model.SerializeToString())
            (expected,) = session.run(None, {"x": x, "p": places})
        np.testing.assert_allclose(got, expected, rtol=0, atol=1e-5)
