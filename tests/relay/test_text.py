"""The text form: what every construct is read as, what is refused and where, and its bounds."""

from __future__ import annotations

import numpy as np
import pytest

from serde.errors import MalformedFile
from serde.formats.relay import ast
from serde.formats.relay.ast_walk import post_order
from serde.formats.relay.text.parser import parse_text
from serde.formats.relay.text.printer import print_text
from serde.ir.graph import DType
from testing.cpu_limit import limit_cpu
from testing.relay.compare import difference

HEADER = '#[version = "0.0.5"]\n'
HEAD = f"{HEADER}def @main(%x: float32, %t: (float32, float32)) {{\n"
MANY, SOME = 10_000, 2_000  # both far beyond what Python's stack holds


def main_of(body):
    return parse_text(f"{HEAD}{body}\n}}\n").functions["main"]


def print_back(body):
    """The body of the function as it is printed back."""
    text = print_text(parse_text(f"{HEAD}{body}\n}}\n"), types=False)
    return text.removeprefix(HEAD).removesuffix("\n}\n").replace("\n  ", "\n").removeprefix("  ")


@pytest.mark.parametrize(
    ("body", "expected"),
    [
        # names, values, calls
        ("(%x)", "%x"),
        ("{%x}", "%x"),
        ("%t.1", "%t.1"),
        ("()", "()"),
        ("(%x,)", "(%x,)"),
        ("(%x, %t)", "(%x, %t)"),
        ("nn.relu(%x)", "nn.relu(%x)"),
        ("f(%x)(%t).0", "%0 = f(%x);\n%1 = %0(%t);\n%1.0"),
        ("%7 = exp(%x); add(%7, %7)", "%0 = exp(%x);\nadd(%0, %0)"),
        ("%7 = exp(%x); exp(%7)", "%0 = exp(%x);\nexp(%0)"),
        # operators, as strong as TVM takes them
        ("%x + 1f * %x", "%0 = multiply(1f, %x);\nadd(%x, %0)"),
        ("%x - 1f - %x", "%0 = subtract(%x, 1f);\nsubtract(%0, %x)"),
        ("(%x + 1f) / %x", "%0 = add(%x, 1f);\ndivide(%0, %x)"),
        ("%x == 1f < %x", "%0 = less(1f, %x);\nequal(%x, %0)"),
        ("%x >= 1f", "greater_equal(%x, 1f)"),
        ("- %x", "negative(%x)"),
        # bindings
        ("let %a = %x; %a", "let %a = %x;\n%a"),
        ("let %a: float32 = %x; %a", "let %a: float32 = %x;\n%a"),
        ("%x; %t", "let %v = %x;\n%t"),
        ("(let %a = %x; %a)", "let %a = %x;\n%a"),
        (
            "let %a = let %b = %x; %0 = exp(%b); add(%0, %b); %a",
            "let %a = (\n  let %b = %x;\n  %0 = exp(%b);\n  add(%0, %b)\n);\n%a",
        ),
        (
            "let %f = fn (%n: int32) { %f(%n) }; %f(1)",
            "let %f = fn (%n: int32) {\n  %f(%n)\n};\n%f(1)",
        ),
        # control flow, functions, references
        ("if (True) { %x } else { %t }", "if (True) {\n  %x\n} else {\n  %t\n}"),
        (
            "if (True) { %x } else if (False) { %t } else { %x }",
            "if (True) {\n  %x\n} else {\n  if (False) {\n    %t\n  } else {\n    %x\n  }\n}",
        ),
        ("match (%t) { (%a, _) => { %a } }", "match (%t) {\n  (%a, _) => {\n    %a\n  },\n}"),
        ("match? (%x) { _ => %x, }", "match? (%x) {\n  _ => {\n    %x\n  },\n}"),
        (
            'fn (%y: int8, Primitive=1, hash="a") -> int8 { %y }',
            'fn (%y: int8, Primitive=1, hash="a") -> int8 {\n  %y\n}',
        ),
        ("ref_write(ref(%x), 1f)", "%0 = ref(%x);\nref_write(%0, 1f)"),
        ("ref_read(ref(%x))", "%0 = ref(%x);\nref_read(%0)"),
        ("free_var %q: int8; f(%q, %x)", "free_var %q: int8;\nf(%q, %x)"),
        # attributes: those with the default are left out
        ("nn.softmax(%x, axis=1)", "nn.softmax(%x, axis=1)"),
        ("nn.softmax(%x, axis=-1)", "nn.softmax(%x)"),
        ("f(%x, a=1, b=-1.5f, c=2i64, d=1f64)", "f(%x, a=1, b=-1.5f, c=2i64, d=1f64)"),
        ('f(%x, a=None, b=True, c="s t", d=?)', 'f(%x, a=None, b=True, c="s t", d=?)'),
        ("f(%x, a=[1, 2], b=[], c=[[1], [2f]])", "f(%x, a=[1, 2], b=[], c=[[1], [2f]])"),
        ("f(%x, a.b=(3), c=inff)", "f(%x, a.b=3, c=inff)"),
        ("sum(%x, keepdims=1)", "sum(%x, keepdims=True)"),
        # numbers
        ("3", "3"),
        ("-3i64", "-3i64"),
        ("3i16", "3i16"),
        ("99999999999", "99999999999i64"),
        ("1.5f", "1.5f"),
        ("1e-05f", "1e-05f"),
        ("0.1f64", "0.1f64"),
        ("0.333f16", "0.333008f16"),
        ("16777217f", "16777216.0f"),
        ("0.3333333432674408f", "0.33333334f"),
        ("-0f", "-0f"),
        ("inff", "inff"),
        ("-inff", "-inff"),
        ("1e99f", "inff"),
        ("False", "False"),
        # TVM 0.6
        ("%x^", "ref_read(%x)"),
        ("(%x := 1f)", "ref_write(%x, 1f)"),
        ('cast(%x, "int8")', 'cast(%x, dtype="int8")'),
        ("1 /* ty=int64 */", "1i64"),
        ("1.5 /* ty=float64 */", "1.5f64"),
    ],
)
def test_is_read_as(body, expected):
    assert print_back(body) == expected


