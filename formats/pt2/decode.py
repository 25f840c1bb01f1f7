"""Reads an exported program as a graph of ATen operators."""

from __future__ import annotations

import json
import re
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any

from serde.errors import ConversionError, MalformedFile
from serde.io.tensor_bytes import is_possible_shape
from serde.ir.graph import DType, Graph, Node, Source, Tensor, Value
from serde.spec.weight_origins import mark_array

from .autocast import REGION, add_casts
from .functionalize import Functionalizer
from .io.archive import AGAIN, Archive, open_archive
from .io.weights import CONSTANTS, DTYPES, WEIGHTS, find_model, read_weights
from .operands import Operand, symbol_text
from .strides import BY_STRIDES, Layout

MAJOR = 8  # of the schema; PyTorch raises it where files of before cannot be read
# What PyTorch's exporter to ONNX calls what it writes of a node, and of the arrays of a program.
EXPORTER = "pkg.torch.onnx."
SIGNATURE = "pkg.torch.export.ExportedProgram.graph_signature"
BROKEN = (LookupError, StopIteration, TypeError, AttributeError, ValueError, RecursionError)
CONSTANT_KINDS = {
    "parameter": "parameter_name", "buffer": "buffer_name",
    "tensor_constant": "tensor_constant_name",
}  # fmt: skip
MUTATIONS = {"buffer_mutation": "buffer_name", "user_input_mutation": "user_input_name",
             "parameter_mutation": "parameter_name"}  # fmt: skip
INTERNAL = re.compile(r'[/"]torch/')  # files of PyTorch itself
SYMBOLS = {"as_sym_int": DType.INT64, "as_sym_float": DType.FLOAT64, "as_sym_bool": DType.BOOL}
TENSORS = ("as_tensor", *SYMBOLS)  # kinds of arguments that are values of the graph
NONE = "none"  # the name of a result that a mask leaves out
ASSERTIONS = (
    "_assert_", "_assert_async", "sym_constrain_range", "_assert_tensor_metadata",
    "higher_order._assert",
)  # fmt: skip


def decode(path: str | Path, *, inputs: Mapping[str, Any] | None = None) -> Graph:
    """Read the program at ``path``, whose inputs are those it was exported with.

    ``inputs`` are for live modules.

    Raises:
        MalformedFile: for what PyTorch did not write, and for versions that are not known.
    """
    path = Path(path)
    with open_archive(path) as archive:
        name, program = find_model(archive)
        version = program.get("schema_version")
        major = version.get("major") if isinstance(version, dict) else None
        if major != MAJOR:
            raise MalformedFile(path, f"schema version {major}, not {MAJOR}: {AGAIN}")
        tensors = {**read_weights(archive, name, WEIGHTS), **read_weights(archive, name, CONSTANTS)}
        try:
            return ProgramReader(archive, program, tensors).read(name)
        except BROKEN as error:
            raise MalformedFile(path, f"no exported program: {type(error).__name__} {error}"
                                ) from error  # fmt: skip


