"""Modules are nested as the source names them, and what repeats is one class."""

from __future__ import annotations

import ast
import json
import zipfile
from pathlib import Path

import numpy as np
import onnx
import pytest
from onnx import TensorProto, helper, numpy_helper

import serde
from serde.bridges.torch import TorchWorker
from serde.formats.torch.interface import INPUTS, OUTPUTS
from serde.formats.torch.modules.scopes import find_paths, is_key, split_name
from tests.torch.torch_live import why_not

ROOT = Path(__file__).resolve().parents[2]
RNG = np.random.default_rng(7)
X = RNG.standard_normal((2, 4, 6, 6)).astype(np.float32)

needs_torch = pytest.mark.skipif(bool(why_not()), reason=why_not() or "there is one")


def make_model(nodes: list[onnx.NodeProto], arrays: dict[str, np.ndarray], shape=X.shape):
    """A model from ``x`` to ``y``."""
    graph = helper.make_graph(
        nodes, "main_graph", [helper.make_tensor_value_info("x", TensorProto.FLOAT, shape)],
        [helper.make_tensor_value_info("y", TensorProto.FLOAT, None)],
        [numpy_helper.from_array(a, n) for n, a in arrays.items()],
    )  # fmt: skip
    return helper.make_model(graph, opset_imports=[helper.make_opsetid("", 17)])


def draw(*shape: int) -> np.ndarray:
    return RNG.standard_normal(shape).astype(np.float32)


def make_blocks() -> tuple[list[onnx.NodeProto], dict[str, np.ndarray]]:
    """Two blocks as the exporter by TorchScript names them, with folded normalizations."""
    nodes, arrays, x, channels = [], {}, "x", 4
    for at, filters in enumerate((4, 8)):
        scope = f"/layer1/layer1.{at}"
        w, b = f"onnx::Conv_{at}", f"onnx::Conv_{at + 10}"
        arrays |= {w: draw(filters, channels, 3, 3), b: draw(filters)}
        pads = {"pads": [1] * 4, "kernel_shape": [3, 3]}
        nodes += [
            helper.make_node("Conv", [x, w, b], [f"{scope}/c"], f"{scope}/conv1/Conv", **pads),
            helper.make_node("Relu", [f"{scope}/c"], [f"{scope}/r"], f"{scope}/relu/Relu"),
        ]
        x, channels = f"{scope}/r", filters
    arrays |= {"fc.weight": draw(3, 8), "fc.bias": draw(3)}
    nodes += [
        helper.make_node("ReduceMean", [x], ["m"], "/ReduceMean", axes=[2, 3], keepdims=0),
        helper.make_node("Gemm", ["m", "fc.weight", "fc.bias"], ["y"], "/fc/Gemm", transB=1),
    ]
    return nodes, arrays


def keys_of(folder: Path) -> set[str]:
    """The keys of the ``state_dict``, by the file of weights."""
    data = (folder / "n.safetensors").read_bytes()
    header = json.loads(data[8 : 8 + int.from_bytes(data[:8], "little")])
    shared = {k for k in header.pop("__metadata__") if k not in ("format", INPUTS, OUTPUTS)}
    return {*header} | shared


def compare(model: onnx.ModelProto, folder: Path, x: np.ndarray = X, **options) -> str:
    """Write a model, and compare with what it computes in ONNX Runtime; return the source."""
    serde.convert(model, folder / "n.py", to_format="torch", **options)
    if not why_not():
        session = __import__("onnxruntime").InferenceSession(model.SerializeToString())
        (expected,) = session.run(None, {"x": x})
        (got,) = TorchWorker().run(str(folder / "n.py"), [x])
        scale = np.abs(expected).max()
        np.testing.assert_allclose(got, expected, rtol=0, atol=1e-5 * scale)
    return (folder / "n.py").read_text()


def test_blocks_that_repeat_are_a_class_with_arguments(tmp_path: Path) -> None:
    source = compare(make_model(*make_blocks()), tmp_path)
    assert "nn.Sequential(Layer(4), Layer(8))" in source
    assert "def __init__(self, out_channels) -> None:" in source
    norm = {"weight", "bias", "running_mean", "running_var", "num_batches_tracked"}
    expected = {f"layer1.{at}.conv1.weight" for at in (0, 1)} | {"fc.weight", "fc.bias"}
    assert keys_of(tmp_path) == expected | {f"layer1.{at}.bn1.{n}" for at in (0, 1) for n in norm}


