"""Arrays of a checkpoint that PyTorch's exporter has computed others of are in modules again."""

from __future__ import annotations

import ast
import json
from pathlib import Path

import numpy as np
import onnx
import pytest
from onnx import helper

import serde
from serde.formats.torch.modules.line_expressions import find_expressions
from serde.formats.torch.modules.parametrizations import SCHEMES, split_largest, split_norms
from tests.torch.test_nesting import compare, describe, draw, keys_of, make_model, needs_torch

SIGNATURE = "pkg.torch.export.ExportedProgram.graph_signature"
LINEAR = "torch.nn.modules.linear.Linear"


def sign(model: onnx.ModelProto, *keys: str, buffers: tuple[str, ...] = ()) -> onnx.ModelProto:
    """Enter the arrays of the checkpoint, as the exporter lists them."""
    lines = [f"p_{key.replace('.', '_')}: PARAMETER target='{key}'" for key in keys]
    lines += [f"b_{key.replace('.', '_')}: BUFFER target='{key}' persistent=True"
              for key in buffers]  # fmt: skip
    model.graph.metadata_props.add(key=SIGNATURE, value="\n".join(lines))
    return model


def shape_of(folder: Path, key: str) -> tuple[int, ...]:
    """The shape of an array in the ``state_dict``."""
    data = (folder / "n.safetensors").read_bytes()
    return tuple(json.loads(data[8 : 8 + int.from_bytes(data[:8], "little")])[key]["shape"])


def add_line(node: onnx.NodeProto, line: str) -> None:
    node.metadata_props.add(key="pkg.torch.onnx.stack_trace", value=f'File "a.py"\n    {line}')


def test_a_turned_weight_is_that_of_the_layer_that_reads_it(tmp_path: Path) -> None:
    """Also where the file has the array twice: one that an embedding shares."""
    table = draw(5, 4)
    arrays = {"head.weight": table, "val_3": np.ascontiguousarray(table.T), "val_9": draw(4, 4)}
    nodes = [
        helper.make_node("MatMul", ["x", "val_9"], ["z"], "node_linear"),
        helper.make_node("MatMul", ["z", "val_3"], ["u"], "node_linear_1"),
        helper.make_node("MatMul", ["u", "head.weight"], ["y"], "node_matmul"),
    ]
    describe(nodes[0], ["body"], ["my.Body"], "linear.default](args = (%x, %p_body_fc_weight)")
    describe(nodes[1], ["head"], [LINEAR], "linear.default](args = (%z, %p_head_weight)")
    describe(nodes[2], [], [], "matmul.default](args = (%u, %p_head_weight)")
    model = sign(make_model(nodes, arrays, (2, 4)), "body.fc.weight", "head.weight")
    compare(model, tmp_path, draw(2, 4))
    assert keys_of(tmp_path) == {"body.fc.weight", "head.weight"}


def test_looked_up_positions_are_rows_of_a_table(tmp_path: Path) -> None:
    nodes = [helper.make_node("Add", ["x", "embedding_1"], ["y"], "node_add")]
    describe(nodes[0], ["emb"], ["my.Embeddings"], "add.Tensor](args = (%x, %embedding_1)")
    model = make_model(nodes, {"embedding_1": draw(1, 3, 4)}, (2, 3, 4))
    compare(sign(model, "emb.positions.weight", "other.weight"), tmp_path, draw(2, 3, 4))
    assert keys_of(tmp_path) == {"emb.positions.weight"}
    assert shape_of(tmp_path, "emb.positions.weight") == (3, 4)


def test_some_rows_in_another_shape_are_turned(tmp_path: Path) -> None:
    """As models have it that resize a table of positions."""
    arrays = {
        "emb.table": draw(7, 4), "begin": np.array([1]), "end": np.array([5]), "axis": np.array([0]),
        "shape": np.array([1, 2, 2, 4]),
    }  # fmt: skip
    nodes = [
        helper.make_node("Slice", ["emb.table", "begin", "end", "axis"], ["s"], "node_slice"),
        helper.make_node("Reshape", ["s", "shape"], ["r"], "node_view"),
        helper.make_node("Transpose", ["r"], ["t"], "node_permute", perm=[0, 3, 1, 2]),
        helper.make_node("Add", ["x", "t"], ["y"], "node_add"),
    ]
    for node, call in zip(nodes, ("slice.Tensor", "view", "permute", "add.Tensor"), strict=True):
        describe(node, ["emb"], ["my.Embeddings"], f"{call}](args = (%p_emb_table))")
    model = sign(make_model(nodes, arrays, (2, 4, 2, 2)), "emb.table")
    compare(model, tmp_path, draw(2, 4, 2, 2))
    assert keys_of(tmp_path) == {"emb.table"}
    assert shape_of(tmp_path, "emb.table") == (7, 4)


