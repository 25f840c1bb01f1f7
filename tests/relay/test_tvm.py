"""Against the real TVM: what is written means to it what was read, and the tables are its own."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest

from serde.formats.relay import ast, registry
from serde.formats.relay.io.magic import kind_of
from serde.formats.relay.io.params import read_params
from serde.formats.relay.json.reader import parse_json, read_json
from serde.formats.relay.json.writer import to_json
from serde.formats.relay.text.parser import parse_text
from serde.formats.relay.text.printer import print_text
from testing.relay.compare import difference
from testing.relay.tvm_live import TvmError, ask, run
from tests.relay.written import downgrade

DATA = Path(__file__).with_name("data")
NAMES = sorted(p.stem for p in DATA.glob("*.json"))
HEAD = '#[version = "0.0.5"]\ndef @main(%x: Tensor[(2, 3), float32], %t: (float32, float32)) {\n'


@pytest.mark.parametrize("name", NAMES)
def test_reads_what_is_written(name):
    module = read_json(DATA / f"{name}.json")
    original = ["json", (DATA / f"{name}.json").read_text()]
    assert ask("same", original, ["json", to_json(module)])
    assert ask("identical", original, ["json", to_json(module)])
    if name == "gname-dash":  # a name it cannot read is respelled
        original[1] = original[1].replace("my-fn", "my_fn")
    assert ask("same", original, ["text", print_text(module)])


LENGTH, SIZE = ast.DimVar("n"), ast.DimVar("m", is_size=True)
SHARED = ast.VarId("x")


@pytest.mark.parametrize(
    "dims", [(LENGTH, 3), (SIZE, 3), (SIZE, LENGTH, SIZE), (ast.LongDim(4), 3), (None, SIZE)]
)
def test_sizes_and_shared_variables_stay_in_json(dims):
    """As TVM itself writes them: kinds of sizes, and variables of one identity in two functions."""
    one, other = (ast.Var("x", ast.TensorType(dims, "float32"), SHARED) for _ in range(2))
    functions = {
        "main": ast.Function((one,), ast.Call(ast.Op("exp"), (one,))),
        "other": ast.Function((other,), ast.Tuple((other, other))),
    }
    original = ask("json_of", ["json", to_json(ast.Module(functions))])
    again = to_json(parse_json(original))
    assert ask("identical", ["json", original], ["json", again])
    for kind in ("tir.SizeVar", "tir.Var", "relay.Id", "relay.Var"):
        assert original.count(f'"{kind}"') == again.count(f'"{kind}"')


@pytest.mark.parametrize(
    "body",
    [
        "%x + 1f * %x - %x / 2f",
        "%x - 1f - %x",
        "%x < 1f == True",
        "(%x + 1f) * %x >= %x",
        "%t.0 + %t.1",
        "exp(%x); tanh(%x)",
        "let %a = exp(%x); %0 = tanh(%a); let %b: Tensor[(2, 3), float32] = %0; add(%b, %0)",
        "%0 = (let %a = exp(%x); tanh(%a)); add(%0, %0)",
        "if (True) { %x } else { exp(%x) }",
        "let %f = fn (%y: float32) -> float32 { exp(%y) }; %f(%t.0)",
        "fn (%y: float32) { %y }(%t.1)",
        "nn.softmax(%x, axis=0)",
        "nn.batch_flatten(%x)",
        "sum(%x, axis=[0], keepdims=True)",
        "clip(%x, a_min=-1.5f, a_max=0.1f)",
        'cast(%x, dtype="int8")',
        "(%x, (), (%x,))",
        "1e-05f + 16777217f + 0.3333333f",
        "inff - -inff",
        "0.1f64",
        "0.333f16",
        "3i64",
        "99999999999",
        "arange(0i64, 4i64, 2i64, start=meta[relay.Constant][0], stop=meta[relay.Constant][1], "
        'step=meta[relay.Constant][2], dtype="int64")',
        "ref_read(ref(%x))",
        "let %r = ref(%x); let %u = ref_write(%r, exp(%x)); ref_read(%r)",
        "match (%t) { (%a, _) => { exp(%a) }, }",
        "nn.layer_norm(%x, sum(%x, axis=[0]), sum(%x, axis=[0]), epsilon=1.00001e-05f)",
        "exp(%x /* a /* b */ */) // c",
    ],
)  # fmt: skip
def test_means_to_tvm_what_it_means_here(body):
    text = f"{HEAD}{body}\n}}\n"
    if "meta" in body:
        one = print_text(parse_text("def @main() { arange(0i64, 4i64, 2i64) }"))
        text += one[one.index("\n#[metadata]") :]
    module = parse_text(text)
    assert ask("same", ["text", text], ["text", print_text(module)])
    assert ask("same", ["text", text], ["json", to_json(module)])
    saved = parse_json(ask("json_of", ["text", text]))
    assert difference(module, saved, 1e-7, types=False) is None


@pytest.mark.parametrize("name", ["name-colon", "name-space", "const-f32-nan", "let-nested-value"])
def test_does_not_read_its_own_text(name):
    """Which is why it is printed otherwise; when this fails, the printer may do less."""
    with pytest.raises(TvmError):
        ask("text_of", ["text", (DATA / f"{name}.txt").read_text()])


@pytest.mark.parametrize("release", [(0, 6), (0, 7), (0, 8), (0, 9)])
@pytest.mark.parametrize("name", ["adt-own", "fn-polymorphic", "cf-while-const", "tup-one"])
def test_old_files_made_by_hand_are_files_to_tvm(name, release):
    """TVM upgrades what types and fields are called; it does not add all that is missing."""
    text = (DATA / f"{name}.json").read_text()
    assert ask("text_of", ["json", downgrade(text, release, complete=True)]) == ask(
        "text_of", ["json", text]
    )


def test_operators_are_those_registered():
    ops = ask("ops")
    assert {n: registry.attrs_key(n) or "" for n in ops} == ops
    assert len(ops) > 300


CTYPES = {"i": "int", "b": "bool", "d": "double", "s": "str", "t": "DataType"}


def fill_attrs(key):
    """Attributes of one type with all their fields, as JSON."""
    values = {
        f.name: {"i": 1, "b": True, "d": 1.0, "s": "", "t": "int8"}.get(f.kind)
        for f in registry.fields(key).values()
        if f.default is registry.REQUIRED
    }
    call = ast.Call(ast.Op("nn.relu"), (), ast.Attrs(key, values))
    return to_json(ast.Module({"main": ast.Function((), call)}))


def format_default(field):
    """A default as TVM spells it; it has no digits for floats within arrays."""
    value = field.default
    if isinstance(value, tuple):
        return f"[{', '.join(str(v) for v in value)}]"
    if value is None or isinstance(value, bool):
        return "(nullptr)" if value is None else str(int(value))
    if field.kind == "t":
        return value or "void"
    return f"{value:g}" if isinstance(value, float) else str(value)


@pytest.mark.parametrize("part", range(4))
def test_attributes_are_those_declared(part):
    keys = sorted({registry.attrs_key(op) for op in ask("ops")} - {None, "DictAttrs"})
    for key in keys[part::4]:
        types = dict(ask("fields", fill_attrs(key)))
        if key == "relay.attrs.SimulatedQuantizeAttrs":  # two structures share this name
            continue
        assert list(types) == list(registry.fields(key))
        for name, type_ in types.items():
            field = registry.fields(key)[name]
            ctype, sep, default = type_.partition(", default=")
            assert CTYPES.get(field.kind, "") in ctype, (key, name)
            if field.kind == "v" or "Float" in default or "." in default:
                continue
            assert bool(sep) == (field.default is not registry.REQUIRED), (key, name)
            assert not sep or default == format_default(field), (key, name)
    assert len(keys) > 120


def test_artefacts_are_recognised(tmp_path):
    module = parse_text("def @main(%x: Tensor[(2, 3), float32]) { nn.relu(%x) }")
    ask("build", ["text", print_text(module)], str(tmp_path))
    kinds = {p.name: kind_of(p) for p in tmp_path.iterdir()}
    assert kinds == {
        "lib.so": "compiled", "graph.json": "compiled", "vm.ro": "compiled", "p.params": "params",
    }  # fmt: skip
    assert read_params(tmp_path / "p.params") == {}


def test_runs_what_is_written():
    """The exact digits reach TVM through both forms."""
    module = parse_text("def @main(%x: Tensor[(2, 3), float32]) { (%x + 0.1f, %x * 16777217f) }")
    x = np.arange(6, dtype=np.float32).reshape(2, 3)
    for form, text in (("text", print_text(module)), ("json", to_json(module))):
        total, product = run(form, text, {"x": x})
        np.testing.assert_array_equal(total, x + np.float32(0.1))
        np.testing.assert_array_equal(product, x * np.float32(16777217))
