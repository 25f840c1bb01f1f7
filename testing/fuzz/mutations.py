"""Ways to damage a model file: its bytes, its protobuf messages, its JSON, its text."""

from __future__ import annotations

import io
import json
import re
import zipfile
from collections.abc import Sequence
from random import Random
from typing import Any

import onnx
from google.protobuf.descriptor import FieldDescriptor
from google.protobuf.message import DecodeError, EncodeError, Message
from onnx import AttributeProto, TensorProto, defs, helper

from serde.io import npz

from .flatbuffers import of_tables
from .numbers import FLOATS, INTS, TEXTS

WORDS = (b"\0\0\0\0", b"\xff\xff\xff\xff", b"\xff\xff\xff\x7f", b"\0\0\0\x80", b"\x01\0\0\0",
         b"\xff" * 8, b"\xff" * 7 + b"\x7f", b"\0" * 7 + b"\x40", b"\0" * 8)  # fmt: skip
OPS = sorted({s.name for s in defs.get_all_schemas_with_history() if s.domain == ""})
COMPRESSIONS = (zipfile.ZIP_STORED, zipfile.ZIP_STORED, zipfile.ZIP_DEFLATED)
LARGEST = 1 << 16  # bytes; what grows beyond is cut off


def mutate(reader: str, seeds: Sequence[bytes], random: Random) -> bytes:
    """One of ``seeds``, damaged up to four times in ways that suit ``reader``."""
    data = random.choice(seeds)
    for _ in range(random.randint(1, 4)):
        data = step(reader, data, seeds, random)[:LARGEST]
    return data


def step(reader: str, data: bytes, seeds: Sequence[bytes], random: Random) -> bytes:
    """Damage ``data`` once."""
    aware = AWARE.get(reader)
    if aware is not None and random.random() < 0.8:
        mutant = aware(data, seeds, random)
        if mutant is not None:
            return mutant
    return of_bytes(data, seeds, random)


def of_bytes(data: bytes, seeds: Sequence[bytes], random: Random) -> bytes:
    """Flip, cut, insert, overwrite, repeat or splice bytes."""
    raw = bytearray(data)
    at, size = random.randint(0, len(raw)), random.choice((1, 2, 4, 8, 16, 100))
    kind = random.randrange(7)
    if kind == 0:
        return bytes(raw[:at])
    if kind == 1:
        del raw[at : at + size]
    elif kind == 2:
        raw[at:at] = random.randbytes(size)
    elif kind == 3:
        word = random.choice(WORDS)
        raw[at : at + len(word)] = word
    elif kind == 4:
        raw[at:at] = raw[at : at + size] * random.choice((1, 2, 50))
    elif kind == 5:
        other = random.choice(seeds)
        there = random.randint(0, len(other))
        raw[at:] = other[there:]
    else:
        for _ in range(random.randint(1, 8)):
            if raw:
                raw[random.randrange(len(raw))] ^= 1 << random.randrange(8)
    return bytes(raw)


def of_model(data: bytes, seeds: Sequence[bytes], random: Random) -> bytes | None:
    """Change one field of one message of an ONNX model, or make a model of one random node."""
    if random.random() < 0.15:
        return one_node(random).SerializeToString()
    try:
        model = onnx.ModelProto.FromString(data)
        other = onnx.ModelProto.FromString(random.choice(seeds))
    except DecodeError:
        return None
    messages = list(_messages(model))
    message = random.choice(messages)
    try:
        if isinstance(message, onnx.NodeProto) and random.random() < 0.5:
            _of_node(message, model, random)
        elif isinstance(message, onnx.GraphProto) and random.random() < 0.3:
            _nest(message, random)
        else:
            _of_field(message, messages + list(_messages(other)), random)
        return bytes(model.SerializeToString())
    except (EncodeError, UnicodeError):  # too deep, too large, or of names that are not UTF-8
        return None


def _messages(message: Message) -> list[Message]:
    messages, stack = [], [message]
    while stack and len(messages) < 5000:
        top = stack.pop()
        messages.append(top)
        for field, value in top.ListFields():
            if field.message_type is not None:
                stack.extend(value if field.is_repeated else [value])
    return messages


def _of_field(message: Message, messages: Sequence[Message], random: Random) -> None:
    fields = message.DESCRIPTOR.fields
    held = [field for field, _ in message.ListFields()]
    field = random.choice(held if held and random.random() < 0.8 else fields)
    if random.random() < 0.1:
        message.ClearField(field.name)
    elif field.is_repeated:
        _of_repeated(getattr(message, field.name), field, messages, random)
    elif field.message_type is not None:
        like = [m for m in messages if m.DESCRIPTOR is field.message_type]
        if like:
            copy = type(like[0])()
            copy.CopyFrom(random.choice(like))
            getattr(message, field.name).CopyFrom(copy)
    else:
        setattr(message, field.name, _scalar(field, messages, random))


