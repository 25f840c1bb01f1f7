"""Small files that claim large counts end soon, within little memory, as a refusal or right.

Each is made here: a count of elements, results, turns or members that its few bytes stand for.
"""

from __future__ import annotations

import gzip
import io
import json
import os
import struct
import tarfile
import zipfile

import numpy as np
import onnx
import onnxruntime
import pytest
from onnx import helper, numpy_helper

import serde
from serde.errors import MalformedFile, SerdeError
from serde.io.archive import TarArchive
from serde.ir import arrays
from serde.ir.budget import BYTES, Budget, Limit, active_budget, within_budget
from testing.cpu_limit import limit_cpu
from testing.fuzz import attempts
from testing.onnx_live import model_of

SECONDS = 5  # of processor time
RELAY = '#[version = "0.0.5"]\n'
TARGETS = ("t.onnx", "t.relay", "t-symbol.json")


def onnx_loop(path):
    """A loop of 10^9 turns."""
    body = model_of("b (int64 i, bool c, float[4] s) => (bool c2, float[4] s2) "
                    "{ c2 = Identity(c) s2 = Relu(s) }", 17, 8).graph  # fmt: skip
    model = model_of("g (float[4] x) => (float[4] y) { y = Identity(x) }", 17, 8)
    model.graph.node[0].CopyFrom(helper.make_node("Loop", ["n", "", "x"], ["y"], body=body))
    model.graph.initializer.append(numpy_helper.from_array(np.array(10**9), "n"))
    return save(model, path / "m.onnx")


def onnx_pad(path):
    """Pads that wrap 10^9 elements around."""
    model = model_of(
        'g (float[4] x) => (float[n] y) { p = Constant<value = int64[2] {0, 1200000000}>() '
        'y = Pad<mode = "wrap">(x, p) }', 19, 9)  # fmt: skip
    return save(model, path / "m.onnx")


def sparse(size, name="s"):
    values, places = np.ones(1, np.float32), np.zeros(1, np.int64)
    return onnx.SparseTensorProto(
        values=numpy_helper.from_array(values, name),
        indices=numpy_helper.from_array(places, f"{name}i"),
        dims=[size],
    )


def onnx_sparse(path, count=40, size=1 << 24):
    """Sparse weights of one element that are spread out over many."""
    model = model_of("g (float[1] x) => (float[n] y) { y = Identity(x) }", 17, 8)
    names = [f"s{i}" for i in range(count)]
    model.graph.node[0].CopyFrom(helper.make_node("Concat", ["x", *names], ["y"], axis=0))
    model.graph.sparse_initializer.extend(sparse(size, n) for n in names)
    return save(model, path / "m.onnx")


def onnx_filling(path):
    """A ConstantOfShape that fills with 10^7 elements instead of one."""
    model = model_of("g (int64[1] n) => (float[m] y) { y = ConstantOfShape(n) }", 17, 8)
    held = model.graph.node[0].attribute.add(name="value", type=onnx.AttributeProto.SPARSE_TENSOR)
    held.sparse_tensor.CopyFrom(sparse(1 << 24))
    return save(model, path / "m.onnx")


def save(model, path):
    path.write_bytes(model.SerializeToString())
    return path, {}


def relay(text):
    def make(path):
        (path / "m.relay").write_text(RELAY + text)
        return path / "m.relay", {}

    return make


def symbol(path, op, attrs, inputs):
    nodes = [{"op": "null", "name": n, "inputs": []} for n in inputs]
    nodes.append({"op": op, "name": "n", "attrs": attrs,
                  "inputs": [[i, 0, 0] for i in range(len(inputs))]})  # fmt: skip
    places = [*range(len(inputs))]
    (path / "m-symbol.json").write_text(
        json.dumps({"nodes": nodes, "arg_nodes": places, "heads": [[len(inputs), 0, 0]]})
    )
    return path / "m-symbol.json"


def mxnet_proposal(path):
    """An anchor for each of 3,000 scales and 3,000 ratios."""
    many = "(" + ",".join(["1"] * 3000) + ")"
    source = symbol(path, "_contrib_Proposal", {"scales": many, "ratios": many}, "abc")
    return source, {"inputs": {"a": (1, 1026, 8, 8), "b": (1, 2052, 8, 8), "c": (1, 3)}}