def test_folded_normalizations_stay_folded_for_inference(tmp_path: Path) -> None:
    source = compare(make_model(*make_blocks()), tmp_path, inference=True)
    assert "BatchNorm" not in source and "layer1.0.conv1.bias" in keys_of(tmp_path)


def test_flat_modules_are_one_class(tmp_path: Path) -> None:
    source = compare(make_model(*make_blocks()), tmp_path, flat=True)
    classes = [n for n in ast.parse(source).body if isinstance(n, ast.ClassDef)]
    assert len(classes) == 1 and "Sequential" not in source


def describe(node: onnx.NodeProto, scopes: list[str], classes: list[str], call: str) -> None:
    """Enter what PyTorch's newer exporter writes of a node."""
    for key, text in (("name_scopes", str(["", *scopes, "n"])),
                      ("class_hierarchy", str(["my.Net", *classes, "aten.n"])),
                      ("fx_node", call)):  # fmt: skip
        node.metadata_props.add(key=f"pkg.torch.onnx.{key}", value=text)


@pytest.mark.parametrize("name", ["network", "recurrent", "projected", "strided"])
def test_modules_of_exported_programs_have_their_keys(name: str, tmp_path: Path) -> None:
    program = ROOT / f"tests/data/pt2/{name}.pt2"
    with zipfile.ZipFile(program) as archive:
        (path,) = (n for n in archive.namelist() if n.endswith("models/model.json"))
        signature = json.loads(archive.read(path))["graph_module"]["signature"]
    kinds = ("parameter", "buffer")
    keys = {spec[k][f"{k}_name"] for spec in signature["input_specs"] for k in kinds if k in spec}
    serde.convert(program, tmp_path / "net.py")
    data = (tmp_path / "net.safetensors").read_bytes()
    header = json.loads(data[8 : 8 + int.from_bytes(data[:8], "little")])
    assert header.keys() - {"__metadata__"} == keys  # "strided" reads no a.bias


def test_tied_and_packed_weights_keep_their_places(tmp_path: Path) -> None:
    """Words' table and last layer are one parameter; attention has its packed weights."""
    table = draw(5, 4)
    arrays = {"embed.weight": table, "val_1": table.T.copy(), "val_2": draw(4, 12),
              "attn.in_proj_bias": draw(12), "val_3": draw(12, 4)}  # fmt: skip
    nodes = [
        helper.make_node("Gather", ["embed.weight", "x"], ["e"], "node_embedding"),
        helper.make_node("MatMul", ["e", "val_2"], ["p"], "node_MatMul_1"),
        helper.make_node("Add", ["p", "attn.in_proj_bias"], ["q"], "node_linear"),
        helper.make_node("MatMul", ["q", "val_3"], ["r"], "node_MatMul_2"),
        helper.make_node("MatMul", ["r", "val_1"], ["y"], "node_MatMul_3"),
    ]
    linear = "torch.nn.modules.linear.Linear"
    attention = "torch.nn.modules.activation.MultiheadAttention"
    packed = "(%e, %p_attn_in_proj_weight, %p_attn_in_proj_bias)"
    describe(nodes[0], ["embed"], ["torch.nn.modules.sparse.Embedding"], "(%p_embed_weight, %x)")
    for node in nodes[1:3]:
        describe(node, ["attn"], [attention], packed)
    describe(nodes[3], ["attn"], [attention], "(%q, %p_attn_out_proj_weight)")
    describe(nodes[4], ["decoder"], [linear], "(%r, %p_embed_weight)")
    model = make_model(nodes, arrays, (2, 3))
    model.graph.input[0].type.tensor_type.elem_type = TensorProto.INT64
    ids = np.array([[0, 1, 2], [3, 4, 0]])
    source = compare(model, tmp_path, ids)
    assert keys_of(tmp_path) == {
        "embed.weight", "decoder.weight", "attn.in_proj_weight", "attn.in_proj_bias",
        "attn.out_proj.weight",
    }  # fmt: skip
    assert "self.decoder.weight = self.embed.weight" in source and "class Net(" in source
    assert "F.linear(x, self.in_proj_weight, self.in_proj_bias)" in source