@pytest.mark.parametrize(
    "type_",
    [
        "int8",
        "Tensor[(2, 3), float32]",
        "Tensor[(3), bool]",
        "Tensor[(?, 3, ?), float16]",
        "()",
        "(int8,)",
        "(int8, (bool, Tensor[(1), uint8]))",
        "fn (int8) -> bool",
        "fn [A, B](A, fn (B) -> A) -> (A, B)",
        "List[float32]",
        "Tree[List[int8], int16]",
        "Storage[]",
    ],
)
def test_type_is_read_and_printed(type_):
    text = f"{HEADER}def @main(%x: {type_}) -> {type_} {{\n  %x\n}}\n"
    assert print_text(parse_text(text)) == text


def test_types_tvm_prints_and_does_not_read():
    """They are read, and left out where they are only annotations."""
    module = parse_text(f"{HEADER}def @main(%x: ref(int8)) -> ref(int8) {{ %x }}")
    assert module.functions["main"].ret_type == ast.RefType(ast.TensorType((), "int8"))
    assert print_text(module) == f"{HEADER}def @main(%x) {{\n  %x\n}}\n"
    assert "%x: ref(int8)" in print_text(module, like_tvm=True)


@pytest.mark.parametrize(
    ("literal", "dtype", "value"),
    [
        ("nanf", DType.FLOAT32, np.nan),
        ("nanf16", DType.FLOAT16, np.nan),
        ("-inff64", DType.FLOAT64, -np.inf),
        ("1.67772e+07f", DType.FLOAT32, 16777200),
        ("9223372036854775807i64", DType.INT64, 2**63 - 1),
        ("True", DType.BOOL, True),
        ("5 /* ty=int16 */", DType.INT16, 5),
        ("5 /* ty=Tensor[(1), int16] */", DType.INT32, 5),
        ("2f /* ty=int64 */", DType.FLOAT32, 2),
    ],
)
def test_constant(literal, dtype, value):
    constant = main_of(literal).body
    assert constant.tensor.dtype is dtype
    np.testing.assert_array_equal(constant.tensor.load(), np.array(value, dtype.numpy))