def _of_repeated(
    values: Any, field: FieldDescriptor, messages: Sequence[Message], random: Random
) -> None:
    kind, at = random.randrange(5), random.randrange(len(values)) if len(values) else 0
    if kind == 0 and len(values):
        del values[at]
    elif field.message_type is not None:
        like = [m for m in messages if m.DESCRIPTOR is field.message_type]
        if not like:
            values.add()
            return
        copy = type(like[0])()
        copy.CopyFrom(random.choice(like))
        values.extend([copy] * random.choice((1, 1, 2, 40)))
    elif kind == 1 and len(values) > 1:
        other = random.randrange(len(values))
        values[at], values[other] = values[other], values[at]
    elif kind == 2:
        values.extend([_scalar(field, messages, random)] * random.choice((1, 2, 70)))
    elif len(values):
        values[at] = _scalar(field, messages, random)


def _scalar(field: FieldDescriptor, messages: Sequence[Message], random: Random) -> Any:
    if field.enum_type is not None:
        return random.choice(field.enum_type.values).number
    if field.type in (FieldDescriptor.TYPE_FLOAT, FieldDescriptor.TYPE_DOUBLE):
        return random.choice(FLOATS)
    if field.type == FieldDescriptor.TYPE_STRING:
        return _name(messages, random)
    if field.type == FieldDescriptor.TYPE_BYTES:
        return random.choice((b"", b"\xff\xfe", b"x" * 7, b"\0" * 64, random.randbytes(8)))
    least, most = {
        FieldDescriptor.TYPE_INT32: (-(2**31), 2**31 - 1),
        FieldDescriptor.TYPE_UINT64: (0, 2**64 - 1),
    }.get(field.type, (-(2**63), 2**63 - 1))
    return random.choice([i for i in (*INTS, *range(-5, 30)) if least <= i <= most])


def _name(messages: Sequence[Message], random: Random) -> str:
    """A text: one of those in the model, so that cycles and duplicates come about, or any."""
    nodes = [m for m in messages if isinstance(m, onnx.NodeProto)]
    if nodes and random.random() < 0.7:
        node = random.choice(nodes)
        names = [*node.input, *node.output, node.op_type, node.domain, node.name]
        return random.choice([n for n in names if isinstance(n, str)] or TEXTS)
    return random.choice(TEXTS)


def _of_node(node: onnx.NodeProto, model: onnx.ModelProto, random: Random) -> None:
    """Another operator, another operand, or an attribute such an operator has."""
    kind = random.randrange(3)
    if kind == 0:
        node.op_type = random.choice(OPS)
    elif kind == 1 and len(node.input):
        at = random.randrange(len(node.input))
        node.input[at] = _name([*model.graph.node], random)
    elif isinstance(node.op_type, str) and defs.has(node.op_type):
        schema = defs.get_schema(node.op_type)
        if schema.attributes:
            name = random.choice(sorted(schema.attributes))
            node.attribute.append(_attribute(name, schema.attributes[name], random))


def _attribute(name: str, declared: Any, random: Random) -> AttributeProto:
    """An attribute of the kind declared, mostly."""
    kind = declared.type.name if random.random() < 0.9 else random.choice(("INT", "STRING", "INTS"))
    small = (*INTS, *range(-3, 10))
    attr = AttributeProto(name=name, type=AttributeProto.AttributeType.Value(kind))
    count = random.choice((0, 1, 2, 3, 4, 8))
    if kind == "INT":
        attr.i = random.choice(small)
    elif kind == "FLOAT":
        attr.f = random.choice(FLOATS)
    elif kind == "STRING":
        attr.s = random.choice(TEXTS).encode()
    elif kind == "INTS":
        attr.ints.extend(random.choice(small) for _ in range(count))
    elif kind == "FLOATS":
        attr.floats.extend(random.choice(FLOATS) for _ in range(count))
    elif kind == "STRINGS":
        attr.strings.extend(random.choice(TEXTS).encode() for _ in range(count))
    elif kind == "TENSOR":
        attr.t.CopyFrom(_tensor("", random.choice(KINDS), random))
    elif kind == "GRAPH":
        attr.g.node.add(op_type="Identity", input=["x0"], output=["body"])
        attr.g.output.add(name="body")
    return attr


