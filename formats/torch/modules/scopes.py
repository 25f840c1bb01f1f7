"""The modules that a layer was in, by what the exporter of its file wrote of it.

Exporters of PyTorch name nodes ``/layer1/layer1.0/conv1/Conv``, or write the modules around a node
and their classes into its metadata. Gluon begins the names of a block's layers with its own:
``stage1_conv0_fwd``.
"""

from __future__ import annotations

import re
from collections.abc import Collection, Mapping, Sequence
from typing import NamedTuple

from serde.ir.graph import Graph, Node, Source
from serde.spec.weight_origins import names_in, origins_of

Path = tuple[str, ...]
KEY = "pkg.torch.onnx."  # begins the metadata of PyTorch's exporter
SIGNATURE = "ExportedProgram.graph_signature"  # ends the name of that of the whole model
KEYS = re.compile(r"^(\w+): (?:PARAMETER|BUFFER) target='([^'\n]*)'(?! persistent=False)", re.M)
TEXT = re.compile(r"'([^']*)'")
NUMBER = re.compile(r"_\d+$")  # of a module that is called again, behind its name
CALLS = re.compile(r"(?:@\d+)$")  # of a module, after the first
INDEXED = re.compile(r"aten\.index\.Tensor\]\(args = \(%(p_\w+), \[%")
BLOCKS = re.compile(r"(?<=[A-Za-z]\d)_+|(?<=[A-Za-z]\d\d)_+|[/.]")  # between them in names
PARAMETER = re.compile(r"%([pb]_\w+)")
OPERAND = re.compile(r"%(\w+)")
# Names of arrays that an exporter made up: what it computed while it exported.
NAME = re.compile(r"[A-Za-z_]\w*(?:\.[\w-]+)*|\d+(?:\.[\w-]+)+", re.ASCII)
CONSTANT = re.compile(r"val_\d+|(.*\.)?lifted_tensor_\d+")  # that PyTorch's exporter makes up
UNNAMED = re.compile(rf"onnx::|/|\d+$|.*_output_\d+$|({CONSTANT.pattern})$")


class Scope(NamedTuple):
    """Where a layer was: the modules that were called around it, the innermost last.

    ``parameters`` are the arrays that it read, with letters that names lack as ``_``.
    """

    modules: tuple[Path, ...]
    classes: Mapping[Path, str]
    parameters: tuple[str, ...] = ()
    text: str = ""
    line: str = ""  # of the source, that calls the layer

    @property
    def operands(self) -> frozenset[str]:
        """What the exporter calls the values that the call around the layer reads."""
        return frozenset(OPERAND.findall(self.text.partition("](args = ")[2]))

    def find_indexed(self) -> str | None:
        """What the exporter calls the array that the layer looks rows up in."""
        match = INDEXED.search(self.text)
        return None if match is None else match[1]

    def is_call_of(self, op: str) -> bool:
        """Whether the innermost module is of the class ``nn.Linear``, if that is ``op``."""
        return self.classes.get(self.path, "").endswith(f".{op[3:]}") if self.modules else False

    @property
    def class_name(self) -> str:
        """The class of the innermost module; "" where that is not told."""
        return self.classes.get(self.path, "")

    @property
    def path(self) -> Path:
        """The innermost module; () for the model itself."""
        return self.modules[-1] if self.modules else ()


def find_scopes(graph: Graph) -> dict[Node, Scope]:
    """The scopes of nodes of a model of PyTorch; none of others."""
    names = [n.sources[0].name for n in graph.nodes if n.sources]
    has_paths = sum(name.startswith("/") for name in names) * 2 > len(names)
    keys = list_keys(graph) if has_paths else ()
    known = frozenset(prefix for key in keys for prefix in _list_prefixes(key))
    scopes: dict[Node, Scope] = {}
    for node in graph.nodes:
        for source in node.sources:
            scope = _read_metadata(source)
            if scope is None and has_paths and source.name.startswith("/"):
                scope = Scope(tuple(find_paths(source.name, known)), {})
            if scope is not None:
                scopes[node] = scope
                break
    return scopes