def test_an_array_that_several_layers_read_is_of_one_module(tmp_path: Path) -> None:
    """Codes are looked up, multiplied with and squared; a cell multiplies with its weight twice."""
    arrays = {"book.weight": draw(5, 4), "cell.weight": draw(4, 4), "axis": np.array([1])}
    nodes = [
        helper.make_node("Gemm", ["x", "book.weight"], ["s"], "/Gemm", transB=1),
        helper.make_node("Mul", ["book.weight", "book.weight"], ["m"], "/Mul"),
        helper.make_node("ReduceSum", ["m", "axis"], ["n"], "/ReduceSum", keepdims=0),
        helper.make_node("Sub", ["s", "n"], ["d"], "/Sub"),
        helper.make_node("ArgMax", ["d"], ["i"], "/ArgMax", axis=1, keepdims=0),
        helper.make_node("Gather", ["book.weight", "i"], ["e"], "/book/Gather"),
        helper.make_node("Transpose", ["cell.weight"], ["t"], "/cell/Transpose", perm=[1, 0]),
        helper.make_node("MatMul", ["e", "t"], ["u"], "/cell/MatMul"),
        helper.make_node("Tanh", ["u"], ["v"], "/cell/Tanh"),
        helper.make_node("Transpose", ["cell.weight"], ["t2"], "/cell/Transpose_1", perm=[1, 0]),
        helper.make_node("MatMul", ["v", "t2"], ["y"], "/cell/MatMul_1"),
    ]
    source = compare(make_model(nodes, arrays, (2, 4)), tmp_path, draw(2, 4))
    assert keys_of(tmp_path) == {"book.weight", "cell.weight"}
    assert source.count("self.book.weight * self.book.weight") == 1


def test_weights_are_called_what_the_exporter_tells(tmp_path: Path) -> None:
    """Weights of experts that are looked up, and of attention whose keys are of another size."""
    arrays = {"val_1": draw(3, 4, 4), "val_2": draw(4, 4), "a.in_proj_bias": draw(8),
              "i": np.array([2, 0]), "n": np.array([4, 4])}  # fmt: skip
    nodes = [
        helper.make_node("ReduceSum", ["x"], ["r"], "node_sum", keepdims=0),
        helper.make_node("Cast", ["r"], ["c"], "node_cast", to=TensorProto.INT64),
        helper.make_node("Clip", ["c", "low", "high"], ["k"], "node_clip"),
        helper.make_node("Gather", ["val_1", "k"], ["w"], "node_index", axis=0),
        helper.make_node("MatMul", ["x", "w"], ["z"], "node_matmul"),
        helper.make_node("Split", ["a.in_proj_bias", "n"], ["b0", "b1"], "node_split", axis=0),
        helper.make_node("MatMul", ["z", "val_2"], ["p"], "node_MatMul_1"),
        helper.make_node("Add", ["p", "b0"], ["q"], "node_linear"),
        helper.make_node("Add", ["q", "b1"], ["y"], "node_add"),
    ]
    arrays |= {"low": np.array(0), "high": np.array(2)}
    index = "target=torch.ops.aten.index.Tensor](args = (%p_experts, [%k]), kwargs = {})"
    linear = "(%z, %p_a_q_proj_weight, %getitem)"
    for node in nodes:
        describe(node, [], [], index if node.name == "node_index" else "()")
    for node in nodes[5:]:
        node.ClearField("metadata_props")
        describe(node, ["a"], ["torch.nn.modules.activation.MultiheadAttention"], linear)
    model = make_model(nodes, arrays, (2, 4))
    model.graph.metadata_props.add(
        key="pkg.torch.export.ExportedProgram.graph_signature",
        value="p_experts: PARAMETER target='experts'\n"
        "p_a_q_proj_weight: PARAMETER target='a.q_proj_weight'\n"
        "p_a_in_proj_bias: PARAMETER target='a.in_proj_bias'",
    )
    compare(model, tmp_path, draw(2, 4))
    assert keys_of(tmp_path) == {"experts", "a.q_proj_weight", "a.in_proj_bias"}