def _nest(graph: onnx.GraphProto, random: Random) -> None:
    """Put the nodes of a graph into the branches of an If."""
    inner = onnx.GraphProto(name="inner")
    inner.node.extend(graph.node)
    inner.output.extend(graph.output)
    del graph.node[:]
    for _ in range(random.choice((1, 1, 2, 10))):
        outputs = [o.name for o in inner.output]
        node = helper.make_node("If", ["cond"], outputs, then_branch=inner, else_branch=inner)
        if inner.ByteSize() > LARGEST // 16:
            break
        inner = onnx.GraphProto(name="inner")
        inner.node.append(node)
        inner.output.extend(graph.output)
    graph.node.extend(inner.node)
    graph.initializer.append(helper.make_tensor("cond", TensorProto.BOOL, [], [True]))


KINDS = (1, 1, 1, 7, 7, 6, 9, 10, 11, 2, 3, 12, 13, 16, 8, 17, 22)
DIMS = (0, 1, 1, 2, 2, 3, 4, 7, "N", "M", None, 1024, 10**6, 2**31, 2**62)


def one_node(random: Random) -> onnx.ModelProto:
    """A model of one operator, with operands and attributes of declared kinds."""
    opset = random.choice((1, 6, 7, 8, 9, 10, 11, 12, 13, 16, 18, 19, 20, 21, 23, 25, 26, 28))
    while True:
        op = random.choice(OPS)
        if defs.has(op, opset, "") and not defs.get_schema(op, opset, "").deprecated:
            break
    schema = defs.get_schema(op, opset, "")
    model = onnx.ModelProto(ir_version=8)
    model.opset_import.add(domain="", version=opset)
    least, most = schema.min_input, min(schema.max_input, schema.min_input + 5)
    tied: dict[str, int] = {}
    rank = random.randint(0, 5)
    names = []
    for at in range(random.randint(least, max(least, most))):
        formal = schema.inputs[min(at, len(schema.inputs) - 1)] if schema.inputs else None
        kind = tied.setdefault(formal.type_str if formal else "", _kind(formal, random))
        name = "" if at >= least and random.random() < 0.2 else f"x{at}"
        names.append(name)
        if name and random.random() < 0.4:
            model.graph.initializer.append(_tensor(name, kind, random))
        elif name:
            shape = [random.choice(DIMS) for _ in range(rank if random.random() < 0.8 else 1)]
            info = helper.make_tensor_value_info(name, kind, shape)
            if random.random() < 0.1:
                info.type.tensor_type.ClearField("shape")
            model.graph.input.append(info)
    outputs = [f"y{i}" for i in range(random.randint(schema.min_output, min(schema.max_output, 4)))]
    node = model.graph.node.add(op_type=op, input=names, output=outputs or ["y0"])
    for name, declared in sorted(schema.attributes.items()):
        if declared.required or random.random() < 0.5:
            node.attribute.append(_attribute(name, declared, random))
    for name in node.output:
        model.graph.output.add(name=name)
    return model


def _kind(formal: Any, random: Random) -> int:
    """An element type the operand may have, mostly."""
    if formal is not None and random.random() < 0.9:
        allowed = sorted(t for t in formal.types if t.startswith("tensor("))
        if allowed:
            spelled = random.choice(allowed)[7:-1]
            name = {"float": "FLOAT", "double": "DOUBLE"}.get(spelled, spelled.upper())
            return int(TensorProto.DataType.Value(name))
    return random.choice(KINDS)