def test_rows_that_repeat_tell_no_table(tmp_path: Path) -> None:
    nodes = [helper.make_node("Add", ["x", "embedding_1"], ["y"], "node_add")]
    describe(nodes[0], ["emb"], ["my.Embeddings"], "add.Tensor](args = (%x, %embedding_1)")
    rows = np.repeat(draw(1, 1, 4), 3, 1)
    model = make_model(nodes, {"embedding_1": rows}, (2, 3, 4))
    compare(sign(model, "emb.kinds.weight"), tmp_path, draw(2, 3, 4))
    assert not keys_of(tmp_path) & {"emb.kinds.weight"}


@pytest.mark.parametrize(("line", "name", "key", "undo"), [
    ("y = x * (1.0 + self.weight.float())", "add_3", "n.weight", lambda c: c - 1),
    ("return x * torch.exp(self.scale)", "exp", "n.scale", np.log),
    ("y = x * self.a.b[None, :]", "unsqueeze_2", "n.a.b", lambda c: c.reshape(-1)),
    ("y = x * (self.w / 4)", "div_1", "n.w", lambda c: c * 4),
    ("y = x * -self.w", "neg", "n.w", np.negative),
    ("def forward(s, x): return x * s.scale.exp()", "exp", "n.scale", np.log),
    ("if self.w is not None: y = x * self.w.clone().detach()", "detach", "n.w", np.asarray),
    ("y = x * self.offset.view(1, -1)", "view_1", "n.offset", np.ravel),
])  # fmt: skip
def test_what_a_line_computes_of_an_array_is_computed_in_forward(
    line: str, name: str, key: str, undo, tmp_path: Path
) -> None:
    constant = np.abs(draw(1, 4)) + 0.5
    nodes = [helper.make_node("Mul", ["x", name], ["y"], "node_mul")]
    describe(nodes[0], ["n"], ["my.Norm"], f"mul.Tensor](args = (%x, %{name})")
    add_line(nodes[0], line)
    model = sign(make_model(nodes, {name: constant}, (2, 4)), key, "n.other")
    source = compare(model, tmp_path, draw(2, 4))
    assert key in keys_of(tmp_path), source
    data = (tmp_path / "n.safetensors").read_bytes()
    expected = undo(constant).astype(np.float32)
    np.testing.assert_allclose(np.frombuffer(data[-16:], np.float32), expected.ravel(), rtol=1e-6)


@pytest.mark.parametrize("line", [
    "y = x * (1.0 + self.weight) * scale",  # the constant may be more than what is in brackets
    "y = x * self.unknown(self.weight)",
    "y = x * self.weight",
    "y = f(x,",
    "y = x * (1.0 + self.weight) + (2.0 + self.other)",
])  # fmt: skip
def test_a_line_that_leaves_doubt_tells_nothing(line: str, tmp_path: Path) -> None:
    name = "mul_1" if "scale" in line else "add_1"
    nodes = [helper.make_node("Mul", ["x", name], ["y"], "node_mul")]
    describe(nodes[0], ["n"], ["my.Norm"], f"mul.Tensor](args = (%x, %{name})")
    add_line(nodes[0], line)
    model = sign(make_model(nodes, {name: draw(4)}, (2, 4)), "n.weight", "n.other")
    compare(model, tmp_path, draw(2, 4))
    assert not keys_of(tmp_path) & {"n.weight", "n.other"}


def make_line(line: str, operators: dict[str, str], arrays: dict, *keys: str) -> onnx.ModelProto:
    """A model of calls of one line that each read a constant."""
    nodes, x = [], "x"
    for at, (name, op) in enumerate(operators.items()):
        result = "y" if at == len(operators) - 1 else f"z{at}"
        nodes.append(helper.make_node(op, [x, name], [result], f"node_{at}"))
        target = f"call_function[target=torch.ops.aten.{op.lower()}.Tensor](args = (%{x}, %{name}))"
        describe(nodes[-1], ["n"], ["my.Norm"], target)
        add_line(nodes[-1], line)
        x = result
    return sign(make_model(nodes, arrays, (2, 4)), *keys)


