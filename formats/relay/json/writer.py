"""Relay modules as the JSON that ``tvm.ir.load_json`` of TVM 0.17 reads."""

from __future__ import annotations

import os
from collections.abc import Iterable, Iterator, Mapping
from typing import Any

from serde.errors import ConversionError
from serde.io.atomic_write import Replacing

from .. import ast
from ..ast_walk import operands, post_order
from .encoder import NULL, Encoder, Index


def write_json(module: ast.Module, path: str | os.PathLike[str]) -> list[str]:
    """Write ``module`` to ``path``; return the files made."""
    path = os.fspath(path)
    with Replacing(path) as files, files.open(path) as out:
        for piece in module_json(module):
            out.write(piece.encode())
    return files.written


def to_json(module: ast.Module) -> str:
    """The JSON text of ``module``."""
    return "".join(module_json(module))


def metadata_json(entries: Mapping[str, Iterable[Any]]) -> Iterator[str]:
    """The metadata section of the text form: a map of lists."""
    encoder = _Encoder()
    lists = {key: encoder.array(map(encoder.value, items)) for key, items in entries.items()}
    return encoder.text(encoder.string_map(lists))


def module_json(module: ast.Module) -> Iterator[str]:
    """The JSON text of ``module``, in pieces."""
    encoder = _Encoder()
    return encoder.text(encoder.module(module))