@pytest.mark.parametrize(
    "name", ["input:0", "a.b.0.weight", "my input", "a;b", "a-b", "a[0]", "a%b", "größe", "a b:0"]
)
def test_name_tvm_prints_raw(name):
    """Read where it is declared and used, and respelled so that TVM reads it."""
    text = f"def @main(%{name}: int8, %x: int8) {{ let %v.1 = add(%{name}, %x); exp(%v.1) }}"
    main = parse_text(HEADER + text).functions["main"]
    assert [p.name for p in main.params] == [name, "x"]
    assert main.body.value.args == main.params
    again = parse_text(print_text(parse_text(HEADER + text))).functions["main"]
    assert again.params[0].name.replace("_", "").isalnum()


def test_keywords_as_names():
    names = ["let", "fn", "free_var", "True", "_", "inff"]
    params = ", ".join(f"%{n}" for n in names)
    main = parse_text(f"{HEADER}def @main({params}) {{ ({params}) }}").functions["main"]
    assert main.body.fields == main.params
    assert "(%vlet, %vfn, %vfree_var, %vTrue, %v_, %vinff)" in print_text(
        ast.Module({"main": main}), types=False
    )


def test_main_keeps_the_names_of_its_parameters():
    """TVM numbers names over the whole module, in the order of the functions' names."""
    module = parse_text(f"{HEADER}def @f(%x) {{ %x }}\ndef @main(%x) {{ @f(%x) }}")
    assert "def @f(%x1)" in print_text(module) and "def @main(%x)" in print_text(module)
    assert "def @main(%x1)" in print_text(module, like_tvm=True)


def test_global_names_tvm_prints_raw():
    text = "def @main(%x) { @my-fn.1(@my(%x)) }\ndef @my-fn.1(%x) { %x }\ndef @my(%x) { %x }"
    module = parse_text(HEADER + text)
    assert sorted(module.functions) == ["main", "my", "my-fn.1"]
    assert module.functions["main"].body.op.name == "my-fn.1"
    assert "@my_fn_1(" in print_text(module)


def test_a_name_that_could_be_a_field_is_refused():
    params = "%x: (int8, int8), %x.0: int8"
    with pytest.raises(MalformedFile, match=r"line 2, .*could be a field of %x"):
        parse_text(f"{HEADER}def @main({params}) {{ %x.0 }}")
    main = parse_text(f"{HEADER}def @main(%x: int8, %x.0: int8) {{ %x.0 }}").functions["main"]
    assert main.body is main.params[1]


DATA_TYPES = """
type List[A] { Cons(A, List[A]), Nil, }
extern type Storage
def @main(%l: List[int8]) -> int8 {
  match? (%l) {
    Cons(%h: int8, Cons(_, Nil)) => { %h },
    Cons(%h, _) => { %h },
  }
}
"""


def test_data_types():
    module = parse_text(HEADER + DATA_TYPES)
    cons, nil = module.types["List"].constructors
    assert (cons.name, len(cons.inputs), nil.inputs, cons.of) == ("Cons", 2, (), "List")
    assert cons.inputs[1].args[0] is cons.inputs[0] is module.types["List"].type_params[0]
    match = module.functions["main"].body
    assert not match.complete
    assert match.clauses[0].pattern.patterns[1].patterns[1].constructor is nil
    again = parse_text(print_text(module))
    assert difference(module, again) is None


def test_constructor_named_by_a_number():
    """As Defunctionalization names them."""
    text = "type T { 1(int8), }\ndef @main(%x: int8) { match (1(%x)) { 1(%y) => { %y }, } }"
    body = parse_text(HEADER + text).functions["main"].body
    assert body.data.op is body.clauses[0].pattern.constructor
    assert "v1(%x)" in print_text(parse_text(HEADER + text))


def test_comments_are_skipped_and_types_in_them_kept():
    body = "/* a /* b */ c */ exp(%x /* ty=float32 */) // d\n /* ty=List[float32] span=f.py:3:4 */"
    call = main_of(body).body
    assert call.type == ast.TypeCall(ast.GlobalTypeVar("List"), (ast.TensorType((), "float32"),))
    assert call.span == ast.Span("f.py", 3, 4)
    assert main_of("exp(%x) /* ty=no type at all( */").body.type is None


def test_expressions_know_where_they_were_written():
    assert main_of("%0 = exp(%x);\n  tanh(%0)").body.span == ast.Span("module", 4, 3)