def test_rows_of_a_line_are_those_of_arrays(tmp_path: Path) -> None:
    """The operators that read them tell them apart, and the order in which they are computed."""
    line = "c = torch.tanh(x * self.v[0] + self.b[0]); y = c * self.v[1] + self.b[1]"
    operators = dict(zip(["select_2", "select_3", "select_6", "select_7"], ["Mul", "Add"] * 2,
                         strict=True))  # fmt: skip
    arrays = {name: draw(4) for name in operators}
    model = make_line(line, operators, arrays, "n.v", "n.b", "n.other")
    source = compare(model, tmp_path, draw(2, 4))
    assert keys_of(tmp_path) == {"n.v", "n.b"} and "self.v[1]" in source
    assert shape_of(tmp_path, "n.v") == shape_of(tmp_path, "n.b") == (2, 4)
    data = (tmp_path / "n.safetensors").read_bytes()
    listed = json.loads(data[8 : 8 + int.from_bytes(data[:8], "little")])["n.b"]["data_offsets"]
    start = 8 + int.from_bytes(data[:8], "little") + listed[0]
    rows = np.frombuffer(data[start : start + 32], np.float32).reshape(2, 4)
    np.testing.assert_array_equal(rows, [arrays["select_3"], arrays["select_7"]])


def test_integers_of_a_line_are_buffers(tmp_path: Path) -> None:
    array = np.arange(5, 9).reshape(1, 4)
    nodes = [
        helper.make_node("Cast", ["x"], ["i"], to=7),
        helper.make_node("Add", ["i", "unsqueeze"], ["j"], "node_add"),
        helper.make_node("Cast", ["j"], ["y"], to=1),
    ]
    describe(nodes[1], ["n"], ["my.Norm"], "add.Tensor](args = (%i, %unsqueeze)")
    add_line(nodes[1], "y = self.emb(i + self.offsets[None])")
    model = sign(make_model(nodes, {"unsqueeze": array}, (2, 4)), buffers=("n.offsets",))
    compare(model, tmp_path, draw(2, 4))
    assert keys_of(tmp_path) == {"n.offsets"} and shape_of(tmp_path, "n.offsets") == (4,)


def test_rows_without_those_before_tell_no_array(tmp_path: Path) -> None:
    model = make_line("y = x * self.v[1]", {"select": "Mul"}, {"select": draw(4)}, "n.v")
    compare(model, tmp_path, draw(2, 4))
    assert "n.v" not in keys_of(tmp_path)


@pytest.mark.parametrize("line", [
    "h = self.blocks(pos + x, self.v.unsqueeze(1).repeat(x.size(0), 1))", "y = x + pos * self.v.unsqueeze(0)",
])  # fmt: skip
def test_what_another_operator_reads_is_another_array(line: str, tmp_path: Path) -> None:
    model = make_line(line, {"unsqueeze": "Add"}, {"unsqueeze": draw(2, 1)}, "n.v")
    compare(model, tmp_path, draw(2, 4))
    assert "n.v" not in keys_of(tmp_path)


def test_reordered_vectors_are_not_arrays(tmp_path: Path) -> None:
    model = make_line("y = x * self.v[self.order]", {"index": "Mul"}, {"index": draw(4)}, "n.v")
    compare(model, tmp_path, draw(2, 4))
    assert "n.v" not in keys_of(tmp_path)


@pytest.mark.parametrize("is_equal", [True, False])
def test_arrays_of_the_file_are_computed_with(is_equal: bool, tmp_path: Path) -> None:
    """A checkpoint that is loaded changes both; other numbers are those of something else."""
    scale, line = np.abs(draw(4)), "y = x * self.scale + torch.exp(self.scale)"
    arrays = {"n.scale": scale, "exp": np.exp(scale) + (0 if is_equal else 1)}
    model = make_line(line, {"n.scale": "Mul", "exp": "Add"}, arrays, "n.scale")
    source = compare(model, tmp_path, draw(2, 4))
    assert ("torch.exp(self.scale)" in source) == is_equal


def test_a_number_that_a_call_computes_is_no_literal(tmp_path: Path) -> None:
    operators, arrays = {"exp": "Mul"}, {"exp": np.array(13.7, np.float32)}
    model = make_line("return self.logit_scale.exp() * x", operators, arrays, "n.logit_scale")
    model.producer_name = "pytorch"
    source = compare(model, tmp_path, draw(2, 4))
    assert keys_of(tmp_path) == {"n.logit_scale"} and "torch.exp(self.logit_scale)" in source


