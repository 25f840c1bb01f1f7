"""Reads an exported program as a graph of ATen operators."""

from __future__ import annotations

import json
import re
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any

from serde.errors import MalformedFile
from serde.ir.graph import DType, Graph, Node, Source, Value

from .functionalize import Functionalizer
from .io.archive import AGAIN, Archive, open_archive
from .io.weights import CONSTANTS, DTYPES, WEIGHTS, find_model, read_weights
from .operands import Operand, symbol_text

MAJOR = 8  # of the schema; PyTorch raises it where files of before cannot be read
BROKEN = (KeyError, TypeError, AttributeError, IndexError, ValueError, RecursionError)
CONSTANT_KINDS = {
    "parameter": "parameter_name", "buffer": "buffer_name",
    "tensor_constant": "tensor_constant_name",
}  # fmt: skip
MUTATIONS = {"buffer_mutation": "buffer_name", "user_input_mutation": "user_input_name",
             "parameter_mutation": "parameter_name"}  # fmt: skip
INTERNAL = re.compile(r'[/"]torch/')  # files of PyTorch itself
SYMBOLS = {"as_sym_int": DType.INT64, "as_sym_float": DType.FLOAT64, "as_sym_bool": DType.BOOL}
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
        tensors = {
            **read_weights(archive, name, WEIGHTS), **read_weights(archive, name, CONSTANTS),
        }  # fmt: skip
        try:
            return GraphReader(archive, program, tensors).read(name)
        except BROKEN as error:
            raise MalformedFile(path, f"no exported program: {type(error).__name__} {error}"
                                ) from error  # fmt: skip


