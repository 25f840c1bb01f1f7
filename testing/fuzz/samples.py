"""Small real models of every format, to be damaged."""

from __future__ import annotations

import gzip
import io
import json
import struct
import tarfile
from functools import cache
from pathlib import Path
from typing import Any

import numpy as np
from onnx import parser

FOLDER = Path(__file__).parent / "seeds"
PROGRAMS = Path(__file__).parents[2] / "tests/data/pt2"

ONNX = {
    "convolutions": """<ir_version: 8, opset_import: ["": 17]>
g (float[N,3,8,8] x) => (float[N,4] y)
<float[4,3,3,3] w = {WEIGHTS}, float[4] b = {0,1,2,3}, float[4] v = {1,1,1,1}> {
  c = Conv<kernel_shape=[3,3], pads=[1,1,1,1], strides=[2,2]>(x, w, b)
  n = BatchNormalization<epsilon=1e-3>(c, v, b, b, v)
  r = LeakyRelu<alpha=0.1>(n)
  p = MaxPool<kernel_shape=[2,2], strides=[2,2], ceil_mode=1>(r)
  a = GlobalAveragePool(p)
  f = Flatten(a)
  y = Softmax<axis=-1>(f)
}""".replace("WEIGHTS", ",".join(["0.5"] * 108)),
    "shapes": """<ir_version: 10, opset_import: ["": 21]>
g (float[N,S,6] x) => (float[N,2,S,3] y)
<int64[1] two = {2}, int64[1] three = {3}, int64 zero = {0}, int64 one = {1}> {
  s = Shape(x)
  n = Gather<axis=0>(s, zero)
  m = Gather<axis=0>(s, one)
  a = Constant<value_ints=[0]>()
  n1 = Unsqueeze(n, a)
  m1 = Unsqueeze(m, a)
  t = Concat<axis=0>(n1, m1, two, three)
  r = Reshape(x, t)
  u = Transpose<perm=[0,2,1,3]>(r)
  q = Split<num_outputs=1, axis=1>(u)
  e = Expand(q, one)
  y = Identity(e)
}""",
    "control": """<ir_version: 8, opset_import: ["": 16]>
g (float[3] x, bool c, int64 n) => (float[3] y, float[k,3] z) <float one = {1}> {
  h = If (c) <then_branch = t () => (float[3] u) { u = Add(x, one) },
              else_branch = e () => (float[3] v) { v = If (c) <
                then_branch = t2 () => (float[3] u2) { u2 = Neg(x) },
                else_branch = e2 () => (float[3] v2) { v2 = Abs(x) }> }>
  y, z = Loop (n, c, h) <body = b (int64 i, bool go, float[3] s) => (bool go2, float[3] s2, float[3] o)
    { go2 = Identity(go) s2 = Mul(s, one) o = Add(s, x) }>
}""",
    "functions": """<ir_version: 9, opset_import: ["": 18, "local": 1]>
g (float[N,4] x) => (float[N,4] y) { t = local.outer<alpha=0.3>(x) y = local.outer(t) }
<domain: "local", opset_import: ["": 18, "local": 1]>
outer <alpha: float = 0.1>(a) => (b) { c = local.inner<alpha: float = @alpha>(a) b = local.inner(c) }
<domain: "local", opset_import: ["": 18]>
inner <alpha: float = 0.2>(a) => (b) {
  l = LeakyRelu<alpha: float = @alpha>(a) o = Constant<value = float {1.0}>() b = Add(l, o) }
""",
    "recurrent": """<ir_version: 7, opset_import: ["": 12]>
g (float[T,1,2] x) => (float[T,1,1,3] y, float[1,1,3] h)
<float[1,12,2] w = {W}, float[1,12,3] r = {R}, float[1,24] b = {B}> {
  y, h = LSTM<hidden_size=3, direction="forward">(x, w, r, b)
}""".replace("{W}", "{" + ",".join(["0.1"] * 24) + "}")
    .replace("{R}", "{" + ",".join(["0.2"] * 36) + "}")
    .replace("{B}", "{" + ",".join(["0"] * 24) + "}"),
    "resizing": """<ir_version: 6, opset_import: ["": 11]>
g (float[1,1,4,4] x) => (float[1,1,h,w] y)
<float[0] roi = {}, float[4] s = {1,1,2,2}, int64[8] p = {0,0,1,1,0,0,1,1}> {
  q = Pad<mode="reflect">(x, p)
  y = Resize<mode="linear", coordinate_transformation_mode="half_pixel">(q, roi, s)
}""",
    "sequences": """<ir_version: 8, opset_import: ["": 17]>
g (float[2,6] x, int64 i) => (float[2,b] y, string[2] t)
<string[2] t0 = {"a", "b"}, int64[2] parts = {2,4}> {
  s = SplitToSequence<axis=1>(x, parts)
  e = SequenceAt(s, i)
  q = SequenceInsert(s, e)
  c = ConcatFromSequence<axis=1>(q)
  o = Optional(c)
  y = OptionalGetElement(o)
  t = Identity(t0)
}""",
    "attention": """<ir_version: 11, opset_import: ["": 23]>
g (float[B,4,8] x) => (float[B,4,8] y)
<float[8] w = {1,1,1,1,1,1,1,1}, float sc = {0.5}, uint8 zp = {3}> {
  n = RMSNormalization<epsilon=1e-5>(x, w)
  a = Attention<q_num_heads=2, kv_num_heads=2, is_causal=1>(n, n, n)
  e = Einsum<equation="bij,bkj->bik">(a, n)
  m = MatMul(e, a)
  g1 = Gelu<approximate="tanh">(m)
  q = QuantizeLinear(g1, sc, zp)
  d = DequantizeLinear(q, sc, zp)
  y = Add(d, x)
}""",
    "old": """<ir_version: 3, opset_import: ["": 6]>
g (float[2,3] x, float[3] v) => (float[2,3] y) <float[3] v = {1,2,3}> {
  a = Add<axis=1, broadcast=1>(x, v)
  s = Slice<starts=[0,0], ends=[2,3]>(a)
  d, m = Dropout<is_test=1, ratio=0.5>(s)
  c = Cast<to=1>(d)
  t = Tile(c, r0)
  y = Clip<min=0.0, max=6.0>(c)
}""".replace("  t = Tile(c, r0)\n", ""),
    "scatter": """<ir_version: 8, opset_import: ["": 13]>
g (float[4,4] x, int64[2,1] i, float[2,4] u) => (float[4,4] y, float[4,2] v, int64[4,2] w)
<int64[1] k = {2}, int64[1] st = {0}, int64[1] en = {9}, int64[1] ax = {1}> {
  a = ScatterND(x, i, u)
  b = CumSum<reverse=1>(a, ax0)
  v, w = TopK<axis=1>(b, k)
  y = Slice(b, st, en, ax)
}""".replace("b = CumSum<reverse=1>(a, ax0)", "b = Where(m, a, x)").replace(
        "<int64[1] k", "<bool m = {1}, int64[1] k"
    ),
}