class GraphReader:
    """Makes a graph of the JSON of one: a program's, or an operator's that takes it."""

    def __init__(self, path: str, json_: Mapping[str, Any]) -> None:
        self.path, self.json = path, json_
        self.metas: Mapping[str, Any] = json_["tensor_values"]
        self.inputs: list[Value] = []
        self.labels: set[str] = set()  # of outputs, which no other value is called
        self.state = Functionalizer(lambda name: Layout.of(self.metas[name]))

    def read_body(self, name: str) -> Graph:
        """The graph that an operator takes, called ``name``."""
        for arg in self.json["inputs"]:
            (sort, body), *_ = arg.items()
            self._enter_input(_name_of(body), sort)
        self._read_nodes()
        if written := [v.name for v in self.inputs if self.state.is_written(v.name)]:
            raise ConversionError(f"{name} writes to {written[0]!r}: return what it becomes")
        pairs = [(kind, arg) for out in self.json["outputs"] for kind, arg in out.items()]
        if any(kind not in TENSORS for kind, _ in pairs):
            raise ConversionError(f"{name} returns what is no tensor: leave it out")
        names = [_name_of(arg) for _, arg in pairs]
        outputs = [self.state.name_output(key, key) for key in names]
        return Graph(name, tuple(self.inputs), tuple(outputs), tuple(self.state.nodes), "aten")

    def _enter_input(self, name: str, sort: str) -> Value:
        value = self._value(name, sort)
        self.inputs.append(value)
        self.state.enter(name, value)
        return value

    def _read_nodes(self) -> None:
        nodes = self.json["nodes"]
        used = set(_find_names([[n["inputs"] for n in nodes], self.json["outputs"]]))
        for node in nodes:
            self._read_node(node, used)

    def _value(self, name: str, sort: str = "as_tensor") -> Value:
        """What the file says of a tensor, or of a number that is computed."""
        if sort == "as_none":
            return Value(name)
        if sort != "as_tensor":
            return Value(name, SYMBOLS[sort], (1,))
        meta = self.metas[name]
        dtype = DTYPES.get(meta["dtype"])
        if dtype is None:
            raise MalformedFile(self.path, f"tensor {name!r} has an element type that is not read: "
                                "cast it before the export")  # fmt: skip
        sizes = [d["as_int"] if "as_int" in d else symbol_text(d) for d in meta["sizes"]]
        numbers = tuple(d for d in sizes if d is not None and not isinstance(d, str))
        if not is_possible_shape(numbers) or not all(type(d) is int for d in numbers):
            raise MalformedFile(self.path, f"tensor {name!r} claims the sizes {sizes[:20]}")
        return Value(f"{name}.value" if name in self.labels else name, dtype, tuple(sizes))

    def _read_node(self, node: Mapping[str, Any], used: set[str]) -> None:
        op = (
            node["target"].removeprefix("torch.ops.").removeprefix("aten.").removesuffix(".default")
        )
        if op.startswith(ASSERTIONS):
            return
        outputs = [(s, a) for out in node["outputs"] for s, a in _flatten_outputs(out)]
        source = (_find_source(node, op),)
        if op in BY_STRIDES:
            node = {**node, "inputs": self._read_as_stored(op, node)}
        inputs: list[Value | None] = []
        attrs = {_text(a["name"]) or str(at): self._argument(a["arg"], inputs)
                 for at, a in enumerate(node["inputs"])}  # fmt: skip
        if op == REGION and attrs["2"]:
            dtype = DTYPES[int(attrs["1"].removeprefix("dtype:"))]
            attrs = {k: add_casts(v, dtype) if isinstance(v, Graph) else v
                     for k, v in attrs.items()}  # fmt: skip
        names = [_name_of(a) for _, a in outputs]
        while len(names) > 1 and names[-1] not in used:
            names.pop()
        values = [self._value(n, s) for n, (s, _) in zip(names, outputs, strict=False)]
        read = [(a["name"], _tensor_name(a["arg"])) for a in node["inputs"]]
        result = Node(op, tuple(inputs), tuple(values), attrs, "aten", source[0].name, source)
        self.state.add(result, read, names)

    def _read_as_stored(self, op: str, node: Mapping[str, Any]) -> list[Mapping[str, Any]]:
        """Arguments of an operator that reads places in memory, counted from the first element."""
        operand, *others = node["inputs"]
        stored = f"{_text(node['name'])}.stored"
        start = self.state.enter_stored(_name_of(operand["arg"]["as_tensor"]), stored, op)
        arguments: list[Mapping[str, Any]] = [{**operand, "arg": {"as_tensor": {"name": stored}}}]
        for argument in others:
            is_offset = argument["name"] == "storage_offset" and "as_int" in argument["arg"]
            moved = {"as_int": argument["arg"]["as_int"] - start} if is_offset else argument["arg"]
            arguments.append({**argument, "arg": moved})
        return arguments

    def _argument(self, arg: Mapping[str, Any], inputs: list[Value | None]) -> Any:
        """An argument as an attribute, in which operands stand for values."""
        (kind, value), *_ = arg.items()
        if kind == "as_none":
            return None
        if kind in TENSORS:
            return self._operand(value, kind, inputs)
        if kind in ("as_optional_tensor",):
            return self._argument(value, inputs)
        if kind == "as_optional_tensors":
            return tuple(self._argument(v, inputs) for v in value)
        if kind == "as_tensors":
            return tuple(self._operand(v, "as_tensor", inputs) for v in value)
        if kind in ("as_sym_ints", "as_sym_floats", "as_sym_bools"):
            return tuple(self._operand(v, kind.removesuffix("s"), inputs) for v in value)
        if kind == "as_device":
            return str(value["type"])
        if kind == "as_scalar_type":
            return f"dtype:{int(value)}"
        if kind == "as_graph":
            return GraphReader(self.path, value["graph"]).read_body(_text(value["name"]))
        if kind == "as_complex":
            return complex(_number(value["real"]), _number(value["imag"]))
        if kind in ("as_custom_obj", "as_operator"):
            return kind
        return tuple(map(_number, value)) if isinstance(value, list) else _number(value)

    def _operand(self, arg: Mapping[str, Any], kind: str, inputs: list[Value | None]) -> Any:
        name = arg.get("name", arg.get("as_name"))
        if name is None:
            (number,) = arg.values()
            return _number(number)
        inputs.append(self.state.read(name))
        return Operand(len(inputs) - 1, kind != "as_tensor")