def test_parts_of_an_array_are_read_of_the_whole(tmp_path: Path) -> None:
    """Attention between two sequences splits its packed weights."""
    arrays = {"a.in_proj_weight": draw(12, 4), "a.in_proj_bias": draw(12), "n": np.array([4, 8]),
              "t.tokens": draw(2, 4)}  # fmt: skip
    nodes = [
        helper.make_node("Split", ["a.in_proj_weight", "n"], ["w0", "w1"], "/a/Split", axis=0),
        helper.make_node("Split", ["a.in_proj_bias", "n"], ["b0", "b1"], "/a/Split_1", axis=0),
        helper.make_node("Gemm", ["x", "w1", "b1"], ["kv"], "/a/Gemm", transB=1),
        helper.make_node("Gemm", ["x", "w0", "b0"], ["q"], "/a/Gemm_1", transB=1),
        helper.make_node("Split", ["t.tokens"], ["t0", "t1"], "/t/Split", axis=0),
        helper.make_node("Mul", ["q", "t1"], ["r"], "/t/Mul"),
        helper.make_node("Sub", ["r", "t0"], ["s"], "/t/Sub"),
        helper.make_node("Concat", ["s", "kv"], ["y"], "/Concat", axis=1),
    ]
    source = compare(make_model(nodes, arrays, (2, 4)), tmp_path, draw(2, 4))
    assert keys_of(tmp_path) == {"a.in_proj_weight", "a.in_proj_bias", "t.tokens"}
    assert "F.linear(x, self.in_proj_weight[4:], self.in_proj_bias[4:])" in source
    assert "self.tokens[1:]" in source
    data = (tmp_path / "n.safetensors").read_bytes()
    assert arrays["a.in_proj_weight"].tobytes() in data


def test_an_array_whose_rest_is_not_read_is_there_as_a_whole(tmp_path: Path) -> None:
    """Such as a table of positions of which a short sequence reads the first."""
    arrays = {"a.scale": draw(8), "a.positions": draw(1, 9, 4), "first": np.array([0]),
              "last": np.array([2]), "axis": np.array([1]), "row": np.array(3)}  # fmt: skip
    nodes = [
        helper.make_node("Split", ["a.scale"], ["s", "unread"], "/a/Split", axis=0),
        helper.make_node("Mul", ["x", "s"], ["u"], "/a/Mul"),
        helper.make_node("Slice", ["a.positions", "first", "last", "axis"], ["p"], "/a/Slice"),
        helper.make_node("Add", ["u", "p"], ["v"], "/a/Add"),
        helper.make_node("Gather", ["a.scale", "row"], ["g"], "/a/Gather"),
        helper.make_node("Mul", ["v", "g"], ["y"], "/a/Mul_1"),
    ]
    source = compare(make_model(nodes, arrays, (2, 4)), tmp_path, draw(2, 4))
    assert keys_of(tmp_path) == {"a.scale", "a.positions"} and "register_buffer" not in source
    assert "self.positions[:, :2]" in source
    data = (tmp_path / "n.safetensors").read_bytes()
    assert all(arrays[key].tobytes() in data for key in keys_of(tmp_path))


def test_a_weight_that_is_repeated_is_trained_once(tmp_path: Path) -> None:
    arrays = {"a.queries": draw(4), "sizes": np.array([2, 4])}
    nodes = [
        helper.make_node("Expand", ["a.queries", "sizes"], ["q"], "/a/Expand"),
        helper.make_node("Mul", ["x", "q"], ["y"], "/a/Mul"),
    ]
    source = compare(make_model(nodes, arrays, (2, 4)), tmp_path, draw(2, 4))
    assert keys_of(tmp_path) == {"a.queries"} and "self.queries.expand(" in source


def test_an_array_in_another_shape_is_there_as_the_source_has_it(tmp_path: Path) -> None:
    """Whether the file reshapes it, or the exporter did and tells what the array was."""
    arrays = {"a.gamma": draw(4), "to": np.array([1, 4, 1, 1]), "view_1": draw(1, 4, 1, 1)}
    nodes = [
        helper.make_node("Reshape", ["a.gamma", "to"], ["g"], "node_view"),
        helper.make_node("Mul", ["x", "g"], ["u"], "node_mul"),
        helper.make_node("Mul", ["u", "view_1"], ["y"], "node_mul_1"),
    ]
    model = make_model(nodes, arrays)
    kept = "(%x, %p_a_gamma)", "return x * self.scale.view(1, -1, 1, 1)"
    for node, scope, call in zip(model.graph.node, ("a", "a", "b"), (*kept[:1] * 2, "(%u, %view_1)"),
                                 strict=True):  # fmt: skip
        describe(node, [scope], ["my.Scale"], call)
    last = model.graph.node[-1].metadata_props
    last.add(key="pkg.torch.onnx.stack_trace", value=f"line 1, in forward\n    {kept[1]}")
    model.graph.metadata_props.add(
        key="pkg.torch.export.ExportedProgram.graph_signature",
        value="p_a_gamma: PARAMETER target='a.gamma'\np_b_scale: PARAMETER target='b.scale'\n"
        "b_b_rest: BUFFER target='b.rest' persistent=False",
    )
    source = compare(model, tmp_path)
    assert keys_of(tmp_path) == {"a.gamma", "b.scale"}
    assert "nn.Parameter(torch.empty((4,)))" in source and ".reshape(1, 4, 1, 1)" in source