class GraphReader:
    """Makes a graph of a program's JSON."""

    def __init__(
        self, archive: Archive, program: Mapping[str, Any], tensors: Mapping[str, Any]
    ) -> None:
        self.path, self.tensors = archive.path, tensors
        self.module = program["graph_module"]
        self.json = self.module["graph"]
        self.metas: Mapping[str, Any] = self.json["tensor_values"]
        self.inputs: list[Value] = []
        self.constants: dict[str, str] = {}  # names in the graph, and those of the weights
        self.labels: set[str] = set()  # of outputs, which no other value is called
        self.notes: list[str] = []
        self.state = Functionalizer(self._strides)

    def _strides(self, name: str) -> tuple[Sequence[Any], Sequence[Any]]:
        """The sizes and strides of a tensor, as far as they are numbers."""
        meta = self.metas[name]
        return tuple([[d.get("as_int") for d in meta[key]] for key in ("sizes", "strides")])  # type: ignore[return-value]

    def read(self, name: str) -> Graph:
        """The graph, called ``name``."""
        for spec in self.module["signature"]["input_specs"]:
            self._read_input(spec)
        self.labels = {*self.constants.values(), *self._output_names()}
        used = set(_find_names([[n["inputs"] for n in self.json["nodes"]], self.json["outputs"]]))
        for node in self.json["nodes"]:
            self._read_node(node, used)
        outputs = self._read_outputs()
        return Graph(
            name, tuple(self.inputs), tuple(outputs), tuple(self.state.nodes), "aten",
            notes=tuple(self.notes), files=frozenset({self.path}),
        )  # fmt: skip

    def _read_input(self, spec: Mapping[str, Any]) -> None:
        (kind, body), *_ = spec.items()
        if kind == "constant_input":
            self.notes.append(f"input {body['name']!r} is fixed to what it was at the export")
            return
        if kind == "user_input":
            (sort, arg), *_ = body["arg"].items()
            if sort in ("as_tensor", *SYMBOLS):
                key = _text(arg.get("name", arg.get("as_name")))
                value = self._value(key, sort)
                self.inputs.append(value)
                self.state.enter(key, value)
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
        value = Value(name, tensor.dtype, tensor.shape, tensor, name_is_original=True)
        self.state.enter(key, value)

    def _value(self, name: str, sort: str = "as_tensor") -> Value:
        """What the file says of a tensor, or of a number that is computed."""
        if sort != "as_tensor":
            return Value(name, SYMBOLS[sort], (1,))
        meta = self.metas[name]
        dtype = DTYPES.get(meta["dtype"])
        if dtype is None:
            raise MalformedFile(self.path, f"tensor {name!r} has an element type that is not read: "
                                "cast it before the export")  # fmt: skip
        sizes = [d["as_int"] if "as_int" in d else symbol_text(d) for d in meta["sizes"]]
        if any(isinstance(d, int) and d < 0 for d in sizes):
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
        inputs: list[Value | None] = []
        attrs = {_text(a["name"]): self._argument(a["arg"], inputs) for a in node["inputs"]}
        names = [_text(a.get("name", a.get("as_name"))) for _, a in outputs]
        values = [self._value(n, s) for n, (s, _) in zip(names, outputs, strict=True)]
        while len(names) > 1 and names[-1] not in used:
            names.pop(), values.pop()
        read = [(a["name"], _name_of(a["arg"])) for a in node["inputs"]]
        made = Node(op, tuple(inputs), tuple(values), attrs, "aten", source[0].name, source)
        self.state.add(made, read, names)

    def _argument(self, arg: Mapping[str, Any], inputs: list[Value | None]) -> Any:
        """An argument as an attribute, in which operands stand for values."""
        (kind, value), *_ = arg.items()
        if kind == "as_none":
            return None
        if kind in ("as_tensor", *SYMBOLS):
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
        if kind in ("as_graph", "as_custom_obj", "as_operator", "as_complex"):
            return kind
        return tuple(value) if isinstance(value, list) else _number(value)

    def _operand(self, arg: Mapping[str, Any], kind: str, inputs: list[Value | None]) -> Any:
        name = arg.get("name", arg.get("as_name"))
        if name is None:
            (plain,) = arg.values()
            return _number(plain)
        inputs.append(self.state.read(name))
        return Operand(len(inputs) - 1, kind != "as_tensor")

    def _read_outputs(self) -> list[Value]:
        names = self._output_names()
        outputs: list[Value] = []
        written = set()
        for spec in self.module["signature"]["output_specs"]:
            (kind, body), *_ = spec.items()
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
            outputs.append(self.state.name_output(name, label or name))
        for key, label in self.constants.items():
            if self.state.is_written(key) and label not in written:
                outputs.append(self.state.name_output(key, self._note_write(label)))
        for value in self.inputs:
            if self.state.is_written(value.name) and value.name not in written:
                label = self._note_write(value.name)
                outputs.append(self.state.name_output(value.name, label))
        return outputs

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
    if kind in ("as_tensor", *SYMBOLS):
        yield kind, value
    elif kind in ("as_tensors", "as_sym_ints"):
        for item in value:
            yield kind.removesuffix("s"), item
    elif kind == "as_optional_tensors":
        for item in value:
            yield from _flatten_outputs(item)
    elif kind != "as_none":
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


def _name_of(arg: Mapping[str, Any]) -> str | None:
    value = arg.get("as_tensor")
    return value["name"] if value else None


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
    """The user's module and line."""
    metadata = node.get("metadata") or {}
    stack = [part.split(",") for part in metadata.get("nn_module_stack", "").split(";")]
    module = next(
        (p[1] for p in reversed(stack) if len(p) > 2 and p[1] and p[2] and "." in p[2]), ""
    )
    name = node.get("name") or op
    lines = [t.strip() for t in metadata.get("stack_trace", "").splitlines()]
    places = [t for t in lines if t.startswith("File ") and not INTERNAL.search(t)]
    return Source("pt2", op, f"{module}/{name}" if module else name, _short(places))


def _short(places: Sequence[str]) -> str:
    """``net.py:12`` of the last line that is the user's."""
    if not places:
        return ""
    file, _, rest = places[-1].removeprefix("File ").partition(", line ")
    return f"{file.strip(chr(34)).rpartition('/')[2]}:{rest.partition(',')[0]}"