def test_a_turned_matrix_of_a_line_is_that_of_the_source(tmp_path: Path) -> None:
    line = "return F.dropout(x, 0.1) @ self.lora_A.T @ self.lora_B.T"
    operators = {"permute": "MatMul", "permute_1": "MatMul"}
    arrays = {"permute": draw(4, 4), "permute_1": draw(4, 6)}
    compare(make_line(line, operators, arrays, "n.lora_A", "n.lora_B"), tmp_path, draw(2, 4))
    assert shape_of(tmp_path, "n.lora_A") == (4, 4) and shape_of(tmp_path, "n.lora_B") == (6, 4)
    data = (tmp_path / "n.safetensors").read_bytes()
    assert np.ascontiguousarray(arrays["permute"].T).tobytes() in data


def test_expressions_are_of_one_member_and_numbers() -> None:
    (found,) = find_expressions("return F.linear(x, F.normalize(self.head.weight))")
    assert found.member == ("head", "weight") and [s.op for s in found.steps] == ["F.normalize"]
    assert found.computes("div_4") and not found.computes("mul_4")
    assert not list(find_expressions("x = self.table[self.index].view(4, 4)"))


@pytest.mark.parametrize("scheme", SCHEMES)
def test_computed_weights_are_computed_by_their_modules(scheme: str, tmp_path: Path) -> None:
    arrays = {"mul": draw(6, 4, 3), "a.bias": draw(6)}
    nodes = [helper.make_node("Conv", ["x", "mul", "a.bias"], ["y"], "node_conv1d", pads=[1, 1])]
    conv = "torch.nn.utils.parametrize.ParametrizedConv1d"
    describe(nodes[0], ["a"], [conv], "conv1d.default](args = (%x, %mul, %p_a_bias)")
    names = [f"a.{name}" for name in SCHEMES[scheme]]
    model = sign(make_model(nodes, arrays, (2, 4, 5)), "a.bias", *names)
    source = compare(model, tmp_path, draw(2, 4, 5))
    assert f"{scheme}(nn.Conv1d(4, 6, 3, padding=1))" in source
    assert keys_of(tmp_path) == {"a.bias", *names}


def test_arrays_of_computed_weights_give_them() -> None:
    weight = draw(4, 3, 2)
    norms, directions = split_norms(weight)
    lengths = np.linalg.norm(directions.reshape(4, -1), axis=1).reshape(4, 1, 1)
    np.testing.assert_allclose(norms * directions / lengths, weight, rtol=1e-5)
    matrix, left, right = split_largest(weight, weight)
    assert abs(left @ (matrix.reshape(4, -1) @ right) - 1) < 1e-5
    assert split_norms(np.zeros((2, 2))) is None and split_largest(*[np.zeros((2, 2))] * 2) is None


@needs_torch
def test_fixed_statistics_are_buffers_again(tmp_path: Path) -> None:
    arrays = {"mul_4": draw(1, 4, 1, 1), "sub_2": draw(1, 4, 1, 1)}
    nodes = [
        helper.make_node("Mul", ["x", "mul_4"], ["z"], "node_mul"),
        helper.make_node("Add", ["z", "sub_2"], ["y"], "node_add"),
    ]
    for node in nodes:
        describe(node, ["n"], ["my.FrozenBatchNorm2d"], "mul.Tensor](args = (%x, %mul_4)")
    names = [f"n.{name}" for name in ("weight", "bias", "running_mean", "running_var")]
    source = compare(sign(make_model(nodes, arrays), buffers=tuple(names)), tmp_path)
    assert "F.batch_norm(" in source and keys_of(tmp_path) == {*names}


def test_arrays_that_were_computed_are_no_keys(tmp_path: Path) -> None:
    arrays = {"div_1": draw(5, 4), "alpha": np.array(0.5, np.float32)}
    nodes = [
        helper.make_node("Gemm", ["x", "div_1"], ["z"], "node_linear", transB=1),
        helper.make_node("Mul", ["z", "alpha"], ["y"], "node_mul"),
    ]
    describe(nodes[0], [], [], "linear.default](args = (%x, %div_1)")
    describe(nodes[1], [], [], "mul.Tensor](args = (%linear, %p_alpha)")
    compare(sign(make_model(nodes, arrays, (2, 4)), "alpha", "codes"), tmp_path, draw(2, 4))
    keys = keys_of(tmp_path)  # of one number too; constants are no part of the state_dict
    assert "alpha" in keys and not any(key.endswith(".weight") for key in keys)