@cache
def onnx_models() -> tuple[bytes, ...]:
    """Models with convolutions, subgraphs, functions, sequences, and operators old and new."""
    models = [parser.parse_model(text) for text in ONNX.values()]
    big = parser.parse_model(ONNX["convolutions"])
    tensor = big.graph.initializer.add(name="large", data_type=1, dims=[64, 32])
    tensor.raw_data = np.arange(2048, dtype=np.float32).tobytes()
    big.graph.node.add(op_type="ReduceSum", input=["large"], output=["sum"])
    big.graph.output.add(name="sum")
    sparse = big.graph.sparse_initializer.add(dims=[3, 4])
    sparse.values.name, sparse.values.data_type = "sparse", 1
    sparse.values.dims.append(2)
    sparse.values.float_data.extend([1.5, 2.5])
    sparse.indices.data_type = 7
    sparse.indices.dims.append(2)
    sparse.indices.int64_data.extend([3, 7])
    big.graph.node.add(op_type="Relu", input=["sparse"], output=["dense"])
    big.graph.output.add(name="dense")
    outside = parser.parse_model(ONNX["old"])
    held = outside.graph.initializer[0]
    held.Clear()
    held.name, held.data_type, held.data_location = "v", 1, held.EXTERNAL
    held.dims.append(3)
    for key, value in {"location": "model.onnx", "offset": "4", "length": "12"}.items():
        held.external_data.add(key=key, value=value)
    return tuple(m.SerializeToString() for m in (*models, big, outside))


def symbol(*nodes: Any, heads: Any = None, version: int = 10901, key: str = "attrs") -> bytes:
    """Symbol JSON; a node is a variable's name, or ``(op, name, inputs, attributes)``."""
    listed = []
    for node in nodes:
        if isinstance(node, str):
            name, _, shape = node.partition(":")
            attrs = {"__shape__": shape} if shape else {}
            listed.append({"op": "null", "name": name, key: attrs, "inputs": []})
        else:
            op, name, inputs, attrs, *bodies = node
            links = [i if isinstance(i, list) else [i, 0, 0] for i in inputs]
            listed.append({"op": op, "name": name, key: attrs, "inputs": links})
            if bodies:
                listed[-1]["subgraphs"] = bodies
    graph = {"nodes": listed, "arg_nodes": [], "heads": heads or [[len(listed) - 1, 0, 0]]}
    if version:
        graph["attrs"] = {"mxnet_version": ["int", version]}
    return json.dumps(graph).encode()