@pytest.mark.parametrize(
    ("header", "good"),
    [
        ("", True),
        ("v0.0.4\n", True),
        ('/* c */ // d\n#[version = "0.0.5"]\n', True),
        ('#[version = "0.0.6"]\n', False),
    ],
)
def test_header(header, good):
    text = f"{header}def @main(%x) {{ %x }}"
    if good:
        assert "main" in parse_text(text).functions
    else:
        with pytest.raises(MalformedFile, match=r"0\.0\.6"):
            parse_text(text)


def test_single_expression_becomes_main():
    function = parse_text(f"{HEADER}fn (%x: int8) {{ %x }}").functions["main"]
    assert [p.name for p in function.params] == ["x"]
    body = parse_text("free_var %x: int8;\nfree_var %y: int8;\n%0 = add(%y, %x);\nexp(%0)")
    assert [p.name for p in body.functions["main"].params] == ["x", "y"]


def test_text_of_0_6():
    text = """v0.0.4
def @main(%x: Tensor[(10, 20), float32]) -> Tensor[(10, 20), float32] {
  %9 = (
    let %while_loop: fn (int32, float32) -> (int32, float32) = fn (%i: int32, %a.15: float32) {
      %0 = greater_equal(%i, 1 /* ty=int32 */) /* ty=bool */;
      if (%0) {
        %8 = multiply(%a.15, 2f /* ty=float32 */);
        %while_loop(%i, %8)
      } else {
        (%i, %a.15)
      }
    };
    %while_loop
  );
  %10 = %9(1 /* ty=int64 */, %x);
  %10.1
}
// meta data omitted. you can use show_meta_data=True to include meta data"""
    main = parse_text(text).functions["main"]
    loop = main.body.tuple.op
    assert isinstance(loop, ast.Let) and loop.var is loop.body
    assert main.body.tuple.args[0].tensor.dtype is DType.INT64


def test_graph_variables_are_those_of_their_function():
    text = "def @f(%x) { %0 = exp(%x); tanh(%0) }\ndef @main(%x) { %0 = log(%x); tanh(%0) }"
    main = parse_text(HEADER + text).functions["main"]
    assert main.body.args[0].op.name == "log"


@pytest.mark.parametrize(
    ("body", "place", "reason"),
    [
        ("%y", "line 3, column 1", "'%y' is not defined before it is used"),
        ("%3", "line 3, column 1", "'%3' is not defined"),
        ("exp(\n  %y)", "line 4, column 3", "'%y' is not defined"),
        ("@g(%x)", "line 3, column 1", "@g is used and not defined"),
        ("%0 = %x; %0 = %t; %0", "line 3, column 10", "%0 is bound twice"),
        ("add(%x %t)", "line 3, column 8", "',' or ')' was expected, not '%t'"),
        ("add(%x, axis=1, %t)", "line 3, column 17", "name=value or ')'"),
        ("f(%x, axis=1, axis=2)", "line 3, column 15", "set twice"),
        ("f(%x, a=b)", "line 3, column 9", "'b' is no value of an attribute"),
        ("f(%x, a={1})", "line 3, column 9", "printed without metadata"),
        ("let %a = %x", "line 4, column 1", "';' was expected, not '}'"),
        ("let x = %x; x", "line 3, column 5", "a variable's name"),
        ("[1f, 2f]", "line 3, column 1", "an expression was expected, not '['"),
        ("if (%x) { %x }", "line 4, column 1", "'else' was expected"),
        ("match (%x) { Cons(%a) => %a }", "line 3, column 14", "no data type has a constructor"),
        ("meta[relay.Constant][0]", "line 3, column 1", "the constants were left out"),
        ('f(%x, a="b)', "line 3, column 9", "the string that begins here has no end"),
        ("/* %x", "line 3, column 1", "the comment that begins here has no end"),
        ("%x $", "line 3, column 4", "'$' means nothing here"),
        ("3i7", "line 3, column 1", "there are no numbers of 7 bits"),
        ("3000000000i32", "line 3, column 1", "does not fit in int32"),
        ("1.5i64", "line 3, column 1", "1.5i64 is no integer"),
        ("let %a: Tensor[(2), flt] = %x; %a", "line 3, column 21", "an element type"),
        ("let %a: 3 = %x; %a", "line 3, column 9", "a type was expected, not '3'"),
        ("let %a: Tensor[(2.5f64), int8] = %x; %a", "line 3, column 17", "a dimension was"),
        ("let %a: Tensor[(2f), int8] = %x; %a", "line 3, column 17", "expected, not '2f'"),
        ('"a"', "line 3, column 1", "an expression was expected"),
        ('exp(%x, "a")', "line 3, column 9", "an expression, not a text"),
    ],
)
def test_is_refused_with_its_place(body, place, reason):
    with pytest.raises(MalformedFile) as error:
        main_of(body)
    assert place in str(error.value) and reason in str(error.value)


