"""Files that are damaged or lie, and what a graph has of a file beside its operators."""

from __future__ import annotations

from pathlib import Path
from random import Random

import numpy as np
import pytest

import serde
from serde.errors import MalformedFile, SerdeError, UsageError
from serde.formats.tflite.decode import decode
from serde.ir.graph import Tensor
from testing.pt2.run import run_onnx
from testing.tflite.cases import c, case, f, q, r, s, w
from testing.tflite.models import Operand, build, write

DIGITS = Path(__file__).resolve().parents[2] / "examples" / "digits"

LAYER = case("FULLY_CONNECTED", f(2, 6), w(3, 6), w(3))


def model_of(case, change=lambda model: None):
    model = build(case)
    change(model)
    return model


def graph_of(model):
    return model["subgraphs"][0]


def edit_tensor(at, **fields):
    """A change of one tensor."""
    return lambda model: graph_of(model)["tensors"][at].update(fields)


def edit_operator(**fields):
    """A change of the operator."""
    return lambda model: graph_of(model)["operators"][0].update(fields)


def compute_twice(model):
    graph_of(model)["operators"] *= 2


def compute_late(model):
    """The second operator makes what the first one reads."""
    graph = graph_of(model)
    graph["tensors"].append({"name": "late"})
    first, *_ = graph["operators"]
    graph["operators"] = [{**first, "inputs": [4, 1, 2]}, {**first, "outputs": [4]}]


BROKEN = {
    "version": (lambda m: m.update(version=4), "schema version 4"),
    "no subgraph": (lambda m: m.update(subgraphs=[]), "names subgraph 0 of 0"),
    "no outputs": (lambda m: graph_of(m).update(outputs=[]), "has no outputs"),
    "no such buffer": (edit_tensor(1, buffer=9), "names buffer 9 of 3"),
    "no such tensor": (edit_operator(inputs=[0, 1, 77]), "names tensor 77 of 4"),
    "no such operator": (edit_operator(opcode_index=5), "names operator code 5"),
    "negative tensor": (edit_operator(outputs=[-2]), "names tensor -2"),
    "negative size": (edit_tensor(1, shape=(3, -6)), "claims the sizes"),
    "a huge size": (edit_tensor(1, shape=(1 << 30, 1 << 30, 1 << 30)), "claims the sizes"),
    "another size": (edit_tensor(1, shape=(3, 5)), "takes 60 bytes, and 72 are there"),
    "behind the end": (lambda m: m["buffers"].__setitem__(1, {"offset": 8, "size": 1 << 40}),
                       "where the file has ended"),
    "computed twice": (compute_twice, "sort the operators"),
    "unsorted": (compute_late, "sort the operators"),
    "an input twice": (lambda m: graph_of(m).update(inputs=[0, 0]), "listed twice"),
    "scales": (edit_tensor(1, quantization={"scale": [1.0] * 5}), "5 scales"),
    "zero points": (
        edit_tensor(1, quantization={"scale": [1.0] * 3, "zero_point": [1, 2]}), "2 zero points",
    ),
    "a signature that does not fit": (edit_tensor(0, shape_signature=(-1,)), "does not fit"),
    "sparse without levels": (edit_tensor(1, sparsity={}), "axes are not those of its levels"),
    "another file": (edit_tensor(1, external_buffer=1), "another file"),
    "in blocks": (
        edit_tensor(1, quantization={
            "details": ("BlockwiseQuantization", {"block_size": 2}), "details_type": 2,
        }), "scales of blocks",
    ),
    "in blocks of another kind": (
        edit_tensor(1, quantization={"details": ("MultiAxisQuantization", {}), "details_type": 3}),
        "quantized in blocks of a kind",
    ),
    "strings": (edit_tensor(1, type=5), "strings"),
}  # fmt: skip


@pytest.mark.parametrize("name", BROKEN)
def test_a_file_that_lies_is_one_clear_error(name, tmp_path: Path) -> None:
    change, reason = BROKEN[name]
    (tmp_path / "m.tflite").write_bytes(write(model_of(LAYER, change)))
    with pytest.raises(MalformedFile, match=reason):
        decode(tmp_path / "m.tflite")