def dense_layer(path):
    attrs = {"num_hidden": "32768", "no_bias": "True"}
    return symbol(path, "FullyConnected", attrs, ["data", "w"]), {}


def mxnet_rows(path):
    """A row_sparse weight of one row, of 4 GiB spread out."""
    row = struct.pack("<QQQ", 0x112, 0, 1) + struct.pack("<Ii", 0xF993FAC9, 1)
    row += struct.pack("<iqq", 2, 0, 32768) + struct.pack("<iqq", 2, 32768, 32768)
    row += struct.pack("<iiiiiq", 1, 0, 0, 6, 1, 0)
    row += struct.pack("<QQ", 1, 1) + b"w"
    (path / "m-0000.params").write_bytes(row)
    return dense_layer(path)


def mxnet_zeros(path):
    """A deflated weight of zeros, a thousand times as large."""
    head = io.BytesIO()
    np.lib.format.write_array_header_1_0(
        head, {"descr": "<f4", "fortran_order": False, "shape": (1 << 27,)}
    )
    with (
        zipfile.ZipFile(path / "m-0000.params", "w", zipfile.ZIP_DEFLATED) as out,
        out.open("w.npy", "w", force_zip64=True) as member,
    ):
        member.write(head.getvalue())
        for _ in range(1 << 9):
            member.write(bytes(1 << 20))
    return dense_layer(path)


def mxnet_archive(path):
    """A packed archive of zeros, a thousand times as large."""
    with gzip.open(path / "m.tar.gz", "wb", 9) as out:
        info = tarfile.TarInfo("m-0000.params")
        info.size = 1 << 29
        out.write(info.tobuf())
        for _ in range(1 << 9):
            out.write(bytes(1 << 20))
    return path / "m.tar.gz", {}


TENSOR = "Tensor[(1,4,8,8), float32]"
MAKERS = {
    "a loop": onnx_loop,
    "pads": onnx_pad,
    "sparse weights": onnx_sparse,
    "a filling": onnx_filling,
    "adaptive pooling": relay(
        f"def @main(%x: {TENSOR}) {{ nn.adaptive_avg_pool2d(%x, output_size=[1000000000,1]) }}"
    ),
    "a resize": relay(
        f"def @main(%x: {TENSOR}) {{ image.resize2d(%x, size=[1000000000,1], roi=[0f,0f,0f,0f]) }}"
    ),
    "an arange": relay("def @main() { arange(0f, 10000000000f, 1f, dtype=\"float32\") }"),
    "a full": relay("def @main() { zeros(shape=[100000,100000], dtype=\"float32\") }"),
    "anchors": mxnet_proposal,
    "sparse rows": mxnet_rows,
    "deflated zeros": mxnet_zeros,
    "packed zeros": mxnet_archive,
    "an eye": lambda path: (symbol(path, "_npi_eye", {"N": "1000000"}, ["x"]), {}),
    "indices": lambda path: (symbol(path, "_npi_indices", {"dimensions": "(99999,9999)"}, []), {}),
    "new axes": relay(f"def @main(%x: {TENSOR}) {{ expand_dims(%x, axis=0, num_newaxis=1000000000) }}"),
    "dynamic new axes": relay(
        f"def @main(%x: {TENSOR}, %a: int64) {{ dyn.expand_dims(%x, %a, num_newaxis=1000000000) }}"
    ),
    "parts": lambda path: (
        symbol(path, "_split_v2", {"indices": "()", "sections": "1000000000", "axis": "1"}, ["x"]),
        {"inputs": {"x": (2, 3)}},
    ),
    "repeats": lambda path: (
        symbol(path, "_npi_repeats", {"repeats": "(1000000000, 1000000000)", "axis": "0"}, ["x"]),
        {"inputs": {"x": (2, 3)}},
    ),
    "a linspace": lambda path: (
        symbol(path, "_linspace", {"start": "0", "stop": "1", "num": "9999999999"}, []), {}
    ),
}  # fmt: skip


