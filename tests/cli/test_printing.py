"""Names of models and files on terminals and in pipes: nothing in them is obeyed."""

from __future__ import annotations

import json
import os
import re

import onnx
import pytest
from click.testing import CliRunner
from onnx import helper

import serde
from serde.cli.commands import main
from serde.cli.printing import join_parts, style
from serde.errors import CONTROL, ConversionError, MalformedFile, Problem, Unconvertible
from testing.onnx_live import DIGITS
from tests.command import show_command

# A clipboard, a title, a clear screen, a colour, C1, bells, directions, new lines of one's own.
EVIL = (
    "\x1b]52;c;cHduZWQ=\x07\x1b]0;PWN\x07\x1b[2J\x1b[32mverified\x1b[0m\rok\x9b31m\u202egnp\u2066\x7f"
    "\nserde: forged\n  forged"
)
OBEYED = re.compile(f"[{CONTROL}]")


def write_model(path, op="Relu"):
    node = helper.make_node(op, [f"in{EVIL}"], [f"out{EVIL}"], name=f"node{EVIL}")
    graph = helper.make_graph(
        [node], f"graph{EVIL}",
        [helper.make_tensor_value_info(f"in{EVIL}", 1, [f"N{EVIL}", 3])],
        [helper.make_tensor_value_info(f"out{EVIL}", 1, None)],
    )  # fmt: skip
    opsets = [helper.make_opsetid("", 17)]
    onnx.save(helper.make_model(graph, opset_imports=opsets, ir_version=8), path)


def write_symbol(path):
    nodes = [
        {"op": "null", "name": f"x{EVIL}", "inputs": [], "attrs": {"__shape__": "(2, 3)"}},
        {"op": f"Evil{EVIL}", "name": f"e{EVIL}", "inputs": [[0, 0, 0]],
         "attrs": {f"a{EVIL}": f"b{EVIL}"}},
    ]  # fmt: skip
    path.write_text(json.dumps({"nodes": nodes, "arg_nodes": [0], "heads": [[1, 0, 0]]}))


COMMANDS = (
    "convert a.onnx -o o.onnx", "convert a.onnx -o o.relay", "check a.onnx", "check bad.onnx",
    "check bad.onnx --debug", "convert bad.onnx -o o.onnx", "inspect a.onnx",
    "inspect a.onnx --values", "inspect FILE", "inspect MISSING", "check a.onnx --backend openvino",
    "check m-symbol.json", "inspect m-symbol.json", "partition a.onnx -o parts --backend openvino",
    "compare a.onnx a.onnx", "repair a.onnx -o r.onnx", "convert a.onnx -o o.onnx --input zz=1",
    "convert a.onnx -o o.onnx --outputs EVIL", "convert a.onnx -o o.onnx --set-input EVIL=1",
    "migrate folder -o out --jobs 1", "inspect a.onnx --json", "check bad.onnx --json",
    "verify-hash a.onnx", "convert a.onnx -o o.onnx --verify layers", "EVIL", "inspect --EVIL",
    "convert a.onnx -o EVIL/o.onnx", "convert a.onnx -o EVIL", "convert a.onnx -o o.onnx --data FILE",
    "check a.onnx --backend EVIL", "wrap a.onnx -o o.onnx --pre EVIL:f", "join a.onnx bad.onnx -o j.onnx",
    "view a.onnx --no-browser -o v.html", "run a.onnx --data FILE", "run FILE --data FILE -o o.npz", "check a.onnx --to EVIL", "convert a.onnx -o o.onnx --report EVIL",
)  # fmt: skip