def test_an_operator_that_is_not_known_is_refused(tmp_path: Path) -> None:
    model = model_of(LAYER)
    model["operator_codes"] = [{"deprecated_builtin_code": 127, "builtin_code": 999}]
    (tmp_path / "m.tflite").write_bytes(write(model))
    with pytest.raises(SerdeError, match="operator 999"):
        serde.load(tmp_path / "m.tflite")


def test_subgraphs_that_run_themselves_are_refused(tmp_path: Path) -> None:
    model = build(case("WHILE", f(3), cond_subgraph_index=1, body_subgraph_index=1))
    model["subgraphs"].append(model["subgraphs"][0])
    (tmp_path / "m.tflite").write_bytes(write(model))
    with pytest.raises(MalformedFile, match="runs itself"):
        decode(tmp_path / "m.tflite")


def test_damaged_files_end_in_errors_of_ours(tmp_path: Path) -> None:
    data, drawn = write(build(LAYER)), Random(2)
    refused = 0
    for _ in range(400):
        damaged = bytearray(data)
        for _ in range(drawn.randrange(1, 4)):
            damaged[drawn.randrange(8, len(data))] = drawn.choice((0, 1, 4, 127, 255))
        (tmp_path / "m.tflite").write_bytes(damaged)
        try:
            serde.load(tmp_path / "m.tflite")
        except SerdeError:
            refused += 1
    assert refused > 100


def test_weights_stay_in_the_file(tmp_path: Path) -> None:
    (tmp_path / "m.tflite").write_bytes(write(build(LAYER)))
    graph = decode(tmp_path / "m.tflite")
    weight = graph.nodes[0].inputs[1]
    assert weight.tensor.where.path == str(tmp_path / "m.tflite")
    np.testing.assert_array_equal(weight.array(), LAYER.operands[1].array)


def test_open_sizes_have_names(tmp_path: Path) -> None:
    batch = Operand(np.ones((1, 4), np.float32), signature=(-1, 4))
    (tmp_path / "m.tflite").write_bytes(write(build(case("TANH", batch))))
    assert decode(tmp_path / "m.tflite").inputs[0].shape == ("N", 4)
    both = Operand(np.ones((1, 4), np.float32), signature=(-1, -1))
    (tmp_path / "m.tflite").write_bytes(write(build(case("ADD", batch, both))))
    graph = serde.load(tmp_path / "m.tflite")
    assert [v.shape for v in graph.inputs] == [("x0_0", 4), ("x1_0", "x1_1")]


def name_ends(model):
    model["signature_defs"] = [
        {"signature_key": key, "inputs": [{"name": "rows", "tensor_index": 0}],
         "outputs": [{"name": "scores", "tensor_index": 3}], "subgraph_index": at}
        for key, at in (("other", 1), ("serving_default", 0))
    ]  # fmt: skip


def test_ends_are_named_as_the_signature_does(tmp_path: Path) -> None:
    (tmp_path / "m.tflite").write_bytes(write(model_of(LAYER, name_ends)))
    graph = serde.load(tmp_path / "m.tflite")
    assert [v.name for v in (*graph.inputs, *graph.outputs)] == ["rows", "scores"]
    with pytest.raises(UsageError, match="it has other, serving_default"):
        serde.load(tmp_path / "m.tflite", signature="third")
    with pytest.raises(MalformedFile, match="names subgraph 1 of 1"):
        serde.load(tmp_path / "m.tflite", signature="other")


def test_what_an_operator_keeps_is_an_input_and_an_output(tmp_path: Path) -> None:
    layer = case("RNN", f(2, 3), w(4, 3), w(4, 4), w(4), s(2, 4), fused_activation_function=4)
    (tmp_path / "m.tflite").write_bytes(write(build(layer)))
    graph = serde.load(tmp_path / "m.tflite")
    assert [v.name for v in graph.inputs] == ["x0", "x4"]
    assert [v.name for v in graph.outputs] == ["y0", "x4_next"]
    assert any("feed 0 at first" in note for note in graph.notes)


