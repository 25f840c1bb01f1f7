"""Model files as MXNet's versions write them, made by hand for the tests."""

from __future__ import annotations

import io
import json
import struct
import zipfile
from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np

Array = np.ndarray[Any, Any]
TYPES = (
    "float32 float64 float16 uint8 int32 int8 int64 bool int16 uint16 uint32 uint64 bfloat16"
).split()
MAGICS = {"v1": 0xF993FAC8, "v2": 0xF993FAC9, "v3": 0xF993FACA}
LAYOUTS = ("v0", *MAGICS)
GPU = struct.pack("<ii", 2, 3)  # a context: device type and number


def shape_bytes(shape: Sequence[int]) -> bytes:
    """int32 ndim and int64 sizes."""
    return struct.pack(f"<i{len(shape)}q", len(shape), *shape)


def array_bytes(array: Array, layout: str = "v2", context: bytes = GPU) -> bytes:
    """One dense array in a layout: ``v0`` is the one before V1."""
    array = np.asarray(array)
    if layout == "v0":
        head = struct.pack(f"<{array.ndim + 1}I", array.ndim, *array.shape)
    else:
        stype = b"" if layout == "v1" else struct.pack("<i", 0)
        head = struct.pack("<I", MAGICS[layout]) + stype + shape_bytes(array.shape)
    kind = struct.pack("<i", TYPES.index(array.dtype.name))
    return head + context + kind + array.tobytes()


def sparse_bytes(storage: int, shape: Sequence[int], values: Array, *places: Array) -> bytes:
    """One row_sparse (1) or csr (2) array, V2."""
    kinds = [TYPES.index(a.dtype.name) for a in (values, *places)]
    head = struct.pack("<Ii", MAGICS["v2"], storage) + shape_bytes(values.shape)
    head += shape_bytes(shape) + GPU + struct.pack("<i", kinds[0])
    for kind, place in zip(kinds[1:], places, strict=True):
        head += struct.pack("<i", kind) + shape_bytes(place.shape)
    return head + b"".join(a.tobytes() for a in (values, *places))


def params_bytes(
    arrays: Mapping[str, Array | bytes] | Sequence[Array | bytes], layout: str = "v2"
) -> bytes:
    """A parameter file, with names where a mapping is given; bytes stand for themselves."""
    names = [n.encode() for n in arrays] if isinstance(arrays, Mapping) else []
    values = list(arrays.values()) if isinstance(arrays, Mapping) else list(arrays)
    parts = [struct.pack("<QQQ", 0x112, 0, len(values))]
    parts += [v if isinstance(v, bytes) else array_bytes(v, layout) for v in values]
    parts += [struct.pack("<Q", len(names))]
    parts += [struct.pack("<Q", len(n)) + n for n in names]
    return b"".join(parts)


def npy_bytes(array: Array, descr: str | None = None, shape: Any = None) -> bytes:
    """A ``.npy`` member as MXNet 2 (src/serialization/cnpy.cc) writes it."""
    array = np.asarray(array)
    kind = array.dtype.name
    descr = descr or ("[('bfloat16', '<u2')]" if kind == "bfloat16" else repr(array.dtype.str))
    shape = array.shape if shape is None else shape
    sizes = ", ".join(map(str, shape)) + ("," if len(shape) == 1 else "")
    text = f"{{'descr': {descr}, 'fortran_order': False, 'shape': ({sizes}), }}"
    text += " " * (63 - (10 + len(text)) % 64) + "\n"
    return b"\x93NUMPY\1\0" + struct.pack("<H", len(text)) + text.encode() + array.tobytes()


def zip_bytes(members: Mapping[str, bytes], how: int = zipfile.ZIP_DEFLATED) -> bytes:
    """A zip archive."""
    out = io.BytesIO()
    with zipfile.ZipFile(out, "w", how) as archive:
        for name, data in members.items():
            archive.writestr(name, data)
    return out.getvalue()


def sparse_members(name: str, kind: str, **parts: Array) -> dict[str, bytes]:
    """The members of a sparse array in a zip."""
    members = {f"{name}/{part}.npy": npy_bytes(np.asarray(a)) for part, a in parts.items()}
    return {**members, f"{name}/format.npy": npy_bytes(np.array(kind.encode()))}


