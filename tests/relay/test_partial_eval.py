"""What becomes of functions, choices, recursion, data and references, and what is refused."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest

from serde.errors import MalformedFile, Unconvertible, UsageError
from serde.formats.relay import ast
from serde.formats.relay.text.parser import parse_text
from serde.formats.relay.to_ir import module_graph, to_ir
from serde.ir.graph import Tensor
from testing.relay.running import run

HEADER = '#[version = "0.0.5"]\n'
LIST = "type List[A] { Cons(A, List[A]), Nil, }\n"
V = "Tensor[(2), float32]"
X = np.array([0.5, -1.5], np.float32)


def numbers(text: str, folder: Path, **feeds: object) -> list[np.ndarray]:
    arrays = {n: np.asarray(v) for n, v in ({"x": X} | feeds).items()}
    graph = to_ir(module_graph(parse_text(HEADER + text)))
    return run(graph, arrays, 17, folder)


PROGRAMS = {
    "closure": (
        f"def @main(%x: {V}) {{ let %f = fn (%y: {V}) {{ add(%x, %y) }}; %f(%f(%x)) }}", 3 * X),
    "operator passed around": (
        f"def @twice(%f: fn ({V}) -> {V}, %y: {V}) {{ %f(%f(%y)) }}\n"
        f"def @main(%x: {V}) {{ @twice(negative, %x) }}", X),
    "match on a static list": (
        LIST + f"def @sum(%l: List[{V}], %a: {V}) {{ match (%l) {{ Cons(%h, %t) => {{ "
        "@sum(%t, add(%a, %h)) }, Nil => { %a }, } }\n"
        f"def @main(%x: {V}) {{ @sum(Cons(%x, Cons(%x, Nil)), %x) }}", 3 * X),
    "reference": (
        f"def @main(%x: {V}) {{ let %r = ref(%x); let %u = ref_write(%r, add(%x, %x)); "
        "add(ref_read(%r), %x) }", 3 * X),
    "constant condition": (f"def @main(%x: {V}) {{ if (less(1, 2)) {{ %x }} else {{ %x }} }}", X),
    "tuple of a branch": (
        f"def @main(%x: {V}, %c: bool) {{ let %t = if (%c) {{ (%x, (%x,)) }} else {{ "
        "(negative(%x), (%x,)) }; add(%t.0, %t.1.0) }", 0 * X),
}  # fmt: skip


@pytest.mark.parametrize("name", PROGRAMS)
def test_programs(name: str, tmp_path: Path) -> None:
    text, expected = PROGRAMS[name]
    feeds = {"c": np.array(False)} if "%c" in text else {}
    (actual,) = numbers(text, tmp_path, **feeds)
    np.testing.assert_allclose(actual, expected, rtol=1e-6)


TAIL = f"""def @f(%k: int32, %a: {V}) {{
  if (less(%k, 1)) {{ %a }} else {{
    if (equal(%k, 3)) {{ negative(%a) }} else {{ @f(subtract(%k, 1), add(%a, %a)) }} }} }}
def @main(%x: {V}, %n: int32) {{ @f(%n, %x) }}"""


@pytest.mark.parametrize(("n", "factor"), [(0, 1), (2, 4), (3, -1), (5, -4)])
def test_recursion_with_two_ends(n: int, factor: int, tmp_path: Path) -> None:
    (actual,) = numbers(TAIL, tmp_path, n=np.int32(n))
    np.testing.assert_allclose(actual, factor * X)


LINEAR = f"""def @f(%k: int32, %a: {V}) {{
  if (greater(%k, 0)) {{
    let %r = @f(subtract(%k, 1), add(%a, %a)); subtract(%r, %a) }} else {{ %a }} }}
def @main(%x: {V}, %n: int32) {{ @f(%n, %x) }}"""


@pytest.mark.parametrize("n", [0, 1, 4])
def test_recursion_that_goes_on_with_its_result(n: int, tmp_path: Path) -> None:
    def f(k: int, a: np.ndarray) -> np.ndarray:
        return f(k - 1, a + a) - a if k > 0 else a

    (actual,) = numbers(LINEAR, tmp_path, n=np.int32(n))
    np.testing.assert_allclose(actual, f(n, X), rtol=1e-6)


REFUSED = {
    "a list of dynamic length": (LIST + "def @main(%l: List[float32]) { %l }", "algebraic type"),
    "a function as a result": (f"def @main(%x: {V}) {{ fn (%y: {V}) {{ %x }} }}", "a function"),
    "two calls of itself": (
        "def @f(%k: int32) { if (less(%k, 2)) { %k } else { "
        "add(@f(subtract(%k, 1)), @f(subtract(%k, 2))) } }\n"
        "def @main(%n: int32) { @f(%n) }", "if: nests"),
    "calls of each other that go on": (
        "def @f(%k: int32) { if (less(%k, 2)) { %k } else { add(@g(subtract(%k, 1)), 1) } }\n"
        "def @g(%k: int32) { if (less(%k, 2)) { %k } else { @f(subtract(%k, 1)) } }\n"
        "def @main(%n: int32) { @f(%n) }", "@f calls itself in a way that no loop can"),
    "a pattern of another size": (
        f"def @main(%x: {V}) {{ match ((%x, %x)) {{ (%a, %b, %c) => {{ %a }}, }} }}",
        "3 patterns, 2 expected"),
    "a loop with another number of arguments": (TAIL.replace("add(%a, %a))", "%a, %a)"),
        "3 arguments, 2 expected"),
    "a call back with another number of arguments": (LINEAR.replace("add(%a, %a))", "%a, %a)"),
        "3 arguments, 2 expected"),
    "a split into nothing": (f"def @main(%x: {V}) {{ let %s = split(%x); %s.0 }}", "'indices_or_sections' is missing"),
    "data that depends on the input": (
        LIST + f"def @main(%c: bool, %x: {V}) {{ if (%c) {{ Cons(%x, Nil) }} else {{ Nil }} }}",
        "different structure"),
    "a write in a branch": (
        f"def @main(%c: bool, %x: {V}) {{ let %r = ref(%x); let %u = if (%c) {{ "
        "ref_write(%r, %x) } else { () }; ref_read(%r) }", "an if or a loop is written inside"),
    "nothing returned": ("def @main() { () }", "no tensor"),
}  # fmt: skip


@pytest.mark.parametrize("name", REFUSED)
def test_refusals(name: str) -> None:
    text, reason = REFUSED[name]
    with pytest.raises(Unconvertible, match=reason):
        to_ir(module_graph(parse_text(HEADER + text)))


MUTUAL = f"""def @a(%n: int32, %x: {V}) {{ if (equal(%n, 0)) {{ %x }} else {{
  let %m = subtract(%n, 1); @b(tanh(%x), %m) }} }}
