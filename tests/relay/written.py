"""JSON as TVM's releases write it, made by hand for the tests."""

from __future__ import annotations

import json
from typing import Any

# 0.7 → 0.6
OLD_KEYS = {
    **{
        k: f"relay.{k}"
        for k in "Op TypeVar GlobalTypeVar TupleType FuncType TypeCall IncompleteType GlobalVar "
        "SourceName Span".split()
    },
    "IRModule": "relay.Module",
    "tir.Any": "Any",
    "tir.Var": "Variable",
    "Map": "StrMap",
}
NAMED = ("relay.Id", "GlobalVar", "TypeVar", "GlobalTypeVar", "relay.Constructor", "tir.Var")
ADDED = {  # fields by the release they came with
    (0, 8): {"IRModule": ("source_map", "attrs"), "IntImm": ("span",), "FloatImm": ("span",),
             "tir.Any": ("span",), "tir.Var": ("span",)},
    (0, 16): {"IRModule": ("global_infos",), "GlobalVar": ("struct_info_",)},
}  # fmt: skip


def table(*nodes: dict[str, Any], tvm: str = "0.17.0", root: int = 1, blobs: Any = ()) -> str:
    """The text of a node table; node 0 is added."""
    return json.dumps({
        "root": root, "nodes": [{"type_key": ""}, *nodes], "b64ndarrays": list(blobs),
        "attrs": {"tvm_version": tvm},
    })  # fmt: skip


def node(key: str, items: Any = None, /, **attrs: Any) -> dict[str, Any]:
    """One node; numbers are those of other nodes."""
    entry: dict[str, Any] = {"type_key": key}
    if attrs:
        entry["attrs"] = {k: str(v) for k, v in attrs.items()}
    return entry if items is None else entry | {"data": list(items)}


def string(text: str) -> dict[str, Any]:
    """A node that is a text."""
    return {"type_key": "runtime.String", "repr_str": text}


def downgrade(text: str, release: tuple[int, int], complete: bool = False) -> str:
    """JSON of TVM 0.17 as ``release`` would have written it, the attributes of operators apart.

    ``complete``: fields that came later are null, not missing, because TVM 0.17 wants them.
    """
    data = json.loads(text)
    nodes = data["nodes"]
    for entry in nodes:
        attrs = entry.get("attrs", {})
        for since, fields in ADDED.items():
            if release < since:
                for name in fields.get(entry["type_key"], ()):
                    attrs.pop(name, None)
                    attrs.update({name: "0"} if complete else {})
        if release < (0, 9):
            attrs.pop("virtual_device_", None)
        if release < (0, 7):
            _to_0_6(entry, nodes)
    data["attrs"]["tvm_version"] = f"{release[0]}.{release[1]}.0"
    return json.dumps(data)


def _to_0_6(entry: dict[str, Any], nodes: list[dict[str, Any]]) -> None:
    key, attrs = entry["type_key"], entry.get("attrs", {})
    if key in NAMED:
        name = "name" if key == "tir.Var" else "name_hint"
        attrs[name] = nodes[int(attrs[name])].get("repr_str", "")
        attrs.pop("type_annotation", None)
    if key in ("TypeVar", "GlobalTypeVar"):
        attrs.setdefault("span", "0")
        nodes.append(node("Variable", dtype="int32", name=attrs.pop("name_hint")))
        attrs["var"] = str(len(nodes) - 1)
    if key.startswith("relay.attrs."):  # every text in place
        for name, value in attrs.items():
            if value.isdigit() and nodes[int(value) % len(nodes)]["type_key"] == "runtime.String":
                kinds = ("layout", "mode", "method", "reduction")
                if name.endswith(kinds):
                    attrs[name] = nodes[int(value)].get("repr_str", "")
    if key == "relay.attrs.TopkAttrs":  # a number in place
        attrs["k"] = nodes[int(attrs["k"])]["attrs"]["value"]
    if key in ("Op", "SourceName"):
        entry["global_key"] = entry.pop("repr_str")
    if key != "Map" or "keys" in entry:
        entry["type_key"] = OLD_KEYS.get(key, key)