def test_a_bias_of_another_module_is_added_apart(tmp_path: Path) -> None:
    arrays = {"head.weight": draw(5, 4), "last": draw(5)}
    nodes = [helper.make_node("Gemm", ["x", "head.weight", "last"], ["y"], "n", transB=1)]
    describe(nodes[0], ["head"], [LINEAR], "linear.default](args = (%x, %p_head_weight)")
    model = sign(make_model(nodes, arrays, (2, 4)), "head.weight", buffers=("last",))
    source = compare(model, tmp_path, draw(2, 4))
    assert keys_of(tmp_path) == {"head.weight", "last"} and "bias=False" in source


def test_arrays_that_nothing_reads_are_where_the_source_has_them(tmp_path: Path) -> None:
    arrays = {"a.0.weight": draw(4, 4), "a.1.weight": draw(4, 4), "count": np.array(3)}
    nodes = [helper.make_node("Gemm", ["x", "a.0.weight"], ["y"], "node_linear", transB=1)]
    describe(nodes[0], ["a.0"], [LINEAR], "linear.default](args = (%x, %p_a_0_weight)")
    model = sign(make_model(nodes, arrays, (2, 4)), "a.0.weight", "a.1.weight", buffers=("count",))
    compare(model, tmp_path, draw(2, 4))
    assert keys_of(tmp_path) == {"a.0.weight", "a.1.weight", "count"}


def remark_of(model: onnx.ModelProto, folder: Path) -> str:
    """What the header of the written source says beside its name; the report has it too."""
    report = serde.convert(model, folder / "n.py", to_format="torch")
    header = ast.get_docstring(ast.parse((folder / "n.py").read_text())) or ""
    remark = " ".join(header.split("\n\n")[1:]).replace("\n", " ")
    assert all(note in report.notes for note in [remark] if remark), report.notes
    return remark


@pytest.mark.parametrize(("names", "calls"), [
    ({"sqrt": draw(4), "n.a": draw(4)}, "sqrt"),  # computed of what is read too, or of anything
    ({"sub": np.array(0.3, np.float32), "n.a": draw(4)}, "sub"),
    ({"n.b": draw(4), "n.a": draw(4)}, ""),
    ({"arange": np.arange(4, dtype=np.float32), "n.a": draw(4)}, ""),
    ({"masked_fill": np.array([0, -np.inf, 0, 0], np.float32), "n.a": draw(4)}, ""),
])  # fmt: skip
def test_what_a_checkpoint_does_not_change_is_named(names: dict, calls: str, tmp_path: Path):
    operators = dict.fromkeys(names, "Mul")
    model = make_line("y = x * root * s.a", operators, names, "n.a", "n.b")
    model.producer_name = "pytorch"
    remark = remark_of(model, tmp_path)
    assert remark.endswith(f"Calls: {calls}.") if calls else not remark


def test_the_order_of_rows_is_told_to_be_assumed(tmp_path: Path) -> None:
    nodes = [helper.make_node("Add", ["x", "embedding"], ["y"], "node_add")]
    describe(nodes[0], ["emb"], ["my.Embeddings"], "add.Tensor](args = (%x, %embedding)")
    model = sign(make_model(nodes, {"embedding": draw(3, 4)}, (2, 3, 4)), "emb.positions.weight")
    assert "taken to be looked up in their order" in remark_of(model, tmp_path)


@pytest.mark.parametrize(
    "call",
    [
        "sub.Tensor](args = (%x, %p_n_a), kwargs = {alpha: 3})",  # which subtracts three times a
        "scaled_dot_product_attention.default](args = (%x, %p_n_a, %x), kwargs = {})",
        "index.Tensor](args = (%p_n_a, [None, %i]), kwargs = {})",
    ],
)
def test_calls_that_compute_with_an_array_first_do_not_tell_it(call: str, tmp_path: Path) -> None:
    nodes = [helper.make_node("Sub", ["x", "val_2"], ["y"], "node_sub")]
    describe(nodes[0], ["n"], ["my.N"], call)
    nodes[0].metadata_props[-1].value = f"call_function[target=torch.ops.aten.{call}"
    compare(sign(make_model(nodes, {"val_2": draw(4)}, (2, 4)), "n.a"), tmp_path, draw(2, 4))
    assert "n.a" not in keys_of(tmp_path)