def test_whole_numbers_that_the_source_names_are_buffers(tmp_path: Path) -> None:
    """TorchScript's exporter has one array for equal ones of alike modules."""
    arrays = {"b.0.t": draw(5, 6), "b.1.t": draw(5, 6), "b.0.index": np.array([3, 1])}
    nodes = [
        helper.make_node("Gather", ["b.0.t", "b.0.index"], ["u"], "/b/b.0/Gather"),
        helper.make_node("Gather", ["b.1.t", "b.0.index"], ["v"], "/b/b.1/Gather"),
        helper.make_node("Add", ["u", "v"], ["w"], "/Add"),
        helper.make_node("Add", ["w", "x"], ["y"], "/Add_1"),
    ]
    compare(make_model(nodes, arrays, (2, 6)), tmp_path, draw(2, 6))
    assert keys_of(tmp_path) == {*arrays, "b.1.index"}


def test_a_weight_that_is_not_transposed_stays_so(tmp_path: Path) -> None:
    """A module of its own, whose weight is no linear layer's."""
    arrays = {"h.c_attn.weight": draw(6, 9), "h.c_attn.bias": draw(9)}
    names = ["x", "h.c_attn.weight", "h.c_attn.bias"]
    nodes = [helper.make_node("Gemm", names, ["z"], "/h/c_attn/Gemm"),
             helper.make_node("Relu", ["z"], ["y"], "/h/Relu")]  # fmt: skip
    source = compare(make_model(nodes, arrays, (2, 6)), tmp_path, draw(2, 6))
    assert keys_of(tmp_path) == {*arrays}
    assert "torch.empty((6, 9))" in source


def test_constants_are_no_keys(tmp_path: Path) -> None:
    arrays = {
        "a.fc.weight": draw(6, 6),
        "onnx::Add_7": draw(6),
        "/a/Constant_output_0": draw(1, 40),
    }
    nodes = [
        helper.make_node("Gemm", ["x", "a.fc.weight"], ["z"], "/a/fc/Gemm", transB=1),
        helper.make_node("Add", ["z", "onnx::Add_7"], ["w"], "/a/Add"),
        helper.make_node("Concat", ["w", "/a/Constant_output_0"], ["y"], "/a/Concat", axis=1),
    ]
    compare(make_model(nodes, arrays, (1, 6)), tmp_path, draw(1, 6))
    text = (tmp_path / "n.py").read_text()
    assert text.count("persistent=False") == 2 and "model.get_buffer(name)" in text


def test_modules_that_are_no_whole_are_only_places(tmp_path: Path) -> None:
    """What goes in between leaves the block and comes back."""
    arrays = {"a.p.weight": draw(6, 6), "b.q.weight": draw(6, 6), "a.r.weight": draw(6, 6)}
    nodes = [
        helper.make_node("Gemm", ["x", "a.p.weight"], ["u"], "/a/p/Gemm", transB=1),
        helper.make_node("Gemm", ["u", "b.q.weight"], ["v"], "/b/q/Gemm", transB=1),
        helper.make_node("Gemm", ["v", "a.r.weight"], ["y"], "/a/r/Gemm", transB=1),
    ]
    source = compare(make_model(nodes, arrays, (1, 6)), tmp_path, draw(1, 6))
    assert keys_of(tmp_path) == {*arrays}
    assert "self.a.p(x)" in source and "self.a.r(" in source


def test_a_cell_that_is_called_again_has_its_arrays_once(tmp_path: Path) -> None:
    arrays = {"cell.weight_hh": draw(6, 6), "cell.bias_hh": draw(6)}
    nodes = [
        helper.make_node("Gemm", [x, *arrays], [y], f"/{name}/Gemm", transB=1)
        for name, x, y in (("cell", "x", "u"), ("cell_1", "u", "v"), ("cell_2", "v", "y"))
    ]
    compare(make_model(nodes, arrays, (1, 6)), tmp_path, draw(1, 6))
    assert keys_of(tmp_path) == {*arrays}