def @b(%x: {V}, %n: int32) {{ if (equal(%n, 0)) {{ negative(%x) }} else {{
  if (equal(%n, 5)) {{ @a(0, exp(%x)) }} else {{ @c(subtract(%n, 1), add(%x, %x)) }} }} }}
def @c(%n: int32, %x: {V}) {{ let %y = exp(%x); if (equal(%n, 0)) {{ %y }} else {{
  @a(subtract(%n, 1), %y) }} }}
def @main(%x: {V}, %n: int32) {{ @a(%n, %x) }}"""


@pytest.mark.parametrize("n", range(8))
def test_functions_that_end_in_each_other(n: int, tmp_path: Path) -> None:
    def a(n: int, x: np.ndarray) -> np.ndarray:
        return x if n == 0 else b(np.tanh(x), n - 1)

    def b(x: np.ndarray, n: int) -> np.ndarray:
        if n in (0, 5):
            return np.exp(x) if n else -x
        return c(n - 1, x + x)

    def c(n: int, x: np.ndarray) -> np.ndarray:
        return a(n - 1, np.exp(x)) if n else np.exp(x)

    (actual,) = numbers(MUTUAL, tmp_path, n=np.int32(n))
    np.testing.assert_allclose(actual, a(n, X), rtol=1e-6)


SEVERAL = f"""def @main(%x: {V}, %f: fn ({V}) -> {V}, %r: ref({V})) {{
  let %a = %x.1;
  let %b = tanh(%a);
  let %c = image.grid(%x);
  let %d = match (%x) {{ (%p, %q) => {{ %p }}, }};
  (%b, %c, %d)
}}"""


def test_everything_refused_is_told_at_once() -> None:
    with pytest.raises(Unconvertible) as raised:
        module_graph(parse_text(HEADER + SEVERAL))
    assert [(p.reason, p.names) for p in raised.value.problems] == [
        ("parameter %f is a function", ("@main",)),
        ("parameter %r is a reference", ("@main",)),
        ("takes field 1 of a tensor, not of a tuple", ("@main (line 3, column 12)",)),
        ("match: a tuple pattern for a tensor", ("@main (line 6, column 12)",)),
        ("relay → ir has no rule for image.grid", ("image.grid_0",)),
    ]


def chain(length: int, let: bool) -> ast.Module:
    x = ast.Var("x", ast.TensorType((2,), "float32"))
    body: ast.Expr = x
    for _ in range(length):
        body = ast.Call(ast.Op("tanh"), (body,))
        if let:
            var = ast.Var("a")
            body = ast.Let(var, body, var)
    return ast.Module({"main": ast.Function((x,), body)})


@pytest.mark.parametrize("let", [False, True])
def test_chains_of_ten_thousand(let: bool) -> None:
    assert len(module_graph(chain(10_000, let)).nodes) == 10_000


def test_shared_expressions_are_computed_once() -> None:
    x = ast.Var("x", ast.TensorType((2,), "float32"))
    body: ast.Expr = x
    for _ in range(60):
        body = ast.Call(ast.Op("add"), (body, body))
    graph = module_graph(ast.Module({"main": ast.Function((x,), body)}))
    assert len(graph.nodes) == 60


def test_parameters_are_bound_by_name() -> None:
    module = parse_text(HEADER + f"def @main(%x: {V}, %w: {V}) {{ add(%x, %w) }}")
    graph = module_graph(module, {"w": Tensor.of(X)})
    assert [v.name for v in graph.inputs] == ["x"]
    with pytest.raises(MalformedFile, match="(?s)v belongs to no parameter.*so inputs: x, w"):
        module_graph(module, {"v": Tensor.of(X)})
    with pytest.raises(MalformedFile, match=r"w is float32\[3\]"):
        module_graph(module, {"w": Tensor.of(np.zeros(3, np.float32))})


def test_open_dimensions_have_names() -> None:
    module = parse_text(HEADER + "def @main(%x: Tensor[(?, 3, ?), float32]) { tanh(%x) }")
    assert module_graph(module).inputs[0].shape == ("x_0", 3, "x_2")


def test_the_function_to_convert_has_to_be_named() -> None:
    text = HEADER + f"def @a(%x: {V}) {{ %x }}\ndef @b(%x: {V}) {{ tanh(%x) }}"
    with pytest.raises(UsageError, match="@a, @b"):
        module_graph(parse_text(text))
    assert len(module_graph(parse_text(text), entry="b").nodes) == 1


def test_sources_name_the_function() -> None:
    text = f"def @f(%x: {V}) {{ tanh(%x) }}\ndef @main(%x: {V}) {{ @f(%x) }}"
    (node,) = module_graph(parse_text(HEADER + text)).nodes
    assert node.sources[0].name.startswith("f/tanh")