class ProgramReader(GraphReader):
    """Makes a graph of a program's JSON."""

    def __init__(
        self, archive: Archive, program: Mapping[str, Any], tensors: Mapping[str, Any]
    ) -> None:
        self.module = program["graph_module"]
        super().__init__(archive.path, self.module["graph"])
        self.tensors = tensors
        self.constants: dict[str, str] = {}  # names in the graph, and those of the weights
        self.notes: list[str] = []
        self.lines: list[str] = []  # what arrays are called in the graph and in the checkpoint
        self.arrays: list[Value] = []  # of the checkpoint

    def read(self, name: str) -> Graph:
        """The graph, called ``name``."""
        for spec in self.module["signature"]["input_specs"]:
            self._read_input(spec)
        self.labels = {*self.constants.values(), *self._output_names()}
        self._read_nodes()
        outputs = self._read_outputs()
        return Graph(
            name, tuple(self.inputs), tuple(outputs), tuple(self.state.nodes), "aten",
            metadata={SIGNATURE: "\n".join(self.lines)}, notes=tuple(self.notes),
            files=frozenset({self.path}), arrays=tuple(self.arrays),
        )  # fmt: skip

    def _read_input(self, spec: Mapping[str, Any]) -> None:
        (kind, body), *_ = spec.items()
        if kind == "constant_input":
            self.notes.append(f"input {body['name']!r} is fixed to what it was at the export")
            return
        if kind == "user_input":
            (sort, arg), *_ = body["arg"].items()
            if sort in TENSORS:
                value = self._enter_input(_name_of(arg), sort)
                self._refuse_complex(value, "view_as_complex of an input")
            elif sort == "as_custom_obj":
                raise MalformedFile(self.path, f"input {arg['name']!r} is an object, no tensor: "
                                    "export a module that takes tensors")  # fmt: skip
            return
        if kind not in CONSTANT_KINDS:
            raise MalformedFile(self.path, f"an input of the kind {kind!r} is not read: export a "
                                "module that takes tensors, without hooks or objects")  # fmt: skip
        key, name = _text(body["arg"]["name"]), _text(body[CONSTANT_KINDS[kind]])
        tensor = self.tensors.get(name)
        if tensor is None:
            raise MalformedFile(self.path, f"{kind} {name!r} has no array in the file")
        self.constants[key] = name
        value = self._constant(name, tensor)
        if kind in ("parameter", "buffer"):
            more = f" persistent={body.get('persistent')}" if kind == "buffer" else ""
            self.lines.append(f"{key}: {kind.upper()} target={name!r}{more}")
            if not more or body.get("persistent") is True:
                self.arrays.append(mark_array(value))
        self.state.enter(key, value)

    def _constant(self, name: str, tensor: Tensor) -> Value:
        """The value of a weight; of a complex one, what a node makes of its pairs."""
        if tensor.dtype.kind != "c":
            return Value(name, tensor.dtype, tensor.shape, tensor, name_is_original=True)
        pairs = tensor.load().view(tensor.dtype.numpy.type().real.dtype)
        pairs = Tensor.of(pairs.reshape(*tensor.shape, 2))
        value = Value(name, tensor.dtype, tensor.shape)
        inputs = (Value(name, pairs.dtype, pairs.shape, pairs),)
        self.state.nodes.append(
            Node("view_as_complex", inputs, (value,), {"self": Operand(0, False)}, "aten", name)
        )
        return value

    def _read_outputs(self) -> list[Value]:
        names = self._output_names()
        outputs: list[Value] = []
        written = set()
        specs = [next(iter(s.items())) for s in self.module["signature"]["output_specs"]]
        # A decomposed program has what it changes before the user's outputs.
        for kind, body in sorted(specs, key=lambda spec: spec[0] in MUTATIONS):
            arg = body["arg"]
            if kind == "user_output":
                (arg,) = arg.values()
            label = names.pop(0) if kind == "user_output" and names else ""
            if kind in MUTATIONS:
                written.add(_text(body[MUTATIONS[kind]]))
                label = self._note_write(body[MUTATIONS[kind]])
            elif kind not in ("user_output", "loss_output"):
                raise MalformedFile(self.path, f"an output of the kind {kind!r} is not read: "
                                    "export the module without gradients")  # fmt: skip
            name = arg.get("name", arg.get("as_name")) if isinstance(arg, dict) else None
            if name is None:
                self.notes.append(f"an output that is {arg!r} whatever the inputs is left out")
                continue
            self._refuse_complex(self.state.read(name), "view_as_real of an output")
            outputs.append(self.state.name_output(name, label or name))
        for key, label in self.constants.items():
            if self.state.is_written(key) and label not in written:
                outputs.append(self.state.name_output(key, self._note_write(label)))
        for value in self.inputs:
            if self.state.is_written(value.name) and value.name not in written:
                label = self._note_write(value.name)
                outputs.append(self.state.name_output(value.name, label))
        return outputs

    def _refuse_complex(self, value: Value, advice: str) -> None:
        if value.dtype is not None and value.dtype.kind == "c":
            raise MalformedFile(self.path, f"{value.name!r} is complex: take torch.{advice}")

    def _note_write(self, name: str) -> str:
        """The name of the output that is what a tensor becomes."""
        self.notes.append(f"the module changes {name!r}: what it becomes is a further output")
        return f"{name}.written" if any(name == v.name for v in self.inputs) else name

    def _output_names(self) -> list[str]:
        """The names that users know the outputs by: keys of what the module returns."""
        calls = self.module.get("module_call_graph") or [{}]
        signature = calls[0].get("signature") or {}
        text = signature.get("out_spec")
        tree = json.loads(text)[1] if text else {}
        paths = list(_leaves(tree, ()))
        return [".".join(map(str, p)) if any(isinstance(k, str) for k in p) else "" for p in paths]