def test_paths_of_names() -> None:
    assert find_paths("/layer1/layer1.0/conv1/Conv")[-1] == ("layer1", "0", "conv1")
    known = {("layers", "layers", "0", "fc")}
    known |= {path[:3] for path in known}
    assert find_paths("/layers/layers.0/fc/MatMul", known)[-1] == ("layers", "layers", "0", "fc")
    assert find_paths("/cell_1/Gemm", {("cell",)}) == [("cell",)]
    assert find_paths("/cell_1/Gemm", {("cell",), ("cell_1",)}) == [("cell_1",)]
    assert find_paths("/Relu") == [] and find_paths("conv0_fwd") == []
    assert split_name("stage1_unit2_conv0") == ("stage1", "unit2", "conv0")
    assert split_name("proj_query") == ("proj_query",)


@pytest.mark.parametrize(
    ("name", "expected"),
    [("layer1.0.conv.weight", True), ("0.weight", True), ("block1-0.weight", False),
     ("a.block1-0.weight", True), ("onnx::Conv_12", False), ("val_3", False), ("a b.c", False),
     ("/a/Constant_output_0", False), ("x'); import os; ('.w", False)],
)  # fmt: skip
def test_names_of_parameters_are_told_from_others(name: str, expected: bool) -> None:
    assert is_key(name) == expected


def test_names_of_blocks_are_no_code(tmp_path: Path) -> None:
    hostile = "x'); import os; ('"
    arrays = {"w": draw(6, 6)}
    nodes = [helper.make_node("Gemm", ["x", "w"], ["u"], f"/{hostile}/class/Gemm", transB=1),
             helper.make_node("Relu", ["u"], ["y"], "/train/0/Relu")]  # fmt: skip
    source = compare(make_model(nodes, arrays, (1, 6)), tmp_path, draw(1, 6))
    assert not any(isinstance(n, ast.Import) and n.names[0].name == "os"
                   for n in ast.walk(ast.parse(source)))  # fmt: skip


def test_arrays_that_are_joined_are_joined_in_forward(tmp_path: Path) -> None:
    """As the biases of queries and values, with zeros for those of keys."""
    serde.convert(ROOT / "tests/data/pt2/joined.pt2", tmp_path / "n.py")
    assert {"a.weight", "b.0", "b.1"} <= keys_of(tmp_path)
    assert (tmp_path / "n.py").read_text().count("persistent=False") == 1
    if not why_not():
        numbers = np.load(ROOT / "tests/data/pt2/joined.npz")
        (got,) = TorchWorker().run(str(tmp_path / "n.py"), [numbers["in0"]])
        np.testing.assert_allclose(got, numbers["out0"], rtol=0, atol=1e-5)


@needs_torch
@pytest.mark.parametrize(
    "second", ["28", "999", "5000000", "9" * 18, "9" * 5000, "01", "²", "٣", "-1", "1e5"]
)
@pytest.mark.parametrize("scope", ["/features/features.{}", "/a.{0}/b.{0}", "/{}"])
def test_any_number_or_none_may_be_the_name_of_a_member(scope, second, tmp_path: Path) -> None:
    """Gaps of a list are filled, but not millions of them."""
    nodes, arrays, x = [], {}, "x"
    for at in (
        "0",
        second,
        str(int(second) + 1) if second.isdecimal() and len(second) < 19 else "1",
    ):
        place = scope.format(at)
        name = f"{place[1:].replace('/', '.')}.weight"
        arrays[name] = draw(4, 4, 1, 1)
        nodes += [helper.make_node("Conv", [x, name], [f"{place}/c"], f"{place}/Conv"),
                  helper.make_node("Relu", [f"{place}/c"], [f"{place}/r"], f"{place}/Relu")]  # fmt: skip
        x = f"{place}/r"
    nodes[-1].output[0] = "y"
    onnx.save(make_model(nodes, arrays), tmp_path / "m.onnx")
    is_run = second in ("28", "²") and scope.startswith("/f")
    assert serde.convert(tmp_path / "m.onnx", tmp_path / "m.py", verify=is_run).ok
    source = (tmp_path / "m.py").read_text("utf-8")
    assert len(source) < 100_000 and ast.parse(source)


