"""Prints statements as source: trees of Python's own ``ast``, in the style of ``ruff format``.

Strings of a file are never pasted into code: they are constants and names of a tree, which the
printer quotes and ``names.py`` makes identifiers of.
"""

from __future__ import annotations

import ast
from collections.abc import Callable, Sequence
from typing import Any

WIDTH, INDENT = 88, "    "
BODY = 2 * INDENT  # of a method
PRECEDENCE: dict[type, int] = {
    ast.BitOr: 4, ast.BitXor: 5, ast.BitAnd: 6, ast.LShift: 7, ast.RShift: 7, ast.Add: 8,
    ast.Sub: 8, ast.Mult: 9, ast.Div: 9, ast.FloorDiv: 9, ast.Mod: 9, ast.MatMult: 9,
}  # fmt: skip
CHOICE, COMPARISON, UNARY, ATOM = 1, 3, 10, 12
SIGNS: dict[type, str] = {
    ast.BitOr: "|", ast.BitXor: "^", ast.BitAnd: "&", ast.LShift: "<<", ast.RShift: ">>",
    ast.Add: "+", ast.Sub: "-", ast.Mult: "*", ast.Div: "/", ast.FloorDiv: "//", ast.Mod: "%",
    ast.MatMult: "@", ast.Eq: "==", ast.NotEq: "!=", ast.Lt: "<", ast.LtE: "<=", ast.Gt: ">",
    ast.GtE: ">=", ast.USub: "-", ast.Invert: "~", ast.Not: "not ",
}  # fmt: skip
ESCAPES = {"\\": "\\\\", '"': '\\"', "\n": "\\n", "\r": "\\r", "\t": "\\t"}


def print_expression(tree: ast.expr) -> str:
    """An expression on one line."""
    return _print(tree)[0]


def _print(tree: ast.expr) -> tuple[str, int]:
    """An expression and how tightly its outermost operator binds."""
    printer = PRINTERS.get(type(tree))
    if printer is None:
        raise TypeError(f"the printer has no {type(tree).__name__}")
    return printer(tree)


def _print_attribute(tree: ast.Attribute) -> tuple[str, int]:
    value = tree.value
    base = value.id if type(value) is ast.Name else _print_atom(value)
    return f"{base}.{tree.attr}", ATOM


def _print_call(tree: ast.Call) -> tuple[str, int]:
    return f"{_print_atom(tree.func)}({', '.join(map(_print_part, _parts(tree)))})", ATOM


def _print_subscript(tree: ast.Subscript) -> tuple[str, int]:
    index = tree.slice
    items = index.elts if isinstance(index, ast.Tuple) and index.elts else [index]
    shown = ", ".join(map(_print_index, items))
    comma = "," if isinstance(index, ast.Tuple) and len(index.elts) == 1 else ""
    return f"{_print_atom(tree.value)}[{shown}{comma}]", ATOM


def _print_tuple(tree: ast.Tuple) -> tuple[str, int]:
    comma = "," if len(tree.elts) == 1 else ""
    return f"({', '.join(map(print_expression, tree.elts))}{comma})", ATOM


def _print_infix(tree: ast.BinOp) -> tuple[str, int]:
    level = PRECEDENCE[type(tree.op)]
    sides = _print_at(tree.left, level), _print_at(tree.right, level + 1)
    return f" {SIGNS[type(tree.op)]} ".join(sides), level


def _print_comparison(tree: ast.Compare) -> tuple[str, int]:
    (sign,), (right,) = tree.ops, tree.comparators
    sides = _print_at(tree.left, COMPARISON + 1), _print_at(right, COMPARISON + 1)
    return f" {SIGNS[type(sign)]} ".join(sides), COMPARISON


def _print_choice(tree: ast.IfExp) -> tuple[str, int]:
    yes, test = (_print_at(part, CHOICE + 1) for part in (tree.body, tree.test))
    return f"{yes} if {test} else {_print_at(tree.orelse, CHOICE)}", CHOICE


PRINTERS: dict[type, Callable[[Any], tuple[str, int]]] = {
    ast.Name: lambda tree: (tree.id, ATOM),
    ast.Constant: lambda tree: _print_constant(tree.value),
    ast.Attribute: _print_attribute,
    ast.Call: _print_call,
    ast.Subscript: _print_subscript,
    ast.Tuple: _print_tuple,
    ast.List: lambda tree: (f"[{', '.join(map(print_expression, tree.elts))}]", ATOM),
    ast.Starred: lambda tree: (f"*{_print_atom(tree.value)}", ATOM),
    ast.UnaryOp: lambda tree: (f"{SIGNS[type(tree.op)]}{_print_at(tree.operand, UNARY)}", UNARY),
    ast.BinOp: _print_infix,
    ast.Compare: _print_comparison,
    ast.IfExp: _print_choice,
}