def npz_bytes(arrays: Mapping[str, Array], how: int = zipfile.ZIP_DEFLATED) -> bytes:
    """A parameter file as MXNet 2 writes it."""
    return zip_bytes({f"{n}.npy": npy_bytes(a) for n, a in arrays.items()}, how)


def variable(name: str, **attrs: str) -> dict[str, Any]:
    """The node of a variable."""
    return {"op": "null", "name": name, "inputs": [], **({"attrs": attrs} if attrs else {})}


def node(op: str, name: str, inputs: Sequence[Any], **attrs: Any) -> dict[str, Any]:
    """The node of an operator; an input is the number of a node, or that and an output's."""
    links = [[i, 0, 0] if isinstance(i, int) else [*i, 0] for i in inputs]
    texts = {k: str(v) for k, v in attrs.items()}
    return {"op": op, "name": name, "inputs": links, **({"attrs": texts} if texts else {})}


def symbol(nodes: Sequence[Any], *heads: Any, version: int | None = 10901, **flags: int) -> str:
    """Symbol JSON; the last node is the only output where no heads are given."""
    ends = [[h, 0, 0] if isinstance(h, int) else [*h, 0] for h in heads or (len(nodes) - 1,)]
    own = {"mxnet_version": version, **flags}
    graph: dict[str, Any] = {
        "nodes": list(nodes),
        "arg_nodes": [i for i, n in enumerate(nodes) if n["op"] == "null"],
        "heads": ends,
    }
    if version is not None:
        graph["attrs"] = {k: ["int", v] for k, v in own.items()}
    return json.dumps(graph)


def chain(*calls: Any, params: Mapping[str, Sequence[str]] | None = None) -> str:
    """A symbol of operators one after the other, from ``data``: ``(op, attributes)`` each.

    Each has its parameters behind the operand, called ``<op><number>_<parameter>``.
    """
    known = PARAMETERS if params is None else params
    nodes, last = [variable("data")], 0
    for number, (op, attrs) in enumerate(calls):
        name = f"{op.lower()}{number}"
        own = known.get(op, ())
        own = own[:-1] if str(attrs.get("no_bias")) == "True" else own
        first = len(nodes)
        nodes += [variable(f"{name}_{p}") for p in own]
        nodes.append(node(op, name, [last, *range(first, first + len(own))], **attrs))
        last = len(nodes) - 1
    return symbol(nodes)


PARAMETERS = {
    "BatchNorm": ("gamma", "beta", "moving_mean", "moving_var"),
    "Convolution": ("weight", "bias"),
    "Deconvolution": ("weight", "bias"),
    "Embedding": ("weight",),
    "FullyConnected": ("weight", "bias"),
    "LayerNorm": ("gamma", "beta"),
    "RNN": ("parameters",),
    "SoftmaxOutput": ("label",),
}


def network() -> tuple[str, dict[str, Array]]:
    """A small network, convolution to softmax, and its parameters by name."""
    text = chain(
        ("Convolution", {"kernel": "(3, 3)", "num_filter": 4, "pad": "(1, 1)"}),
        ("BatchNorm", {"fix_gamma": False}),
        ("Activation", {"act_type": "relu"}),
        ("Pooling", {"global_pool": True, "pool_type": "avg", "kernel": "(2, 2)"}),
        ("FullyConnected", {"num_hidden": 3}),
        ("SoftmaxOutput", {}),
    )
    shapes = {
        "convolution0_weight": (4, 2, 3, 3),
        "convolution0_bias": (4,),
        "batchnorm1_gamma": (4,),
        "batchnorm1_beta": (4,),
        "batchnorm1_moving_mean": (4,),
        "batchnorm1_moving_var": (4,),
        "fullyconnected4_weight": (3, 4),
        "fullyconnected4_bias": (3,),
    }
    generator = np.random.default_rng(0)
    return text, {n: generator.uniform(0.5, 1, s).astype("float32") for n, s in shapes.items()}