def test_quantizations_are_kept_by_name(tmp_path: Path) -> None:
    layer = case("TANH", q(2, 3), to=r("int8", 1 / 128, 0))
    (tmp_path / "m.tflite").write_bytes(write(build(layer)))
    found = decode(tmp_path / "m.tflite").source_info.quantizations
    assert {n: (float(f.scale[0]), int(f.zero[0])) for n, f in found.items()} == {
        "x0": (np.float32(0.05), 3), "y0": (1 / 128, 0),
    }  # fmt: skip


def test_layers_that_operators_came_from_are_kept_in_the_file(tmp_path: Path) -> None:
    serde.convert(DIGITS, tmp_path / "m.tflite", inputs={"data": (1, 1, 8, 8)})
    nodes = decode(tmp_path / "m.tflite").nodes
    sources = {n.outputs[0].name: [layer.name for layer in n.sources] for n in nodes}
    assert sources["relu2/Relu"] == ["conv2", "bn2", "relu2"]
    assert sources["softmax_output"] == ["softmax"]


@pytest.mark.parametrize("text", [b"", b"\xff\tx", b"a b\ty0", b"mxnet Tanh\n\t\n", b"\t\t\n" * 9])
def test_other_sources_than_a_line_for_each_layer_are_left_out(text: bytes, tmp_path: Path) -> None:
    model = build(case("TANH", f(3)))
    model["metadata"] = [{"name": "serde.source", "buffer": len(model["buffers"])}]
    model["buffers"].append({"data": Tensor.of(np.frombuffer(text, np.uint8))})
    (tmp_path / "m.tflite").write_bytes(write(model))
    (node,) = decode(tmp_path / "m.tflite").nodes
    assert [layer.op for layer in node.sources] == ["TANH"]


@pytest.mark.parametrize("keep_num_dims", [False, True])
def test_weights_in_blocks_have_a_scale_for_each(keep_num_dims, tmp_path: Path) -> None:
    x, weights = f(2, 2, 6), q(3, 6, scale=1.0, zero=0, constant=True)
    model = build(case("FULLY_CONNECTED", x, weights, w(3), keep_num_dims=keep_num_dims))
    scales = np.random.default_rng(3).uniform(0.1, 1, (3, 2)).astype(np.float32)
    graph = graph_of(model)
    graph["tensors"].append({"name": "scales", "shape": (3, 2), "buffer": len(model["buffers"])})
    model["buffers"].append({"data": Tensor.of(scales)})
    details = "BlockwiseQuantization", {"scales": len(graph["tensors"]) - 1, "block_size": 3}
    graph["tensors"][1]["quantization"] = {"details": details, "details_type": 2}
    (tmp_path / "m.tflite").write_bytes(write(model))
    serde.save(serde.load(tmp_path / "m.tflite"), tmp_path / "m.onnx", opset=21)
    (y,) = run_onnx(tmp_path / "m.onnx", [x.array])
    bias = model["buffers"][2]["data"].load()
    real = weights.array.astype(np.float32) * np.repeat(scales, 3, axis=1)
    expected = x.array @ real.T + bias
    shape = expected.shape if keep_num_dims else (4, 3)
    np.testing.assert_allclose(y, expected.reshape(shape), rtol=1e-4, atol=1e-4)


def test_many_operators_are_read_in_linear_time(tmp_path: Path) -> None:
    model = build(case("TANH", f(3)))
    graph = graph_of(model)
    graph["tensors"] += [{"name": f"t{k}"} for k in range(20_000)]
    graph["operators"] = [{"inputs": [k], "outputs": [k + 1]} for k in range(20_000)]
    graph["outputs"] = [20_000]
    (tmp_path / "m.tflite").write_bytes(write(model))
    assert len(decode(tmp_path / "m.tflite").nodes) == 20_000


def test_an_empty_constant_needs_no_buffer(tmp_path: Path) -> None:
    (tmp_path / "m.tflite").write_bytes(write(build(case("RESHAPE", f(1), c([])))))
    graph = serde.load(tmp_path / "m.tflite")
    assert graph.outputs[0].shape == ()
    assert isinstance(decode(tmp_path / "m.tflite").nodes[0].inputs[1].tensor, Tensor)