def mxnet_symbol() -> bytes:
    """The symbol that damaged parameters go with."""
    return symbol("data:(2, 3)", "w", "b", ("FullyConnected", "fc", [0, 1, 2], {"num_hidden": "4"}))


@cache
def mxnet_symbols() -> tuple[bytes, ...]:
    """Symbols whose parameters are among ``mxnet_params``."""
    body = json.loads(symbol("x", "s", ("elemwise_add", "sum", [0, 1], {}), heads=[[2, 0], [2, 0]]))
    attrs = {"num_args": "3", "num_outputs": "2", "num_out_data": "1", "in_data_locs": "[0]",
             "in_state_locs": "[1]", "remain_locs": "[]"}  # fmt: skip
    return (
        mxnet_symbol(),
        symbol(
            "data", "cw", "b",
            ("Convolution", "c", [0, 1, 2], {"kernel": "(3, 3)", "num_filter": "4", "pad": "(1, 1)"}),
            "v", "v2", "v3", "v4",
            ("BatchNorm", "n", [3, 4, 5, 6, 7], {"eps": "1e-3", "fix_gamma": "False"}),
            ("Activation", "r", [[8, 0, 0]], {"act_type": "relu"}),
            ("Pooling", "p", [9], {"kernel": "(2, 2)", "stride": "(2, 2)", "pool_type": "avg"}),
            ("Flatten", "f", [10], {}),
            ("SoftmaxOutput", "softmax", [11], {}),
        ),
        symbol(
            "data:(4, 5, 6)",
            ("transpose", "t", [0], {"axes": "(0, 2, 1)"}),
            ("Reshape", "r", [1], {"shape": "(0, -1)"}),
            ("SliceChannel", "s", [2], {"num_outputs": "2", "axis": "1"}),
            ("Concat", "c", [[3, 0, 0], [3, 1, 0]], {"dim": "1", "num_args": "2"}),
            ("slice", "k", [4], {"begin": "(0, 1)", "end": "(None, -1)", "step": "(1, 2)"}),
            ("_mul_scalar", "m", [5], {"scalar": "0.5"}),
            ("mean", "e", [6], {"axis": "(1,)", "keepdims": "True"}),
            ("broadcast_sub", "d", [6, 7], {}),
            ("argmax", "k2", [8], {"axis": "1", "keepdims": "True"}),
            ("tile", "l", [[9, 0, 0]], {"reps": "(1, 2)"}),
            ("SwapAxis", "w", [10], {"dim1": "0", "dim2": "1"}),
        ),
        symbol(
            "data:(3, 1, 2)", "rnn",
            ("_zeros", "z", [], {"shape": "(1, 1, 3)"}),
            ("RNN", "l", [0, 1, 2, 2], {"mode": "lstm", "num_layers": "1", "state_size": "3",
                                        "state_outputs": "True"}),
            ("_arange", "a", [], {"start": "0", "stop": "3"}),
            ("one_hot", "o", [4], {"depth": "3"}),
            heads=[[3, 0, 0], [3, 1, 0], [5, 0, 0]],
        ),
        symbol("x:(5, 2)", "s:(2,)", ("_foreach", "each", [0, 1], attrs, body)),
        symbol("data:(2, 3)", "w", "b", ("FullyConnected", "fc", [[0, 0], [1, 0], [2, 0]],
               {"num_hidden": "4"}), version=0, key="param"),
    )  # fmt: skip


ARRAYS = {
    "arg:w": (4, 3), "arg:b": (4,), "arg:cw": (4, 3, 3, 3), "arg:v": (4,), "arg:v2": (4,),
    "aux:v3": (4,), "aux:v4": (4,), "arg:rnn": (84,),
}  # fmt: skip


@cache
def mxnet_params() -> bytes:
    """The arrays of ``mxnet_symbols``, as ``mx.nd.save`` writes them."""
    return params_list({n: np.full(s, 0.5, np.float32) for n, s in ARRAYS.items()})


def params_list(arrays: dict[str, Any], magic: int = 0xF993FAC9) -> bytes:
    """A parameter file."""
    out = struct.pack("<QQQ", 0x112, 0, len(arrays))
    for array in arrays.values():
        out += struct.pack("<Ii", magic, 0) if magic == 0xF993FAC9 else struct.pack("<I", magic)
        out += struct.pack(f"<i{array.ndim}q", array.ndim, *array.shape)
        out += struct.pack("<iii", 1, 0, 0) + array.tobytes()
    out += struct.pack("<Q", len(arrays))
    return out + b"".join(struct.pack("<Q", len(n)) + n.encode() for n in arrays)


