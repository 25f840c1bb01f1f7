"""Statements that declare the arrays of a module."""

from __future__ import annotations

import ast

from serde.ir.graph import Value

from ..source.printer import BODY, WIDTH, print_expression
from ..source.trees import dtype_option, list_elements, literal, spell_name

MOST_LISTED = 16  # elements of a constant that are in the source


def _allocate(value: Value) -> ast.Call:
    shape = literal(tuple(value.static_shape))
    return ast.Call(spell_name("torch.empty"), [shape], dtype_option(value))


def register_buffer(name: str, value: Value, is_constant: bool) -> ast.stmt:
    """The statement that makes an array a buffer; a constant is in no ``state_dict``."""
    array: ast.expr = _allocate(value)
    if is_constant and value.tensor is not None and value.tensor.size <= MOST_LISTED:
        array = list_elements(value)
    options = [ast.keyword("persistent", ast.Constant(False))] if is_constant else []
    register = spell_name("self.register_buffer")
    return ast.Expr(ast.Call(register, [ast.Constant(name), array], options))


def set_parameter(name: str, value: Value) -> ast.stmt:
    """The statement that makes an array a parameter; those of a ParameterList have numbers."""
    call = ast.Call(spell_name("nn.Parameter"), [_allocate(value)], [])
    if name.isidentifier():
        return ast.Assign([ast.Attribute(ast.Name("self"), name)], call)
    register = spell_name("self.register_parameter")
    return ast.Expr(ast.Call(register, [ast.Constant(name), call], []))


def shorten_tie(target: ast.expr, value: ast.expr) -> list[ast.stmt]:
    """The statements that let one array be another, their modules in variables where it is long."""
    ends = [target, value]
    statements: list[ast.stmt] = []
    if sum(len(print_expression(e)) for e in ends) + len(BODY) + len(" = ") > WIDTH:
        for at, name in enumerate(("again", "first")):
            end = ends[at]
            if isinstance(end, ast.Attribute):
                statements.append(ast.Assign([ast.Name(name)], end.value))
                ends[at] = ast.Attribute(ast.Name(name), end.attr)
    return [*statements, ast.Assign([ends[0]], ends[1])]