@pytest.mark.parametrize(
    ("text", "reason"),
    [
        ("", "the file holds no definition"),
        ("def @f() { 1 } def @f() { 1 }", "@f is defined twice"),
        ("type A { B } type A { C }", "data type A is defined twice"),
        ("type A { B } type C { B }", "data type A has a constructor B as well"),
        ("@main = primfn(a: handle) -> () {}", "@main is compiled already"),
        ("def @f = meta[ExternalFunc][0]", "@f is compiled already"),
        ("hello world", "the end of the text was expected, not 'world'"),
        ("def @f() { 1 } hello", "'def' or 'type' was expected, not 'hello'"),
        ("def @f() { 1", "'}' was expected, not the end of the text"),
    ],
)
def test_module_is_refused(text, reason):
    with pytest.raises(MalformedFile, match=reason):
        parse_text(HEADER + text)


def test_bytes_that_are_no_text():
    with pytest.raises(MalformedFile, match="byte 5: not UTF-8"):
        parse_text(b"def @\xff")


NESTED = {
    "let": "".join(f"let %a{i} = add(%x, 1f);\n" for i in range(MANY)) + "%a1",
    "let in let": "let %b = " * SOME + "%x" + ";%b" * SOME,
    "let in brackets": "(let %b = " * SOME + "%x" + ";%b)" * SOME,
    "calls": "tanh(" * MANY + "%x" + ")" * MANY,
    "curried": "%x" + "()" * SOME,
    "infix": "%x" + " + %x * %x" * SOME,
    "minus": "- " * SOME + "%x",
    "brackets": "(" * SOME + "%x" + ")" * SOME,
    "blocks": "{" * SOME + "%x" + "}" * SOME,
    "tuples": "(" * SOME + "%x" + ",)" * SOME,
    "fields": "%x" + ".0" * SOME,
    "if": "if (True) {" * SOME + "%x" + "} else {%x}" * SOME,
    "functions": "fn () {" * SOME + "%x" + "}" * SOME,
    "match": "match (%x) { _ => " * SOME + "%x" + "}" * SOME,
    "references": "ref(" * SOME + "%x" + ")" * SOME,
    "statements": "%x;" * SOME + "%x",
    "comments": "/*" * SOME + "*/" * SOME + "%x",
}


@pytest.mark.parametrize("body", NESTED.values(), ids=NESTED)
def test_nests_without_bound(body):
    module = parse_text(f"{HEAD}{body}\n}}\n")
    text = print_text(module)
    assert print_text(parse_text(text)) == text


def test_a_chain_of_let_keeps_its_length():
    main = main_of(NESTED["let"])
    assert sum(isinstance(e, ast.Let) for e in post_order(main)) == MANY


@pytest.mark.parametrize(
    ("text", "reason"),
    [
        ("def @main(%x: " + "(" * MANY + ")" * MANY + ") { %x }", "types nest"),
        ("def @main(%x: " + "fn () -> " * MANY + "int8) { %x }", "types nest"),
        ("def @main(%x) { f(%x, a=" + "[" * MANY + "]" * MANY + ") }", "attributes nest"),
        (
            "def @main(%x) { match (%x) {" + "(" * MANY + "_" + ",)" * MANY + "=> 1} }",
            "patterns nest",
        ),
        ("def @main() { " + "9" * 5000 + " }", "is no number"),
        ("def @main() { %" + "9" * 5000 + " }", "is not defined"),
        ("def @main() { meta[a][" + "9" * 5000 + "] }", "left out"),
    ],
)
def test_is_bounded(text, reason):
    with limit_cpu(10), pytest.raises(MalformedFile, match=reason):
        parse_text(HEADER + text)