def test_a_sequence_calls_no_layer_that_only_holds_an_array(tmp_path: Path) -> None:
    """The bias is of the convolution, which the exporter folded into the normalization behind."""
    arrays = {"val_1": draw(4, 8, 3, 3), "l.0.bias": draw(8)}
    nodes = [
        helper.make_node("ConvTranspose", ["x", *arrays], ["a"], "node_c"),
        helper.make_node("Relu", ["a"], ["y"], "node_relu"),
    ]
    kinds = ["torch.nn.modules.container.Sequential", "torch.nn.modules.batchnorm.BatchNorm2d",
             "torch.nn.modules.activation.ReLU"]  # fmt: skip
    norm = "[target=torch.ops.aten._native_batch_norm_legit_no_training.default](args = (%c, %p_w,"
    describe(nodes[0], ["l", "l.1"], kinds[:2], norm)
    describe(nodes[1], ["l", "l.2"], [kinds[0], kinds[2]], "()")
    source = compare(make_model(nodes, arrays), tmp_path)
    assert source.count("ConvTranspose2d(4, 8, 3)") == 1


def test_a_layer_without_arrays_that_is_called_again_is_one_of_its_list(tmp_path: Path) -> None:
    arrays = {"l.0.weight": draw(4, 4, 1, 1), "rate": np.array(0.2, np.float32)}
    nodes, x = [], "x"
    for at in range(2):
        for name, op, inputs in (("0", "Conv", ["l.0.weight"]), ("1", "Dropout", ["rate"])):
            nodes.append(helper.make_node(op, [x, *inputs], [f"{op}{at}"], f"node_{op}{at}"))
            kind = "torch.nn.modules.conv.Conv2d" if name == "0" else "torch.nn.modules.Dropout"
            describe(nodes[-1], ["l", f"l.{name}"], ["torch.nn.modules.ModuleList", kind], "()")
            x = f"{op}{at}"
        nodes.append(helper.make_node("Relu", [x], [f"r{at}"], f"node_r{at}"))
        x = f"r{at}"
    nodes[-1].output[0] = "y"
    source = compare(make_model(nodes, arrays), tmp_path, training=True)
    assert keys_of(tmp_path) == {"l.0.weight"} and source.count("nn.Dropout(0.2)") == 1


def test_an_array_of_three_axes_that_is_turned_is_as_the_source_has_it(tmp_path: Path) -> None:
    """As the matrices of experts, which the file has turned and the model multiplies with."""
    arrays = {"a.experts": draw(1, 5, 4), "b.table": draw(7, 6, 2)}
    nodes = [
        helper.make_node("Transpose", ["a.experts"], ["t"], "/a/Transpose", perm=[0, 2, 1]),
        helper.make_node("MatMul", ["x", "t"], ["u"], "/a/MatMul"),
        helper.make_node("Transpose", ["b.table"], ["s"], "/b/Transpose", perm=[2, 0, 1]),
        helper.make_node("MatMul", ["s", "x"], ["v"], "/b/MatMul"),
        helper.make_node("Transpose", ["u"], ["w"], "/Transpose", perm=[0, 2, 1]),
        helper.make_node("ReduceSum", ["v"], ["r"], "/ReduceSum"),
        helper.make_node("Add", ["w", "r"], ["y"], "/Add"),
    ]
    model = make_model(nodes, arrays, (1, 6, 4))
    source = compare(model, tmp_path, draw(1, 6, 4))
    assert keys_of(tmp_path) == {"a.experts", "b.table"}
    assert ".permute(0, 2, 1)" in source and "self.table.permute(2, 0, 1)" in source


def make_node_of(array: str, *steps: tuple[str, list[list[int]], dict]) -> list[onnx.NodeProto]:
    """The nodes that rearrange an array, each of operands of integers and attributes."""
    nodes, x = [], array
    for at, (op, operands, attrs) in enumerate(steps):
        names = [f"{array}_{at}_{k}" for k in range(len(operands))]
        nodes += [helper.make_node("Constant", [], [name], value_ints=numbers)
                  for name, numbers in zip(names, operands, strict=True)]  # fmt: skip
        nodes.append(helper.make_node(op, [x, *names], [f"{array}_{at}"], **attrs))
        x = f"{array}_{at}"
    return nodes


REARRANGED = {
    "all rows in order": (("Gather", [[0, 1, 2, 3, 4, 5]], {}),),
    "rows back to front": (("Slice", [[5], [-9], [0], [-1]], {}),),
    "chosen rows": (("Gather", [[2, 0, 1, 5, 3, 4]], {}),),
    "turned in another shape": (
        ("Reshape", [[2, 3, 6]], {}), ("Transpose", [], {"perm": [1, 0, 2]}),
        ("Reshape", [[6, 6]], {}),
    ),
}  # fmt: skip