def _tensor(name: str, kind: int, random: Random) -> TensorProto:
    """A small constant."""
    shape = random.choice(((), (1,), (2,), (4,), (2, 2), (1, 1, 3, 3), (0,), (8,)))
    size = 1
    for d in shape:
        size *= d
    if kind == TensorProto.STRING:
        return helper.make_tensor(name, kind, shape, [b"text"] * size)
    bits = 8 * helper.tensor_dtype_to_np_dtype(kind).itemsize
    if kind in (TensorProto.INT4, TensorProto.UINT4, TensorProto.FLOAT4E2M1):
        bits = 4
    tensor = TensorProto(name=name, data_type=kind, dims=shape)
    values = [random.choice((*INTS, *range(5))) for _ in range(size)]
    if kind == TensorProto.INT64 and random.random() < 0.9:
        tensor.int64_data.extend(values)
    else:
        tensor.raw_data = random.randbytes((size * bits + 7) // 8)
    return tensor


def of_json(data: bytes, seeds: Sequence[bytes], random: Random) -> bytes | None:
    """Change one value of a JSON text."""
    try:
        tree = json.loads(data)
    except (ValueError, RecursionError):
        return None
    places = list(_places(tree)) if isinstance(tree, (dict, list)) else []
    if not places:
        return None
    holder, key = random.choice(places)
    kind = random.randrange(7)
    if kind == 0:
        del holder[key]
    elif kind == 1:
        other, there = random.choice(places)
        holder[key] = other[there] if not isinstance(other[there], (dict, list)) else {}
    elif kind == 2 and isinstance(holder, list):
        holder[key:key] = [holder[key]] * random.choice((1, 2, 50))
    elif kind == 3:
        holder[key] = random.choice((None, True, [], {}, [[0, 0]], 1e400, -1, 2**70, "\ud800"))
    elif isinstance(holder[key], str):
        holder[key] = _json_text(holder[key], places, random)
    else:
        holder[key] = random.choice((*INTS, *range(12)))
    return json.dumps(tree).encode()


def _places(tree: Any) -> list[tuple[Any, Any]]:
    places, stack = [], [tree]
    while stack and len(places) < 5000:
        top = stack.pop()
        keys = top if isinstance(top, dict) else range(len(top))
        for key in keys:
            places.append((top, key))
            if isinstance(top[key], (dict, list)):
                stack.append(top[key])
    return places


def _json_text(text: str, places: Sequence[Any], random: Random) -> str:
    numbers = list(re.finditer(r"-?\d+", text))
    if numbers and random.random() < 0.6:
        match = random.choice(numbers)
        new = random.choice((*INTS, *range(-3, 12), "None", "nan", "1e308", "0x10"))
        return f"{text[: match.start()]}{new}{text[match.end() :]}"
    texts = [h[k] for h, k in places if isinstance(h[k], str)]
    choices = (*TEXTS, "(1, 1)", "(0, 0)", "(1,)", "()", "[1, 2", "True", "None", "float16", "-1",
               "(999999999999, 999999999999)", "(" * 5000, "1" * 400, "1e308", "null")  # fmt: skip
    return random.choice(texts if random.random() < 0.5 else choices)


def of_program(data: bytes, seeds: Sequence[bytes], random: Random) -> bytes | None:
    """Change one value of the JSON of a zip archive, or the bytes of a member; mostly of the graph."""
    try:
        with zipfile.ZipFile(io.BytesIO(data)) as archive:
            members = {info.filename: archive.read(info) for info in archive.infolist()}
    except npz.BROKEN:
        return None
    graphs = [name for name in members if "models/" in name]
    if not members:
        return None
    name = random.choice(graphs if graphs and random.random() < 0.8 else sorted(members))
    change = of_json if name.endswith(".json") else of_bytes
    changed = change(members[name], seeds, random)
    if changed is None:
        return None
    buffer = io.BytesIO()
    with zipfile.ZipFile(buffer, "w", random.choice(COMPRESSIONS)) as archive:
        for key, content in (members | {name: changed}).items():
            archive.writestr(zipfile.ZipInfo(key), content, archive.compression)
    return buffer.getvalue()


def of_text(data: bytes, seeds: Sequence[bytes], random: Random) -> bytes | None:
    """Change one token of a text."""
    try:
        text, other = data.decode(), random.choice(seeds).decode()
    except UnicodeDecodeError:
        return None
    tokens = list(re.finditer(r"[%@]?[\w.]+|\"[^\"]*\"|\s+|[^\w\s]", text))
    if not tokens:
        return None
    token = random.choice(tokens)
    kind = random.randrange(7)
    taken = re.findall(r"[%@]?[\w.]+|\"[^\"]*\"|[^\w\s]", other if kind == 0 else text) or ["x"]
    new = {
        0: lambda: random.choice(taken),
        1: lambda: random.choice(taken),
        2: lambda: "",
        3: lambda: token[0] * random.choice((2, 3, 300)),
        4: lambda: str(random.choice((*INTS, "1e999f", "9" * 500, "-0.f", "nanf"))),
        5: lambda: random.choice("(){}[]%@/*\"'=:,;.!?") * random.choice((1, 2, 200)),
        6: lambda: random.choice(TEXTS),
    }[kind]()
    return f"{text[: token.start()]}{new}{text[token.end() :]}".encode("utf-8", "replace")


AWARE = {
    "onnx": of_model, "mxnet-symbol": of_json, "relay-json": of_json, "relay-text": of_text,
    "pt2": of_program, "tflite": of_tables,
}  # fmt: skip