@pytest.mark.parametrize("target", TARGETS)
@pytest.mark.parametrize("make", MAKERS.values(), ids=MAKERS)
def test_counts_cost_little(make, target, tmp_path):
    source, options = make(tmp_path)
    before = {p.name for p in tmp_path.iterdir()}
    with limit_cpu(SECONDS), attempts.limited_memory(1 << 30):
        try:
            serde.convert(source, tmp_path / target, **options)
        except SerdeError as error:
            assert attempts.smell(error) is None and "memory" not in str(error), error
            assert {p.name for p in tmp_path.iterdir()} == before
    assert sum(p.stat().st_size for p in tmp_path.glob("t*")) < 1 << 20


def test_what_is_much_for_its_file_is_allowed_on_request(tmp_path):
    source, _ = onnx_sparse(tmp_path, 5)
    with pytest.raises(MalformedFile, match="sparse tensor 's4' .* max_growth= allows more"):
        serde.load(source)
    assert len(list(serde.load(source, max_growth=320).constants())) == 5


def test_one_budget_is_shared_by_all_that_a_conversion_makes():
    with within_budget() as budget:
        arrays.arange(BYTES.least // 16)
        with within_budget() as inner:
            assert inner is budget is active_budget()
            arrays.zeros(BYTES.least // 16)
        with pytest.raises(SerdeError, match="a constant of 2000 elements would take"):
            arrays.ones(2000)
    assert arrays.ones(2000).size == 2000  # there is none around it any more


def test_a_file_is_counted_once():
    budget = Budget()
    for _ in range(3):
        budget.add_file((1, 2), 1000)
    assert budget.most_bytes == BYTES.least + 1000 * BYTES.growth


def test_values_do_not_grow_at_every_step():
    budget = Budget()
    first = budget.limit_values(1000)
    assert first == Limit(50_000, 64).of(1000) and budget.limit_values(first) == first + 50_000
    budget.add_bytes(3 << 20)
    assert budget.limit_values(first) == first + 50_000 + 3 * 1024
    budget.allow_mebibytes(100)
    assert budget.limit_values(first) == first + 50_000 + 100 * 1024


def test_packed_archives_are_charged_each_time_they_are_inflated(tmp_path):
    path = tmp_path / "m.tar.gz"
    with tarfile.open(path, "w:gz") as out:
        for name in ("a", "b"):
            info = tarfile.TarInfo(name)
            info.size = 1 << 20
            out.addfile(info, io.BytesIO(bytes(1 << 20)))
    with within_budget() as budget, TarArchive(path) as archive:
        listed = budget.bytes
        assert 1 << 20 < listed < 3 << 20
        for number in range(1, 4):
            archive.read("a", 1 << 20)
            assert budget.bytes < listed + number * (3 << 20)
        assert budget.bytes > listed + (3 << 20)


def small_model(folder, nodes, shape, **constants):
    """A model of an input ``x`` and an output ``y``."""
    graph = helper.make_graph(
        nodes, "g", [helper.make_tensor_value_info("x", 1, shape)],
        [helper.make_tensor_value_info("y", 1, None)],
        [numpy_helper.from_array(np.asarray(a), n) for n, a in constants.items()],
    )  # fmt: skip
    opsets = [helper.make_opsetid("", 13)]
    return save(helper.make_model(graph, opset_imports=opsets, ir_version=8), folder / "m.onnx")[0]


def make_einsum(count):
    equation = ",".join(["ij"] * count) + "->ij"
    return [helper.make_node("Einsum", ["x"] * count, ["y"], equation=equation)]


SLOW = {
    "a window": ([helper.make_node("LRN", ["x"], ["y"], size=10**6)], (1, 8, 4, 4)),
    "a window of unknown channels": (
        [helper.make_node("LRN", ["x"], ["y"], size=10**6)], (1, "C", 4, 4),
    ),
    "a window over many channels": (
        [helper.make_node("LRN", ["x"], ["y"], size=10**6)], (1, 10**6, 4, 4),
    ),
    "operands of an Einsum": (make_einsum(5000), ("N", 2)),
    "letters of an Einsum": (
        [helper.make_node("Einsum", ["x"], ["y"], equation="i" * 30_000 + "->i")], (2, 2),
    ),
    "parts": (
        [helper.make_node("Split", ["x"], ["y", *(f"o{n}" for n in range(100_000))])], (100_001,),
    ),
    "operands": ([helper.make_node("Concat", ["x"] * 100_000, ["y"], axis=0)], (2,)),
}  # fmt: skip


def regions(**attrs):
    return helper.make_node("RoiAlign", ["x", "r", "b"], ["y"], output_height=10**6, **attrs)


REGIONS = {"r": np.ones((2, 4), "f"), "b": np.zeros(2, np.int64)}
MANY_PADS = [
    helper.make_node("Pad", [f"x{n}" if n else "x", "p"], [f"x{n + 1}" if n < 499 else "y"])
    for n in range(500)
]
LARGE = {  # as few bytes claim large results, of operators that a target has in other forms
    "places of a Resize": ([helper.make_node("Resize", ["x", "", "s"], ["y"], mode="cubic")],
                           (1, 1, 4, 4), {"s": np.float32([1, 1, 1e5, 1e5])}),
    "cells of a region": ([regions(output_width=10**6, sampling_ratio=2)], (1, 2, 4, 4), REGIONS),
    "samples of a region": ([regions()], (1, 2, 4, 4), REGIONS),
    "counts of a pool": ([helper.make_node("AveragePool", ["x"], ["y"], kernel_shape=[2, 2],
                                           auto_pad="SAME_UPPER")], (1, 1, 10**9, 32), {}),
    "paddings": (MANY_PADS, (2, 3), {"p": np.int64([0, 1, 0, 0])}),
}  # fmt: skip


@pytest.mark.parametrize(
    "to",
    [
        ("relay", None),
        ("mxnet", None),
        ("onnx", 8),
        ("onnx", 10),
        ("torch", None),
        ("mnn", None),
        ("ncnn", None),
    ],
)
@pytest.mark.parametrize("what", LARGE)
def test_other_forms_of_a_node_take_little(tmp_path, what, to):
    nodes, shape, constants = LARGE[what]
    source = small_model(tmp_path, nodes, shape, **constants)
    options = {"to": to[0]} | ({"opset": to[1]} if to[1] else {})
    serde.check(source, **options)  # imports
    with limit_cpu(1.5), attempts.limited_memory(512 << 20):
        serde.check(source, **options)


@pytest.mark.parametrize("to", ["onnx", "mxnet", "relay", "mnn"])
@pytest.mark.parametrize("what", SLOW)
def test_the_time_of_a_node_is_in_proportion_to_its_file(tmp_path, what, to):
    source = small_model(tmp_path, *SLOW[what])
    serde.check(source, to=to)  # imports
    with limit_cpu(1 + os.path.getsize(source) / 1e5):
        serde.check(source, to=to)


@pytest.mark.parametrize("size", [2, 6, 14, 16, 40, 10**6])
@pytest.mark.parametrize("channels", [1, 3, 8])
def test_even_windows_beyond_the_channels_are_right(tmp_path, size, channels):
    node = helper.make_node("LRN", ["x"], ["y"], size=size, alpha=0.1, beta=0.6, bias=1.5)
    source = small_model(tmp_path, [node], (2, channels, 3, 2))
    serde.convert(source, tmp_path / "t.relay")
    graph = serde.load(tmp_path / "t.relay")
    serde.save(graph, tmp_path / "back.onnx")
    x = np.random.default_rng(size).normal(size=(2, channels, 3, 2)).astype(np.float32)
    ends = [
        (max(0, c - (size - 1) // 2), min(channels, c + size // 2 + 1)) for c in range(channels)
    ]
    sums = np.stack([(x[:, a:b].astype(np.float64) ** 2).sum(1) for a, b in ends], 1)
    (y,) = onnxruntime.InferenceSession(tmp_path / "back.onnx").run(None, {"x": x})
    assert np.allclose(y, x / (1.5 + 0.1 / size * sums) ** 0.6, rtol=1e-5, atol=1e-6)


def test_constants_that_need_not_be_made_stay_in_proportion(tmp_path):
    nodes = [helper.make_node("OneHot", ["i", "d", "v"], [f"o{n}"]) for n in range(200)]
    nodes += [helper.make_node("Max", ["x", *(f"o{n}" for n in range(200))], ["y"])]
    source = small_model(tmp_path, nodes, (1,), i=np.arange(100), d=np.int64(5000),
                         v=np.array([0, 1], np.float32))  # fmt: skip
    graph = serde.load(source)
    assert sum(v.tensor.nbytes for v in graph.constants()) <= BYTES.of(os.path.getsize(source))