@pytest.mark.parametrize("steps", REARRANGED.values(), ids=REARRANGED)
def test_a_rearranged_array_is_computed_of_the_checkpoints(steps, tmp_path: Path) -> None:
    """Its place may hold no rows in another order, which a checkpoint would be loaded into."""
    arrays = {"rnn.weight": draw(6, 6), "rnn.flat": draw(6, 6)}
    nodes = make_node_of("rnn.weight", *steps)
    rows = nodes[-1].output[0]
    nodes += [
        helper.make_node("Gemm", ["x", rows], ["z"], "/rnn/Gemm", transB=1),
        helper.make_node("Gemm", ["z", "rnn.flat"], ["y"], "/rnn/Gemm_1", transB=1),
    ]
    text = compare(make_model(nodes, arrays, (2, 6)), tmp_path, draw(2, 6))
    assert keys_of(tmp_path) == arrays.keys()
    arrays["rnn.weight"] = draw(6, 6)
    assert compare(make_model(nodes, arrays, (2, 6)), tmp_path, draw(2, 6)) == text


def test_an_array_that_is_turned_in_another_shape_is_computed(tmp_path: Path) -> None:
    arrays = {"pos.table": draw(1, 12, 2), "fc.weight": draw(3, 6)}
    steps = ("Reshape", [[1, 3, 4, 2]], {}), ("Transpose", [], {"perm": [0, 3, 1, 2]})
    nodes = make_node_of("pos.table", *steps)
    nodes += [
        helper.make_node("Mul", ["x", nodes[-1].output[0]], ["z"], "/pos/Mul"),
        helper.make_node("ReduceSum", ["z"], ["s"], "/ReduceSum", keepdims=0),
        helper.make_node("Mul", ["s", "fc.weight"], ["y"], "/fc/Mul"),
    ]
    compare(make_model(nodes, arrays, (1, 2, 3, 4)), tmp_path, draw(1, 2, 3, 4))
    assert keys_of(tmp_path) == arrays.keys()


def test_parts_of_an_array_that_are_joined_are_cut_from_it(tmp_path: Path) -> None:
    arrays = {"rnn.weight": draw(6, 6), "rnn.bias": draw(6), "rnn.flat": draw(6, 6)}
    ends = {"zero": [0], "third": [2], "end": [6]}
    constants = {name: np.array(values) for name, values in ends.items()}
    nodes = []
    for name in ("weight", "bias"):
        for part, places in (("low", ("zero", "third")), ("high", ("third", "end"))):
            operands = [f"rnn.{name}", *places, "zero"]
            nodes.append(helper.make_node("Slice", operands, [f"{name}_{part}"]))
        parts = [f"{name}_high", f"{name}_low"]
        nodes.append(helper.make_node("Concat", parts, [name], axis=0))
    nodes += [
        helper.make_node("Gemm", ["x", "weight", "bias"], ["z"], "/rnn/Gemm", transB=1),
        helper.make_node("Gemm", ["z", "rnn.flat"], ["y"], "/rnn/Gemm_1", transB=1),
    ]
    text = compare(make_model(nodes, arrays | constants, (2, 6)), tmp_path, draw(2, 6))
    assert keys_of(tmp_path) == arrays.keys()
    assert text.count("[2:]") == 2


def test_a_layer_in_a_container_is_where_its_arrays_are(tmp_path: Path) -> None:
    """The exporter's scopes leave out ``nn.ModuleDict``, whose members a module calls itself."""
    arrays = {f"h.{at}.attn.proj.weight": draw(6, 6) for at in range(2)}
    nodes, x = [], "x"
    for at, name in enumerate(arrays):
        nodes += [
            helper.make_node("Transpose", [name], [f"t{at}"], f"/attn/proj/Transpose_{at}"),
            helper.make_node("MatMul", [x, f"t{at}"], [f"m{at}"], f"/attn/proj/MatMul_{at}"),
            helper.make_node("Tanh", [f"m{at}"], [f"y{at}"], f"/Tanh_{at}"),
        ]
        x = f"y{at}"
    nodes[-1].output[:] = ["y"]
    compare(make_model(nodes, arrays, (2, 6)), tmp_path, draw(2, 6))
    assert keys_of(tmp_path) == arrays.keys()
