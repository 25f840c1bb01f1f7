"""Expressions and statements as source: what is printed parses to what was meant."""

from __future__ import annotations

import ast
import random
import subprocess
import sys

import pytest

from serde.formats.torch.modules.members import shorten_tie
from serde.formats.torch.source.printer import WIDTH, print_expression, print_statement, quote

TEXTS = ["a", 'say "hi"', "it's", "\"both'", "line\nbreak", "back\\slash", "\x00\x1b[31m", "é", "🙂",
         "'; import os; '", '"""']  # fmt: skip
BINARY = [ast.Add, ast.Sub, ast.Mult, ast.Div, ast.FloorDiv, ast.Mod, ast.MatMult, ast.BitAnd,
          ast.BitOr, ast.BitXor, ast.LShift, ast.RShift]  # fmt: skip
COMPARED = [ast.Eq, ast.NotEq, ast.Lt, ast.LtE, ast.Gt, ast.GtE]


def draw_tree(rng: random.Random, depth: int) -> ast.expr:
    """A random expression of the kinds that are printed."""
    if not depth or rng.random() < 0.2:
        leaves = [ast.Name("x"), ast.Name("weight"), ast.Constant(rng.choice(TEXTS)),
                  ast.Constant(rng.choice([0, 7, 0.5, 1e-5, True, None, ...]))]  # fmt: skip
        return rng.choice(leaves)
    below = [draw_tree(rng, depth - 1) for _ in range(3)]
    name = ast.Attribute(ast.Name("torch"), "relu")
    kinds = [
        lambda: ast.Call(name, below[:2], [ast.keyword("dim", below[2])]),
        lambda: ast.Attribute(below[0], "shape"),
        lambda: ast.BinOp(below[0], rng.choice(BINARY)(), below[1]),
        lambda: ast.Compare(below[0], [rng.choice(COMPARED)()], [below[1]]),
        lambda: ast.UnaryOp(rng.choice([ast.USub, ast.Invert])(), below[0]),
        lambda: ast.Tuple(below[: rng.randint(0, 3)]),
        lambda: ast.List(below[: rng.randint(0, 3)]),
        lambda: ast.Subscript(below[0], below[1]),
        lambda: ast.Subscript(below[0], ast.Tuple([ast.Slice(below[1], None), below[2]])),
    ]
    return rng.choice(kinds)()


def describe(tree: ast.expr) -> str:
    """A tree without what parsing adds to it, a negative number as its sign and the number."""
    text = ast.dump(tree)
    return text.replace(", ctx=Load()", "")


@pytest.mark.parametrize("seed", range(300))
def test_what_is_printed_parses_to_the_tree(seed: int) -> None:
    tree = draw_tree(random.Random(seed), 4)
    parsed = ast.parse(print_expression(tree), mode="eval").body
    assert describe(parsed) == describe(tree)


@pytest.mark.parametrize("text", TEXTS)
def test_strings_are_quoted(text: str) -> None:
    printed = quote(text)
    assert ast.literal_eval(printed) == text
    assert printed.isascii() and printed.isprintable()


@pytest.mark.parametrize("number", [float("inf"), float("-inf"), float("nan"), -1.5, -3])
def test_numbers_without_a_literal_are_printed(number: float) -> None:
    text = print_expression(ast.Attribute(ast.Constant(number), "real"))
    value = eval(text)
    assert value == number or number != number


def draw_statements(count: int) -> list[str]:
    """Statements of all widths, in a function."""
    rng = random.Random(1)
    lines = ["def forward(self, x):"]
    for _ in range(count):
        tree = ast.Call(ast.Name("f"), [draw_shallow(rng) for _ in range(rng.randint(0, 12))], [])
        kind = rng.choice([ast.Assign([ast.Name("y")], tree), ast.Expr(tree)])
        lines += print_statement(kind, "    ")
    return lines


def draw_shallow(rng: random.Random) -> ast.expr:
    """An argument as rules write them."""
    numbers = [ast.Constant(rng.randint(0, 5000)) for _ in range(rng.randint(2, 4))]
    return rng.choice([
        ast.Name("x" * rng.randint(1, 20)), ast.Tuple(numbers), ast.List(numbers),
        ast.BinOp(ast.Name("a"), ast.Mult(), ast.Name("b")),
        ast.Call(ast.Attribute(ast.Name("x"), "reshape"), numbers, []),
    ])  # fmt: skip


def format_with_ruff(source: str) -> str:
    """What ``ruff format`` makes of a source."""
    command = [
        sys.executable,
        "-m",
        "ruff",
        "format",
        "--isolated",
        "--stdin-filename",
        "n.py",
        "-",
    ]
    done = subprocess.run(command, input=source, capture_output=True, text=True, check=True)
    return done.stdout


def test_lines_are_wrapped_as_ruff_format_does() -> None:
    source = "\n".join(draw_statements(200)) + "\n"
    assert max(map(len, source.splitlines())) <= WIDTH
    assert format_with_ruff(source) == source


NAME = "features_denseblock4_denselayer13_conv1"
LONG = [  # statements of long names
    f"{NAME} = self.{NAME}_conv2d({NAME}_2)",
    f"self.{NAME}_weight_unsqueeze = nn.Parameter(torch.empty((16, 1)))",
    f"{NAME}_2 = self.{NAME}_conv2d_112({NAME}_2, {NAME}_3)",
    f"y = self.weight[self.{NAME}_negative_log_likelihood]",
    f"{NAME}_1, {NAME}_2, {NAME}_3 = self.layer({NAME}, y)",
    f"{NAME}_1, {NAME}_2 = self.layer(y)",
]


@pytest.mark.parametrize("number", range(len(LONG)))
def test_long_names_are_wrapped_as_ruff_format_does(number: int) -> None:
    (statement,) = ast.parse(LONG[number]).body
    lines = ["def forward(self, x):", *print_statement(statement, "    ")]
    assert max(map(len, lines)) <= WIDTH
    assert format_with_ruff("\n".join(lines) + "\n") == "\n".join(lines) + "\n"


def test_ties_of_long_names_have_variables() -> None:
    target, value = (ast.parse(f"self.{NAME}[{at}].weight", mode="eval").body for at in (1, 0))
    lines = [line for s in shorten_tie(target, value) for line in print_statement(s, "        ")]
    assert lines == [
        f"        again = self.{NAME}[1]",
        f"        first = self.{NAME}[0]",
        "        again.weight = first.weight",
    ]
    assert len(shorten_tie(*(ast.parse(f"self.{n}.w", mode="eval").body for n in "ab"))) == 1
