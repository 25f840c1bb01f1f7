"""Relay modules as the JSON that ``tvm.ir.load_json`` of TVM 0.17 reads."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from typing import Any

from serde.errors import ConversionError

from .. import ast
from ..ast_walk import post_order
from .encoder import NULL, Encoder, Index


def to_json(module: ast.Module) -> str:
    """The JSON text of ``module``."""
    return "".join(stream_json(module))


def stream_metadata(entries: Mapping[str, Iterable[Any]]) -> Iterator[str]:
    """The metadata section of the text form: a map of lists."""
    encoder = _Encoder()
    lists = {
        key: encoder.add_array(map(encoder.add_value, items)) for key, items in entries.items()
    }
    return encoder.render(encoder.add_string_map(lists))


def stream_json(module: ast.Module) -> Iterator[str]:
    """The JSON text of ``module``, in pieces."""
    encoder = _Encoder()
    return encoder.render(encoder.add_module(module))


class _Encoder(Encoder):
    """Adds expressions, what they refer to before them, and modules."""

    def __init__(self) -> None:
        super().__init__()
        self._tags: dict[tuple[str, str], int] = {}

    def add_expr(self, root: ast.Expr) -> Index:
        known = self.known.get(id(root))
        if known is not None:
            return known
        for inner in post_order(root):
            self.add_by_identity(inner, lambda e=inner: self._add_expr(e))  # type: ignore[misc]
        return self.known[id(root)]

    def _index_of(self, expr: ast.Expr) -> Index:
        """The node of an expression that has been added."""
        return self.known[id(expr)]

    def _add_expr(self, e: ast.Expr) -> Index:
        if isinstance(e, ast.Op):
            return self.add_once(
                ("op", e.name), lambda: self.append({"type_key": "Op", "repr_str": e.name})
            )
        if isinstance(e, ast.Constructor):
            return self._add_constructor(e)
        if isinstance(e, ast.GlobalVar):
            return self.add_global_var(e.name, e.type)
        common = {
            "_checked_type_": self.add_type(e.type), "span": NULL,
            "virtual_device_": self.add_value(e.device or ast.VirtualDevice()),
        }  # fmt: skip
        if isinstance(e, ast.Var):
            vid = self._add_var_id(ast.VarId(e.name) if e.id is None else e.id)
            annotation = self.add_type(e.annotation)
            return self.add_node("relay.Var", vid=vid, type_annotation=annotation, **common)
        if isinstance(e, ast.Constant):
            self.tensors.append(e.tensor)
            return self.add_node("relay.Constant", data=str(len(self.tensors) - 1), **common)
        if isinstance(e, ast.Call):
            return self._add_call(e, common)
        if isinstance(e, ast.Function):
            attrs = self.add_dict_attrs(e.attrs)
            return self.add_node(
                "relay.Function", params=self._add_array(e.params), body=self._index_of(e.body),
                attrs=attrs, ret_type=self.add_type(e.ret_type),
                type_params=self.add_types(e.type_params), **common,
            )  # fmt: skip
        if isinstance(e, ast.Match):
            return self._add_match(e, common)
        if isinstance(e, ast.TupleGetItem):
            of = self._index_of(e.tuple)
            return self.add_node("relay.TupleGetItem", tuple_value=of, index=str(e.index), **common)
        return self.add_by_layout(e, **common)

    def _add_var_id(self, shared: ast.VarId) -> Index:
        name = self.add_string(shared.name)
        return self.add_by_identity(shared, lambda: self.add_node("relay.Id", name_hint=name))

    def _add_array(self, exprs: Iterable[ast.Expr]) -> Index:
        return self.add_array([self._index_of(e) for e in exprs])

    def _add_call(self, e: ast.Call, common: dict[str, Index]) -> Index:
        try:
            attrs = NULL if e.attrs is None else self.add_attrs(e.attrs, e.args)
        except ConversionError as error:
            name = getattr(e.op, "name", "a function")
            where = f" (line {e.span.line})" if e.span else ""
            raise ConversionError(f"call of {name}{where}: {error}") from None
        return self.add_node(
            "relay.Call", op=self._index_of(e.op), args=self._add_array(e.args), attrs=attrs,
            type_args=self.add_types(e.type_args), **common,
        )  # fmt: skip

    def _add_match(self, e: ast.Match, common: dict[str, Index]) -> Index:
        clauses = self.add_array([self.add_by_layout(c) for c in e.clauses])
        complete = str(int(e.complete))
        return self.add_node(
            "relay.Match", data=self._index_of(e.data), clauses=clauses, complete=complete, **common
        )

    def _add_constructor(self, c: ast.Constructor) -> Index:
        def make() -> Index:
            tag = c.tag if c.tag is not None else self._tags.get((c.of, c.name), 0)
            return self.add_node(
                "relay.Constructor", _checked_type_=NULL, belong_to=self.add_global_type(c.of),
                inputs=self.add_types(c.inputs), name_hint=self.add_string(c.name), span=NULL,
                tag=str(tag),
            )  # fmt: skip

        return self.add_once(("constructor", c.of, c.name), make)

    # Modules

    def add_global_var(self, name: str, type_: ast.Type | None = None) -> Index:
        """The name of a function."""
        return self.add_once(
            ("function", name),
            lambda: self.add_node(
                "GlobalVar", _checked_type_=self.add_type(type_), name_hint=self.add_string(name),
                span=NULL, struct_info_=NULL, virtual_device_=NULL,
            ),
        )  # fmt: skip

    def add_module(self, module: ast.Module) -> Index:
        """A module; its root."""
        for prefix, type_ in enumerate(module.types.values(), 1):
            for number, constructor in enumerate(type_.constructors):
                self._tags[type_.name, constructor.name] = prefix << 24 | number
        names = {n: self.add_global_var(n, f.type) for n, f in module.functions.items()}
        functions = [(names[n], self.add_expr(f)) for n, f in module.functions.items()]
        types = [(self.add_global_type(n), self._add_type_def(t)) for n, t in module.types.items()]
        type_names = {n: self.add_global_type(n) for n in module.types}
        return self.add_node(
            "IRModule", attrs=self.add_dict_attrs(module.attrs),
            functions=self.add_object_map(functions), global_infos=self.add_string_map({}),
            global_var_map_=self.add_string_map(names),
            global_type_var_map_=self.add_string_map(type_names),
            source_map=self.add_node("SourceMap", source_map=self.add_string_map({})),
            type_definitions=self.add_object_map(types),
        )  # fmt: skip

    def _add_type_def(self, t: ast.TypeDef) -> Index:
        return self.add_node(
            "relay.TypeData", header=self.add_global_type(t.name),
            type_vars=self.add_types(t.type_params),
            constructors=self.add_array([self._add_constructor(c) for c in t.constructors]),
            span=NULL,
        )  # fmt: skip