def _leaves(tree: Any, path: tuple[Any, ...]) -> Iterator[tuple[Any, ...]]:
    kind = tree.get("type")
    children = tree.get("children_spec") or []
    if kind is None:
        yield path
        return
    keys: Sequence[Any] = range(len(children))
    if kind.endswith("dict"):
        keys = json.loads(tree["context"])
        keys = keys[0] if keys and isinstance(keys[0], list) else keys
    for key, child in zip(keys, children, strict=False):
        yield from _leaves(child, (*path, key))


def _flatten_outputs(out: Mapping[str, Any]) -> Iterator[tuple[str, Any]]:
    """The tensors and numbers of a result, in order."""
    (kind, value), *_ = out.items()
    if kind in TENSORS:
        yield kind, value
    elif kind in ("as_tensors", "as_sym_ints"):
        for item in value:
            yield kind.removesuffix("s"), item
    elif kind == "as_optional_tensors":
        for item in value:
            yield from _flatten_outputs(item)
    elif kind == "as_none":
        yield kind, {"name": NONE}
    else:
        raise ValueError(f"a result {kind}")


def _find_names(json_: Any) -> Iterator[str]:
    """Every name that is read in arguments."""
    stack = [json_]
    while stack:
        item = stack.pop()
        if isinstance(item, dict):
            for key, value in item.items():
                if key in ("name", "as_name") and isinstance(value, str):
                    yield value
                elif isinstance(value, (dict, list)):
                    stack.append(value)
        elif isinstance(item, list):
            stack.extend(item)


def _tensor_name(arg: Mapping[str, Any]) -> str | None:
    value = arg.get("as_tensor")
    return value["name"] if value else None


def _name_of(arg: Mapping[str, Any]) -> str:
    return _text(arg.get("name", arg.get("as_name")))


def _text(value: Any) -> str:
    if not isinstance(value, str):
        raise ValueError(f"a name {value!r}")
    return value


def _number(value: Any) -> Any:
    """A number as JSON may hold it: infinities are texts there."""
    if isinstance(value, str) and value in ("Infinity", "-Infinity", "NaN"):
        return float(value.replace("Infinity", "inf"))
    if not isinstance(value, (int, float, str, bool)):
        raise ValueError(f"an argument {value!r}")
    return value


def _find_source(node: Mapping[str, Any], op: str) -> Source:
    """The user's module and line, and the modules around as PyTorch's exporter to ONNX says it."""
    metadata = node.get("metadata") or {}
    parts = [part.split(",") for part in metadata.get("nn_module_stack", "").split(";")]
    stack = [p for p in parts if len(p) > 2 and "." in p[2]]
    module = next((p[1] for p in reversed(stack) if p[1]), "")
    name = _text(node.get("name") or op)
    lines = [t.strip() for t in metadata.get("stack_trace", "").splitlines()]
    places = [t for t in lines if t.startswith("File ") and not INTERNAL.search(t)]
    read = [f"%{n}" for n in _find_names(node["inputs"]) if n.startswith(("p_", "b_"))]
    texts = {
        "name_scopes": str([*(p[1] for p in stack), name]),
        "class_hierarchy": str([*(p[2] for p in stack), op]),
        "fx_node": " ".join(read), "stack_trace": lines[-1] if lines else "",
    }  # fmt: skip
    pairs = tuple([(EXPORTER + key, text) for key, text in texts.items() if stack and text])
    path = f"{module}/{name}" if module else name
    return Source("pt2", op, path, _short(places), metadata=pairs)


def _short(places: Sequence[str]) -> str:
    """``net.py:12`` of the last line that is the user's."""
    if not places:
        return ""
    file, _, rest = places[-1].removeprefix("File ").partition(", line ")
    return f"{file.strip(chr(34)).rpartition('/')[2]}:{rest.partition(',')[0]}"