@pytest.mark.parametrize(("weight", "has_key"), [("div", False), ("p_n_weight", True)])
def test_a_weight_that_the_call_reads_of_another_is_none(weight, has_key, tmp_path: Path) -> None:
    """As one that is standardized: the module has its bias, and another weight of that name."""
    name = "val_1" if has_key else "div"
    arrays = {name: draw(4, 3), "n.bias": draw(3)}
    nodes = [
        helper.make_node("MatMul", ["x", name], ["z"], "node_linear"),
        helper.make_node("Add", ["z", "n.bias"], ["y"], "node_linear_1"),
    ]
    call = f"call_function[target=torch.ops.aten.linear.default](args = (%x, %{weight}, %p_n_bias))"
    for node in nodes:
        describe(node, ["n"], ["my.StandardizedLinear"], call)
    model = sign(make_model(nodes, arrays, (2, 4)), "n.weight", "n.bias")
    compare(model, tmp_path, draw(2, 4))
    assert ("n.weight" in keys_of(tmp_path)) == has_key


def test_a_norm_of_a_computed_weight_has_no_keys_of_the_module(tmp_path: Path) -> None:
    arrays = {"add": draw(4), "n.bias": draw(4)}
    nodes = [helper.make_node("LayerNormalization", ["x", "add", "n.bias"], ["y"], "node_ln")]
    describe(
        nodes[0], ["n"], ["my.N"], "layer_norm.default](args = (%x, [4], %add, %p_n_bias, 1e-05)"
    )
    model = make_model(nodes, arrays, (2, 4))
    compare(sign(model, "n.weight", "n.bias"), tmp_path, draw(2, 4))
    assert keys_of(tmp_path) & {"n.weight", "n.bias"} == {"n.bias"}


@pytest.mark.parametrize(("line", "has_key"), [
    ("y = x * o.a.view(1, -1)", False),  # which may be anything that was computed before
    ("y = x * self.a.view(2, 2).t().reshape(1, -1)", False),
    ("y = x * self.a[self.order].view(1, -1)", False),
    ("y = x * torch.exp(self.a).view(1, -1)", True),
    ("y = x * o.a.view(1, -1) + o.b", True),  # the other one is read as it is: o is the module
])  # fmt: skip
def test_arrays_are_those_of_the_module_in_chains_that_are_known(
    line: str, has_key: bool, tmp_path: Path
) -> None:
    operators, arrays = {"view": "Mul"}, {"view": np.abs(draw(1, 4)) + 1}
    if "o.b" in line:
        operators, arrays = {**operators, "n.b": "Add"}, {**arrays, "n.b": draw(4)}
    model = make_line(line, operators, arrays, "n.a", "n.b")
    if "o.b" in line:
        text = next(p for p in model.graph.node[1].metadata_props if p.key.endswith("fx_node"))
        text.value = text.value.replace("%n.b", "%p_n_b")
    compare(model, tmp_path, draw(2, 4))
    assert ("n.a" in keys_of(tmp_path)) == has_key


@pytest.mark.parametrize(
    "steps", [("Transpose",), ("Transpose", "Exp"), ("Transpose", "Transpose")]
)
def test_a_square_is_stored_as_the_source_has_it(steps: tuple[str, ...], tmp_path: Path) -> None:
    """Its shape does not tell whether it is turned: other weights would compute something else."""
    square, x, nodes = draw(4, 4), "n.w", []
    for at, op in enumerate(steps):
        options = {"perm": [1, 0]} if op == "Transpose" else {}
        nodes.append(helper.make_node(op, [x], [x := f"s{at}"], f"node_{at}", **options))
    nodes.append(helper.make_node("MatMul", ["x", x], ["y"], "node_linear"))
    for node in nodes:
        describe(node, ["n"], ["my.N"], "linear.default](args = (%x, %t)")
    compare(sign(make_model(nodes, {"n.w": square}, (2, 4)), "n.w"), tmp_path, draw(2, 4))
    assert keys_of(tmp_path) == {"n.w"}
    assert (tmp_path / "n.safetensors").read_bytes().endswith(square.tobytes())


def test_names_that_begin_with_an_underscore_are_keys(tmp_path: Path) -> None:
    arrays = {"_blocks.0._fc.weight": draw(4, 4)}
    nodes = [helper.make_node("Gemm", ["x", *arrays], ["y"], "node_linear", transB=1)]
    scopes = ["_blocks.0", "_blocks.0._fc"]
    call = "linear.default](args = (%x, %p__blocks_0__fc_weight)"
    describe(nodes[0], scopes, ["my.Block", LINEAR], call)
    compare(sign(make_model(nodes, arrays, (2, 4)), *arrays), tmp_path, draw(2, 4))
    assert keys_of(tmp_path) == {*arrays}