class _Encoder(Encoder):
    """Adds expressions, what they refer to before them, and modules."""

    def __init__(self) -> None:
        super().__init__()
        self._tags: dict[tuple[str, str], int] = {}

    def expr(self, root: ast.Expr) -> Index:
        known = self.known.get(id(root))
        if known is not None:
            return known
        for inner in post_order(root):
            self.by_identity(inner, lambda e=inner: self._expr(e))  # type: ignore[misc]
        return self.known[id(root)]

    def _of(self, expr: ast.Expr) -> Index:
        """The node of an expression that has been added."""
        return self.known[id(expr)]

    def _expr(self, e: ast.Expr) -> Index:
        if isinstance(e, ast.Op):
            return self.once(
                ("op", e.name), lambda: self.add({"type_key": "Op", "repr_str": e.name})
            )
        if isinstance(e, ast.Constructor):
            return self._constructor(e)
        if isinstance(e, ast.GlobalVar):
            return self.global_var(e.name, e.type)
        common = {
            "_checked_type_": self.type(e.type), "span": NULL,
            "virtual_device_": self.value(e.device or ast.VirtualDevice()),
        }  # fmt: skip
        if isinstance(e, ast.Var):
            vid = self._var_id(ast.VarId(e.name) if e.id is None else e.id)
            annotation = self.type(e.annotation)
            return self.node("relay.Var", vid=vid, type_annotation=annotation, **common)
        if isinstance(e, ast.Constant):
            self.tensors.append(e.tensor)
            return self.node("relay.Constant", data=str(len(self.tensors) - 1), **common)
        if isinstance(e, ast.Call):
            return self._call(e, common)
        if isinstance(e, ast.Function):
            attrs = self.dict_attrs(e.attrs)
            return self.node(
                "relay.Function", params=self._array(e.params), body=self._of(e.body), attrs=attrs,
                ret_type=self.type(e.ret_type), type_params=self.types(e.type_params), **common,
            )  # fmt: skip
        if isinstance(e, ast.Match):
            return self._match(e, common)
        if isinstance(e, ast.Tuple):
            return self.node("relay.Tuple", fields=self._array(e.fields), **common)
        if isinstance(e, ast.TupleGetItem):
            of = self._of(e.tuple)
            return self.node("relay.TupleGetItem", tuple_value=of, index=str(e.index), **common)
        key, names = _FIELDS[type(e)]
        inside = {n: self._of(o) for n, o in zip(names, operands(e), strict=True)}
        return self.node(key, **inside, **common)

    def _var_id(self, shared: ast.VarId) -> Index:
        name = self.string(shared.name)
        return self.by_identity(shared, lambda: self.node("relay.Id", name_hint=name))

    def _array(self, exprs: Iterable[ast.Expr]) -> Index:
        return self.array([self._of(e) for e in exprs])

    def _call(self, e: ast.Call, common: dict[str, Index]) -> Index:
        try:
            attrs = NULL if e.attrs is None else self.attrs(e.attrs, e.args)
        except ConversionError as error:
            name = getattr(e.op, "name", "a function")
            where = f" (line {e.span.line})" if e.span else ""
            raise ConversionError(f"call of {name}{where}: {error}") from None
        return self.node(
            "relay.Call", op=self._of(e.op), args=self._array(e.args), attrs=attrs,
            type_args=self.types(e.type_args), **common,
        )  # fmt: skip

    def _match(self, e: ast.Match, common: dict[str, Index]) -> Index:
        clauses = self.array([
            self.node("relay.Clause", lhs=self._pattern(c.pattern), rhs=self._of(c.body))
            for c in e.clauses
        ])  # fmt: skip
        complete = str(int(e.complete))
        return self.node(
            "relay.Match", data=self._of(e.data), clauses=clauses, complete=complete, **common
        )

    def _pattern(self, p: ast.Pattern) -> Index:
        if isinstance(p, ast.PatternWildcard):
            return self.node("relay.PatternWildcard", span=NULL)
        if isinstance(p, ast.PatternVar):
            return self.node("relay.PatternVar", span=NULL, var=self.expr(p.var))
        inside = self.array([self._pattern(q) for q in p.patterns])
        if isinstance(p, ast.PatternTuple):
            return self.node("relay.PatternTuple", patterns=inside, span=NULL)
        made = self._constructor(p.constructor)
        return self.node("relay.PatternConstructor", constructor=made, patterns=inside, span=NULL)

    def _constructor(self, c: ast.Constructor) -> Index:
        def make() -> Index:
            tag = c.tag if c.tag is not None else self._tags.get((c.of, c.name), 0)
            return self.node(
                "relay.Constructor", _checked_type_=NULL, belong_to=self.global_type(c.of),
                inputs=self.types(c.inputs), name_hint=self.string(c.name), span=NULL, tag=str(tag),
            )  # fmt: skip

        return self.once(("constructor", c.of, c.name), make)

    # Modules

    def global_var(self, name: str, type_: ast.Type | None = None) -> Index:
        """The name of a function."""
        return self.once(
            ("function", name),
            lambda: self.node(
                "GlobalVar", _checked_type_=self.type(type_), name_hint=self.string(name),
                span=NULL, struct_info_=NULL, virtual_device_=NULL,
            ),
        )  # fmt: skip

    def module(self, module: ast.Module) -> Index:
        """A module; its root."""
        for prefix, type_ in enumerate(module.types.values(), 1):
            for number, made in enumerate(type_.constructors):
                self._tags[type_.name, made.name] = prefix << 24 | number
        names = {n: self.global_var(n, f.type) for n, f in module.functions.items()}
        functions = [(names[n], self.expr(f)) for n, f in module.functions.items()]
        types = [(self.global_type(n), self._type_def(t)) for n, t in module.types.items()]
        return self.node(
            "IRModule", attrs=self.dict_attrs(module.attrs), functions=self.object_map(functions),
            global_infos=self.string_map({}), global_var_map_=self.string_map(names),
            global_type_var_map_=self.string_map({n: self.global_type(n) for n in module.types}),
            source_map=self.node("SourceMap", source_map=self.string_map({})),
            type_definitions=self.object_map(types),
        )  # fmt: skip

    def _type_def(self, t: ast.TypeDef) -> Index:
        return self.node(
            "relay.TypeData", header=self.global_type(t.name), type_vars=self.types(t.type_params),
            constructors=self.array([self._constructor(c) for c in t.constructors]), span=NULL,
        )  # fmt: skip


_FIELDS: dict[type[ast.Expr], tuple[str, tuple[str, ...]]] = {
    ast.Let: ("relay.Let", ("var", "value", "body")),
    ast.If: ("relay.If", ("cond", "true_branch", "false_branch")),
    ast.RefCreate: ("relay.RefCreate", ("value",)),
    ast.RefRead: ("relay.RefRead", ("ref",)),
    ast.RefWrite: ("relay.RefWrite", ("ref", "value")),
}