def read_signature(graph: Graph) -> dict[str, str]:
    """The keys of the checkpoint by the names that PyTorch's exporter gives their arrays."""
    texts = [text for key, text in graph.metadata.items() if key.endswith(SIGNATURE)]
    return dict(KEYS.findall("\n".join(texts)))


def _list_prefixes(key: str) -> list[Path]:
    parts = key.split(".")
    return [tuple(parts[:end]) for end in range(1, len(parts))]


def list_keys(graph: Graph) -> set[str]:
    """Names of the source's arrays that may be keys of the ``state_dict`` of its checkpoint."""
    names: set[str] = set()
    for value in graph.constants():
        tensor = value.tensor
        if tensor is not None and value.name_is_original:
            names.add(value.name)
        if tensor is not None and origins_of(value):
            names.update(names_in(origins_of(value), 0, tensor.size))
    return {name for name in names if is_key(name)}


def is_exporters_constant(name: str) -> bool:
    """Whether PyTorch's exporter made up an array of such a name: the module has none."""
    return CONSTANT.fullmatch(name) is not None


def is_key(name: str) -> bool:
    """Whether a name may be that of a parameter in a module."""
    return UNNAMED.match(name) is None and NAME.fullmatch(name) is not None


def _read_metadata(source: Source) -> Scope | None:
    """The scope that PyTorch's exporter wrote of a node."""
    if not source.metadata:
        return None
    texts = dict(source.metadata)
    names = TEXT.findall(texts.get(f"{KEY}name_scopes", ""))
    if not names:
        return None
    classes = TEXT.findall(texts.get(f"{KEY}class_hierarchy", ""))
    around = [CALLS.sub("", name) for name in names[:-1] if not name.startswith("_empty_nn_module")]
    paths = [tuple(name.split(".")) if name else () for name in around]
    by_path = dict(zip(paths, classes, strict=False))
    text = texts.get(f"{KEY}fx_node", "") + texts.get("pkg.onnxscript.rewriter.rule_name", "")
    line = texts.get(f"{KEY}stack_trace", "").rpartition("\n")[2]
    parameters = tuple(PARAMETER.findall(text))
    return Scope(tuple(p for p in paths if p), by_path, parameters, text, line)


def find_paths(name: str, known: Collection[Path] = ()) -> list[Path]:
    """The modules around a node of a PyTorch export by its name: ``/a/a.0/conv/Conv``.

    A module in a list is named with the list, as is one in a module that is called itself. One
    that is called again has a number behind its name. ``known`` are modules that parameters are in,
    which tell those cases apart.
    """
    paths: list[Path] = []
    path: Path = ()
    for part in filter(None, name.split("/")[:-1]):
        path = _extend(path, tuple(part.split(".")), known)
        paths.append(path)
    return paths


def _extend(path: Path, part: Path, known: Collection[Path]) -> Path:
    kept = len(path) - len(part) + 1
    is_inside = len(part) > 1 and kept >= 0 and path[kept:] == part[:-1]
    inner, usual = (*path, *part), (*path[:kept], *part) if is_inside else (*path, *part)
    if inner in known or usual in known:
        return inner if inner in known else usual
    first_call = (*part[:-1], NUMBER.sub("", part[-1]))
    if first_call != part and (called := _extend(path, first_call, known)) in known:
        return called
    # A module whose own forward is not called is left out.
    end = len(path)
    longer = [k for k in known if len(k) == len(inner) + 1 and k[:end] == path
              and k[end + 1 :] == part and not k[end].isdigit()]  # fmt: skip
    return min(longer, default=usual)


def split_name(name: str) -> Path:
    """The blocks that a layer is in, and its own name: ``stage1_conv0`` is in ``stage1``."""
    return tuple(filter(None, BLOCKS.split(name))) or ("layer",)


def find_class(path: Path, classes: Mapping[Path, str]) -> str:
    """What a person would call the class of a module: as its source does, or after its place."""
    name = classes.get(path, "").rpartition(".")[2]
    if name and name not in ("Sequential", "ModuleList"):
        return name
    words: Sequence[str] = [p for p in path if not p.isdigit()]
    last = re.sub(r"_?\d+$", "", words[-1]) if words else ""
    is_one_of_many = path[-1].isdigit() and last.endswith("s") and not last.endswith("ss")
    return (last[:-1] if is_one_of_many else last) or "Block"