def _print_at(tree: ast.expr, level: int) -> str:
    """An operand, in parentheses where it binds less tightly than its operator."""
    text, binding = _print(tree)
    return text if binding >= level else f"({text})"


def _print_atom(tree: ast.expr) -> str:
    text, binding = _print(tree)
    is_number = isinstance(tree, ast.Constant) and isinstance(tree.value, (int, float))
    return text if binding >= ATOM and not is_number else f"({text})"


def _print_constant(value: object) -> tuple[str, int]:
    if isinstance(value, str):
        return quote(value), ATOM
    if isinstance(value, float) and value != value:
        return 'float("nan")', ATOM
    if isinstance(value, float) and value in (float("inf"), float("-inf")):
        return f'float("{value}")', ATOM
    if value is Ellipsis:
        return "...", ATOM
    text = repr(value).replace("e+", "e")
    return text, UNARY if text.startswith("-") else ATOM


def quote(text: str) -> str:
    """A string literal of ASCII, in double quotes but for text that has those only."""
    mark = "'" if '"' in text and "'" not in text else '"'
    return mark + "".join(_escape(c, mark) for c in text) + mark


def _escape(letter: str, mark: str) -> str:
    if letter in ESCAPES and letter not in "'\"":
        return ESCAPES[letter]
    if letter == mark:
        return "\\" + letter
    if " " <= letter <= "~":
        return letter
    code = ord(letter)
    return (
        f"\\x{code:02x}" if code < 256 else f"\\u{code:04x}" if code < 65536 else f"\\U{code:08x}"
    )


def _print_index(tree: ast.expr) -> str:
    if not isinstance(tree, ast.Slice):
        return print_expression(tree)
    ends = (
        [tree.lower, tree.upper, tree.step] if tree.step is not None else [tree.lower, tree.upper]
    )
    is_complex = any(not _is_simple_end(e) for e in ends if e is not None)
    shown = ["" if e is None else print_expression(e) for e in ends]
    if not is_complex:
        return ":".join(shown)
    text = shown[0]
    for end in shown[1:]:
        text += (" :" if text and not text.endswith(":") else ":") + (f" {end}" if end else "")
    return text


def _is_simple_end(tree: ast.expr) -> bool:
    """Whether formatters put no spaces around the colon beside it."""
    if isinstance(tree, ast.UnaryOp):
        tree = tree.operand
    return isinstance(tree, (ast.Name, ast.Constant))


def _parts(call: ast.Call) -> list[ast.expr | ast.keyword]:
    return [*call.args, *call.keywords]


def _print_part(part: ast.expr | ast.keyword) -> str:
    if isinstance(part, ast.keyword):
        return f"{part.arg}={print_expression(part.value)}"
    return print_expression(part)


def print_statement(statement: ast.stmt, indent: str) -> list[str]:
    """The lines of a statement, wrapped at 88 columns."""
    inner = indent + INDENT
    match statement:
        case ast.Assign(targets=[target], value=value):
            lines = _wrap(f"{indent}{_print_bare(target)} = ", value, indent)
            if len(lines[0]) <= WIDTH or not isinstance(target, ast.Tuple):
                return lines
            names = [f"{indent}{INDENT}{print_expression(e)}," for e in target.elts]
            return [f"{indent}(", *names, *_wrap(f"{indent}) = ", value, indent)]
        case ast.If(test=test, body=body, orelse=other):
            lines = [*_wrap(f"{indent}if ", test, indent, ":"), *print_block(body, inner)]
            return [*lines, *([f"{indent}else:", *print_block(other, inner)] if other else [])]
        case ast.For(target=target, iter=over, body=body):
            head = f"{indent}for {print_expression(target)} in "
            return [*_wrap(head, over, indent, ":"), *print_block(body, inner)]
        case ast.While(test=test, body=body):
            return [*_wrap(f"{indent}while ", test, indent, ":"), *print_block(body, inner)]
        case ast.FunctionDef(name=name, args=arguments, body=body):
            signature = print_signature(name, [a.arg for a in arguments.args], indent)
            return [*signature, *print_block(body, inner)]
        case ast.Break() | ast.Pass():
            return [f"{indent}{type(statement).__name__.lower()}"]
        case ast.Return(value=None):
            return [f"{indent}return"]
        case ast.Return(value=ast.expr() as value):
            return _wrap(f"{indent}return ", value, indent)
        case ast.Expr(value=value):
            return _wrap(indent, value, indent)
    raise TypeError(f"the printer has no {type(statement).__name__}")