@pytest.fixture
def folder(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    write_model("a.onnx")
    write_model("bad.onnx", f"Evil{EVIL}")
    write_symbol(tmp_path / "m-symbol.json")
    os.makedirs("folder")
    name = EVIL.replace("/", "_")
    write_model(f"folder/{name}.onnx", f"Evil{EVIL}")
    (tmp_path / name).write_bytes(b"garbage")
    return tmp_path


@pytest.mark.skipif(os.name != "posix", reason="names that other systems do not take")
@pytest.mark.parametrize("color", [False, True])
@pytest.mark.parametrize("command", COMMANDS)
def test_no_command_prints_what_a_terminal_obeys(folder, command, color):
    words = [w.replace("FILE", EVIL.replace("/", "_")).replace("MISSING", f"no{EVIL}")
              .replace("EVIL", EVIL) for w in command.split()]  # fmt: skip
    result = CliRunner().invoke(main, words, color=color)
    lines = re.sub(r"\x1b\[(?:0|3[1-6])m", "", result.output) if color else result.output
    assert lines and OBEYED.search(lines) is None
    assert not any(
        line.lstrip().startswith(("serde: forged", "forged")) for line in lines.split("\n")
    )
    if color:  # the colour of a name's own would be one of these
        assert "\x1b[32mverified" not in result.output


def test_colours_are_those_of_the_command_alone():
    line = join_parts("\x1b[31mname ", style("pa\x1bss", "green"), " \x1b[0m")
    assert line == "\\x1b[31mname \x1b[32mpa\\x1bss\x1b[0m \\x1b[0m"


ERRORS = (
    ConversionError(f"x{EVIL}"), MalformedFile(f"path{EVIL}", f"reason{EVIL}", f"place{EVIL}"),
    Unconvertible(f"stage{EVIL}", [Problem(EVIL, {EVIL: EVIL}, EVIL, (EVIL,))]),
)  # fmt: skip


@pytest.mark.parametrize("error", ERRORS, ids=lambda e: type(e).__name__)
def test_the_text_of_errors_can_be_logged(error):
    text = str(error)
    assert OBEYED.search(text) is None
    assert all(line.startswith(("  Evil", "  \\x1b")) for line in text.split("\n")[1:])


def test_the_text_of_a_graph_can_be_printed(folder):
    text = str(serde.load("a.onnx"))
    assert OBEYED.search(text) is None
    assert len(text.split("\n")) == 3


REPORTS = ("html", "md", "json")


@pytest.mark.parametrize("kind", REPORTS)
@pytest.mark.parametrize("source", ["a.onnx", "bad.onnx", "m-symbol.json"])
def test_reports_hold_no_controls(folder, kind, source):
    CliRunner().invoke(main, ["check", source, "--report", f"r.{kind}"])
    text = (folder / f"r.{kind}").read_text()
    assert OBEYED.search(text) is None
    if kind == "json":
        json.loads(text)


def test_tables_of_a_migration_hold_no_controls(folder):
    CliRunner().invoke(main, ["migrate", "folder", "-o", "out", "--jobs", "1"])
    for kind in ("html", "json", "csv"):
        text = (folder / "out" / f"migration.{kind}").read_bytes().decode()
        assert OBEYED.search(text.replace("\r\n", "\n")) is None


RED, GREEN = "\x1b[31m", "\x1b[32m"


class TestColours:
    def test_pass_and_fail_are_coloured_on_a_terminal_only(self, tmp_path):
        convert = ("convert", DIGITS, "-o", tmp_path / "d.onnx")
        show_command(*convert)
        arguments = ("compare", tmp_path / "d.onnx", tmp_path / "d.onnx")
        code, out = show_command(*arguments, color=True)
        assert code == 0 and f"{GREEN}pass" in out
        code, out = show_command(*arguments)
        assert code == 0 and "\x1b" not in out

    def test_no_color_turns_them_off(self, tmp_path):
        code, out = show_command("convert", DIGITS, "-o", tmp_path / "d.onnx", color=True)
        assert "\x1b[36mnext" in out
        code, out = show_command(
            "convert", DIGITS, "-o", tmp_path / "d.onnx", color=True, env={"NO_COLOR": "1"}
        )
        assert code == 0 and "\x1b" not in out and "next: onnxruntime" in out