def sparse_params(storage: int) -> bytes:
    """A parameter file whose ``w`` is row_sparse (1) or csr (2)."""
    w, b = np.full((2, 3), 0.5, np.float32), np.zeros(4, np.float32)
    out = struct.pack("<QQQ", 0x112, 0, 2) + struct.pack("<Ii", 0xF993FAC9, storage)
    stored = (2, 3) if storage == 1 else (6,)
    out += struct.pack(f"<i{len(stored)}q", len(stored), *stored) + struct.pack("<i2q", 2, 4, 3)
    out += struct.pack("<iii", 1, 0, 0)
    places = [[0, 2]] if storage == 1 else [[0, 3, 3, 6, 6], [0, 1, 2, 0, 1, 2]]
    for place in places:
        out += struct.pack("<iiq", 6, 1, len(place))
    out += w.tobytes() + b"".join(struct.pack(f"<{len(p)}q", *p) for p in places)
    rest = params_list({"w": b, "b": b})
    return out + rest[24 + 4 + 4 + 12 + 12 + 16 :]


@cache
def mxnet_params_files() -> tuple[bytes, ...]:
    """Parameter files of several versions, for ``mxnet_symbol``."""
    held = {"w": np.full((4, 3), 0.5, np.float32), "b": np.zeros(4, np.float32)}
    npz, packed = io.BytesIO(), io.BytesIO()
    np.savez(npz, **held)
    np.savez_compressed(packed, **held)
    return (
        params_list(held), params_list(held, 0xF993FAC8), sparse_params(1), sparse_params(2),
        npz.getvalue(), packed.getvalue(),
    )  # fmt: skip


@cache
def mxnet_archives() -> tuple[bytes, ...]:
    """Archives of a symbol with its parameters."""
    archives = []
    for text, params in (
        (mxnet_symbol(), mxnet_params_files()[0]),
        (mxnet_symbols()[1], mxnet_params()),
    ):
        buffer = io.BytesIO()
        with tarfile.open(fileobj=buffer, mode="w") as archive:
            for name, data in {"m-symbol.json": text, "m-0000.params": params}.items():
                info = tarfile.TarInfo(name)
                info.size = len(data)
                archive.addfile(info, io.BytesIO(data))
        archives += [buffer.getvalue(), gzip.compress(buffer.getvalue(), mtime=0)]
    return tuple(archives)


def _files(reader: str) -> tuple[bytes, ...]:
    return tuple(p.read_bytes() for p in sorted((FOLDER / reader).iterdir()))


@cache
def programs() -> tuple[bytes, ...]:
    """What PyTorch saved, as ``testing/pt2/make_samples.py`` exports it; all of it is read."""
    return tuple(p.read_bytes() for p in sorted(PROGRAMS.glob("*.pt2")) if p.stem != "refused")


def relay_params() -> tuple[bytes, ...]:
    """Two arrays as ``relay.save_param_dict`` writes them, and as an ``.npz``."""
    out = struct.pack("<QQQ", 0xF7E58D4F05049CB7, 0, 2)
    out += b"".join(struct.pack("<Q", len(n)) + n for n in (b"w", b"fc.bias"))
    out += struct.pack("<Q", 2)
    for shape, code, bits, data in (((2, 3), 2, 32, b"\0" * 24), ((), 0, 64, b"\1" * 8)):
        out += struct.pack("<QQiiiBBH", 0xDD5E40F096B4A13F, 0, 1, 0, len(shape), code, bits, 1)
        out += struct.pack(f"<{len(shape) + 1}q", *shape, len(data)) + data
    return (out, *mxnet_params_files()[4:])


@cache
def tflite_models() -> tuple[bytes, ...]:
    """A small model of each operator that is read, and some of several subgraphs."""
    from testing.tflite.cases import list_cases
    from testing.tflite.models import build, write
    from testing.tflite.whole_models import list_whole_models

    return tuple(map(write, [*map(build, list_cases()), *list_whole_models()]))


def of(reader: str) -> tuple[bytes, ...]:
    """The samples that suit a reader."""
    return {
        "onnx": onnx_models, "mxnet-symbol": mxnet_symbols, "mxnet-params": mxnet_params_files,
        "mxnet-archive": mxnet_archives, "relay-params": relay_params,
        "pt2": programs,
        "tflite": tflite_models,
    }.get(reader, lambda: _files(reader))()  # fmt: skip