def print_block(statements: Sequence[ast.stmt], indent: str) -> list[str]:
    """The lines of statements, with empty ones around functions."""
    lines: list[str] = []
    for at, statement in enumerate(statements):
        around = statements[max(at - 1, 0) : at + 1]
        if at and any(isinstance(s, ast.FunctionDef) for s in around):
            lines.append("")
        lines += print_statement(statement, indent)
    return lines


def print_signature(name: str, inputs: Sequence[str], indent: str, result: str = "") -> list[str]:
    """The head of a function."""
    line = f"{indent}def {name}({', '.join(inputs)}){result}:"
    if len(line) <= WIDTH:
        return [line]
    inner = indent + INDENT
    whole = inner + ", ".join(inputs)
    listed = [whole] if len(whole) <= WIDTH else [f"{inner}{n}," for n in inputs]
    return [f"{indent}def {name}(", *listed, f"{indent}){result}:"]


def _print_bare(tree: ast.expr) -> str:
    """A target, of several without parentheses."""
    if isinstance(tree, ast.Tuple) and len(tree.elts) > 1:
        return ", ".join(map(print_expression, tree.elts))
    return print_expression(tree)


def _wrap(lead: str, tree: ast.expr, indent: str, tail: str = "") -> list[str]:
    """``lead`` and an expression, on one line or with what is in its last brackets below it."""
    is_return = isinstance(tree, ast.Tuple) and lead.endswith("return ") and len(tree.elts) > 1
    line = lead + (_print_bare(tree) if is_return else print_expression(tree)) + tail
    if len(line) <= WIDTH:
        return [line]
    lines = _split(lead, tree, indent, tail) or [line]
    if len(lines[0]) > WIDTH and lead.endswith((" = ", "return ")):
        return [f"{lead}(", *_wrap(indent + INDENT, tree, indent + INDENT), f"{indent})"]
    return lines


def _split(lead: str, tree: ast.expr, indent: str, tail: str) -> list[str] | None:
    match tree:
        case ast.Call(func=func) if _parts(tree):
            head, parts, ends = f"{_print_atom(func)}(", _parts(tree), ")"
        case ast.Tuple(elts=items) if items:
            head, parts, ends = "(", list(items), ")"
        case ast.List(elts=items) if items:
            head, parts, ends = "[", list(items), "]"
        case ast.Subscript(value=value, slice=index):
            items = index.elts if isinstance(index, ast.Tuple) else [index]
            head, parts, ends = f"{_print_atom(value)}[", list(items), "]"
        case ast.BinOp() | ast.Compare() if not tail:
            return _split_infix(lead, tree, indent)
        case _:
            return None
    inner = indent + INDENT
    shown = [_print_index(p) if isinstance(p, ast.Slice) else _print_part(p) for p in parts]
    body = inner + ", ".join(shown)
    one_comma = isinstance(tree, ast.Tuple) and len(parts) == 1
    if len(body) <= WIDTH and not one_comma:
        return [f"{lead}{head}", body, f"{indent}{ends}{tail}"]
    lines = [f"{lead}{head}"]
    for part in parts:
        lines += _wrap_part(part, inner)
    return [*lines, f"{indent}{ends}{tail}"]


def _wrap_part(part: ast.expr | ast.keyword, indent: str) -> list[str]:
    if isinstance(part, ast.keyword):
        return _wrap(f"{indent}{part.arg}=", part.value, indent, ",")
    if isinstance(part, ast.Slice):
        return [f"{indent}{_print_index(part)},"]
    return _wrap(indent, part, indent, ",")


def _split_infix(lead: str, tree: ast.expr, indent: str) -> list[str]:
    """A long sum or comparison: an operand a line, in parentheses."""
    inner = indent + INDENT
    whole = inner + print_expression(tree)
    if len(whole) <= WIDTH:
        return [f"{lead}(", whole, f"{indent})"]
    lines: list[str] = []
    for sign, operand, level in _operands(tree):
        start = f"{inner}{sign} " if sign else inner
        text = _print_at(operand, level)
        one_line = f"{start}{text}"
        lines += [one_line] if len(one_line) <= WIDTH else _wrap(start, operand, inner)
    return [f"{lead}(", *lines, f"{indent})"]


def _operands(tree: ast.expr) -> Sequence[tuple[str, ast.expr, int]]:
    """The operands of a chain of operators that bind alike, each with the sign before it."""
    if isinstance(tree, ast.Compare):
        level = COMPARISON + 1
        sign = SIGNS[type(tree.ops[0])]
        return [("", tree.left, level), (sign, tree.comparators[0], level)]
    assert isinstance(tree, ast.BinOp)
    level = PRECEDENCE[type(tree.op)]
    left = tree.left
    is_chain = isinstance(left, ast.BinOp) and PRECEDENCE[type(left.op)] == level
    before = _operands(left) if is_chain else [("", left, level)]
    return [*before, (SIGNS[type(tree.op)], tree.right, level + 1)]
