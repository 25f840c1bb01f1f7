"""Options, declared once; names of before, which still work and say what they are now."""

from __future__ import annotations

import inspect
import shutil
from dataclasses import replace
from pathlib import Path
from typing import get_type_hints

import numpy as np
import onnx
import pytest
from click.testing import CliRunner

import serde
from serde import plugins
from serde.cli.commands import main
from serde.plugins import get_format, list_parameters
from serde.plugins.options import ReadOptions, list_options, option
from testing.onnx_live import model_of, run_model
from tests.plugin.every_format import EVERY_FORMAT

DIGITS = Path(__file__).resolve().parents[1] / "examples" / "digits"
STAGES = {"decode": "read_options", "to_ir": "read_options", "from_ir": "write_options",
          "encode": "write_options"}  # fmt: skip


@pytest.fixture(autouse=True)
def here(tmp_path, monkeypatch):
    for name in ("digits-symbol.json", "digits-0010.params"):
        shutil.copy(DIGITS / name, tmp_path)
    monkeypatch.chdir(tmp_path)
    return tmp_path


def command(*arguments):
    result = CliRunner().invoke(main, [str(a) for a in arguments])
    return result.exit_code, result.stdout, result.stderr


@pytest.mark.parametrize("form", EVERY_FORMAT, ids=lambda f: f.name)
class TestDeclarations:
    def test_every_own_option_reaches_a_function(self, form):
        reached = {
            n for stage in STAGES if getattr(form, stage) for n in list_parameters(form, stage)
        }
        assert (
            form.own_options() - {"metadata", "profile", "provenance"} <= reached
        )  # which api.convert reads

    def test_every_keyword_is_declared(self, form):
        for stage, classes in STAGES.items():
            if (function := getattr(form, stage)) is None:
                continue
            target = getattr(function, "value", function)
            keywords = [p.name for p in inspect.signature(target).parameters.values()
                        if p.default is not p.empty]  # fmt: skip
            assert set(keywords) <= list_options(getattr(form, classes)).keys(), stage

    def test_types_can_be_told(self, form):
        for classes in (form.read_options, form.write_options):
            assert get_type_hints(classes).keys() == list_options(classes).keys()


def test_one_name_is_declared_once():
    """Of several formats, or for reading and writing: the command has one option for it."""
    options = {}
    for each in EVERY_FORMAT:
        for classes in (each.read_options, each.write_options):
            for name, declaration in list_options(classes).items():
                assert options.setdefault(name, declaration) is declaration, name
    assert_one_kind(EVERY_FORMAT)


def assert_one_kind(formats):
    """Formats that declare an option of one name mean the same kind of value."""
    kinds = {}
    for each in formats:
        for classes in (each.read_options, each.write_options):
            for name, declaration in list_options(classes).items():
                assert kinds.setdefault(name, declaration.kind) == declaration.kind, name


def test_an_option_of_two_kinds_is_refused():
    class Odd(ReadOptions):
        epoch: str | None = option("Another epoch.")

    odd = replace(get_format("onnx"), name="odd", read_options=Odd)
    with pytest.raises(AssertionError, match="epoch"):
        assert_one_kind([*EVERY_FORMAT, odd])


class ScaledRead(ReadOptions):
    """Options of a format in a test."""

    scale: int | None = option("A factor.", "For tests.", kind="integer", least=2)
    way: str | None = option("A way.", choices=("up", "down"))


class TestOwnOptions:
    """What a format declares is an option of Python's functions and of the command."""

    @pytest.fixture
    def scaled(self, monkeypatch):
        onnx_format = get_format("onnx")
        seen = []

        def decode(path, scale=1, way="up"):
            seen.append((scale, way))
            return onnx_format.decode(path)

        form = replace(onnx_format, decode=decode, read_options=ScaledRead)
        monkeypatch.setattr(plugins, "_load", lambda group, name: form)
        monkeypatch.setattr(plugins, "format_names", lambda: ["onnx"])
        onnx.save(model_of("g (float[2] x) => (float[2] y) { y = Neg(x) }"), "a.onnx")
        return seen

    def test_in_python(self, scaled):
        serde.convert("a.onnx", "b.onnx", scale=3, way="down")
        serde.load("a.onnx")
        assert scaled == [(3, "down"), (1, "up")]
        (y,) = run_model(onnx.load("b.onnx"), {"x": np.float32([1, -2])})
        np.testing.assert_array_equal(y, [-1, 2])

    @pytest.mark.parametrize(
        ("options", "why"),
        [
            ({"scale": 1}, "scale=1: the least is 2"),
            ({"scale": "3"}, "scale='3' is not an integer"),
            ({"way": "left"}, "way='left' is not one of up, down"),
            ({"scales": 3}, r"convert\(\) has no argument 'scales'; did you mean scale\?"),
            ({"entry": "f"}, r"convert\(\) has no argument 'entry'; it takes source, target"),
        ],
    )
    def test_what_they_refuse(self, scaled, options, why):
        with pytest.raises(serde.UsageError, match=why):
            serde.convert("a.onnx", "b.onnx", **options)
        assert scaled == []

    def test_on_the_command_line(self, scaled):
        from click import Command

        from serde.cli.options import add_read_options

        @add_read_options()
        def body(**options):
            pass

        params = {p.name: p for p in Command("c", params=body.__click_params__).params}
        assert params["scale"].opts == ["--scale"] and params["scale"].help == "A factor."
        assert params["scale"].formats == ("onnx",) and params["inputs"].formats == ()
        assert params["way"].list_words() == ("up", "down")


def test_a_result_is_saved_with_new_names():
    graph = serde.load("digits", inputs={"data": (1, 1, 8, 8)})
    serde.save(graph, "d.onnx", rename={"data": "pixels"}, hash_weights=True)
    assert onnx.load("d.onnx").graph.input[0].name == "pixels"
    assert main(["verify-hash", "d.onnx"], standalone_mode=False) is None
    with pytest.raises(TypeError, match="'outputs'; it is one of load"):
        serde.save(graph, "d.onnx", outputs=["fc1"])


# Options that do nothing

IDLE = [{"dequantize": True}, {"fold_batchnorm": True}, {"rebatch": "N"}, {"cut_inputs": ["x"]}]


@pytest.mark.parametrize("options", IDLE, ids=lambda o: next(iter(o)))
def test_an_option_without_effect_is_told(options):
    onnx.save(model_of("g (float[N,3] x) => (float[N,3] y) { y = Relu(x) }"), "a.onnx")
    report = serde.convert("a.onnx", "b.onnx", **options)
    (name,) = options
    assert [n for n in report.notes if n.startswith(f"{name}= had no effect")] == report.notes != []
    assert f"{name}= had no effect" in "".join(serde.load("a.onnx", **options).notes)


def test_an_option_with_an_effect_and_one_of_a_profile_are_not_told():
    onnx.save(model_of("g (float[N,3] x) => (float[N,3] y) { y = Relu(x) }"), "a.onnx")
    assert serde.convert("a.onnx", "b.onnx", static={"N": 2}).notes == []
    assert serde.convert("a.onnx", "b.onnx", rebatch=4).notes == []
    assert not any(
        "no effect" in n for n in serde.convert("a.onnx", "b.onnx", profile="tract").notes
    )
