"""What is documented is so: the README's commands run, pages are complete, examples are real."""

from __future__ import annotations

import json
import re
import shlex
import shutil
import tarfile
from itertools import product
from pathlib import Path

import numpy as np
import onnx
import pytest
from click.testing import CliRunner

from serde.cli.commands import main
from serde.formats.relay.io.params import write_params
from serde.ir.graph import Tensor
from serde.plugins import format_names
from serde.plugins.consumer import EVERY
from serde.plugins.targets import consumer_names, get_consumer
from testing.mxnet_live import live_mxnet
from testing.onnx_live import model_of
from testing.relax.relax_live import RELAX
from testing.relay import tvm_live

ROOT = Path(__file__).resolve().parents[2]
DOCS = ROOT / "docs"
FENCE = re.compile(r"^```(\w+)\n(.*?)^```$", re.MULTILINE | re.DOTALL)


def blocks(path, language):
    return [text for kind, text in FENCE.findall(path.read_text()) if kind == language]


PAGES = [ROOT / "README.md", *sorted(DOCS.rglob("*.md"))]
LINK = re.compile(r"\]\(([^)#\s]+)(?:#[^)]*)?\)")
CODE = re.compile(r"`([^`\n]+)`")
OF_THE_REPOSITORY = re.compile(
    r"(?:serde|backends|formats|bridges|tests|testing|conformance|benchmarks|docs|examples)/[\w./-]*|[\w./-]+\.py"
)  # a path from the root of the checkout


def prose(path):
    """A page without its blocks of code."""
    return FENCE.sub("", path.read_text())


def by_name(path):
    return str(path.relative_to(ROOT))


@pytest.mark.parametrize("page", PAGES, ids=by_name)
def test_links_lead_somewhere(page):
    for target in LINK.findall(prose(page)):
        assert "://" in target or (page.parent / target).exists(), target


@pytest.mark.parametrize("page", PAGES, ids=by_name)
def test_paths_and_modules_of_the_repository_exist(page):
    """Every path in backquotes, from the root of the checkout, and every ``python -m MODULE``."""
    quoted = [code.partition(": ")[0] for code in CODE.findall(prose(page))]
    missing = [p for p in quoted if OF_THE_REPOSITORY.fullmatch(p) and not (ROOT / p).exists()]
    commands = re.findall(r"python3? -m ([a-z_]+\.[\w.]+|conformance|benchmarks)", page.read_text())
    modules = [ROOT / name.replace(".", "/") for name in commands]
    missing += [m.name for m in modules if not m.exists() and not m.with_suffix(".py").exists()]
    assert not missing


def test_every_page_can_be_reached_from_the_index():
    reached, ahead = set(), [DOCS / "index.md"]
    while ahead:
        page = ahead.pop()
        if page in reached or page.suffix != ".md" or not page.exists():
            continue
        reached.add(page)
        ahead += [(page.parent / t).resolve() for t in LINK.findall(prose(page))]
    assert set(DOCS.rglob("*.md")) <= reached


def test_every_target_and_format_is_described():
    for page, names in (
        ("targets", [*consumer_names(), *format_names()]),
        ("formats", format_names()),
    ):
        rows = re.findall(r"^\| (`.*?) \|", (DOCS / "reference" / f"{page}.md").read_text(), re.M)
        described = set(re.findall(r"`(?:--profile )?([\w-]+)`", " ".join(rows)))
        assert set(names) <= described
    text = (DOCS / "reference" / "targets.md").read_text()
    line = r"^\| .*?`(?:--profile )?([\w-]+)`\)? \| ONNX.*? \| (\d+)(?: \((\d+) to (\d+)\))? \|"
    described = {name: numbers for name, *numbers in re.findall(line, text, re.M)}
    assert {n: int(v) for n, (v, *_) in described.items()} == {
        n: get_consumer(n).default_opset() for n in consumer_names("onnx")
    }
    for name in consumer_names("onnx"):
        opsets = get_consumer(name).known_opsets()
        is_any = opsets in (None, EVERY) or len(opsets) == 1
        ends = ("", "") if is_any else (str(opsets[0]), str(opsets[-1]))
        assert tuple(described[name][1:]) == ends


def sources(*folders):
    return "\n".join(p.read_text() for f in folders for p in sorted((ROOT / f).rglob("*.py")))


@pytest.mark.parametrize("block", blocks(DOCS / "how-to" / "add-a-format.md", "python"))
def test_the_tutorial_of_formats_quotes_the_toy(block):
    assert block in sources("tests/plugin/toy", "tests/plugin/slate")


def test_the_tutorial_of_formats_quotes_the_entry_point():
    (block,) = blocks(DOCS / "how-to" / "add-a-format.md", "toml")
    assert block in (ROOT / "tests/plugin/toy/pyproject.toml").read_text()


@pytest.mark.parametrize("block", blocks(DOCS / "how-to" / "add-an-operator.md", "python")[1:])
def test_the_tutorial_of_operators_quotes_rules_and_cases(block):
    assert block in sources(
        "formats/mxnet/ops", "serde/version_converter/adapters", "tests/mxnet/ops"
    )


def test_the_tutorial_of_operators_asks_mxnet():
    live_mxnet()
    scope: dict = {}
    exec(blocks(DOCS / "how-to" / "add-an-operator.md", "python")[0], scope)
    (y,) = scope["outputs"]
    np.testing.assert_allclose(y, [0, 0.5, 1])


def test_the_graph_that_is_printed_is_real():
    from serde.passes import tidy
    from testing.onnx_live import ir_of

    graph = ir_of(
        "g (float[N,3,8] x) => (float[] y) <int64 zero = {0}, int64[1] at = {0}, int64[1] m = {-1}>"
        "{ s = Shape(x)\n n = Gather(s, zero)\n u = Unsqueeze(n, at)\n"
        "  t = Concat<axis=0>(u, m)\n y = Reshape(x, t) }"
    )
    assert f"```\n{tidy(graph)}\n```" in (DOCS / "reference" / "ir.md").read_text()


def conv_net(folder):
    """An MXNet model that takes images of any size: a symbol and its parameters."""

    def node(op, name, *inputs, **attrs):
        return {"op": op, "name": name, "inputs": [[i, 0, 0] for i in inputs], "attrs": attrs}

    nodes = [
        node("null", "data"), node("null", "conv_weight"), node("null", "conv_bias"),
        node("Convolution", "conv", 0, 1, 2, kernel="(3, 3)", num_filter="4"),
        node("Pooling", "pool", 3, global_pool="True", kernel="(1, 1)", pool_type="avg"),
        node("null", "fc_weight"), node("null", "fc_bias"),
        node("FullyConnected", "fc", 4, 5, 6, num_hidden="2"),
    ]  # fmt: skip
    text = json.dumps({"nodes": nodes, "arg_nodes": [0, 1, 2, 5, 6], "heads": [[7, 0, 0]],
                       "attrs": {"mxnet_version": ["int", 10901]}})  # fmt: skip
    rng = np.random.default_rng(0)
    shapes = {"conv_weight": (4, 3, 3, 3), "conv_bias": (4,), "fc_weight": (2, 4), "fc_bias": (2,)}
    arrays = {n: rng.standard_normal(s).astype(np.float32) for n, s in shapes.items()}
    (folder / "model-symbol.json").write_text(text)
    with (folder / "model-0000.params").open("wb") as file:
        np.savez(file, **arrays)
    return text, arrays


@pytest.fixture
def workplace(tmp_path, monkeypatch):
    """A folder with everything that the commands name."""
    conv_net(tmp_path)
    (tmp_path / "model").mkdir()
    conv_net(tmp_path / "model")
    with tarfile.open(tmp_path / "model.tar.gz", "w:gz") as tar:
        tar.add(tmp_path / "model", "model")
    onnx.save(
        model_of("g (float[N,3] x) => (float[N,3] y) { y = Softmax(x) }", 11, 6),
        tmp_path / "old.onnx",
    )
    (tmp_path / "module.relay").write_text(RELAY)
    weight = Tensor.of(np.ones((2, 3), np.float32))
    write_params({"w": weight}, tmp_path / "p.params")
    monkeypatch.chdir(tmp_path)
    return tmp_path


RELAY = """#[version = "0.0.5"]
def @main(%x: Tensor[(1, 3), float32], %w: Tensor[(2, 3), float32]) {
  nn.relu(nn.dense(%x, %w, units=2))
}
"""


DIRECTIONS = DOCS / "how-to" / "convert-between-formats.md"


def commands_of(page):
    """The commands of a page, in its blocks and in its tables."""
    lines = "".join(blocks(page, "sh")).splitlines()
    table = re.findall(r"^\|.*\|$", page.read_text(), re.MULTILINE)
    lines += [c for row in table for c in re.findall(r"`([^`]+)`", row)]
    return [line.partition("#")[0].strip() for line in lines if line.startswith("serde ")]


@pytest.mark.parametrize("line", commands_of(DIRECTIONS))
def test_the_commands_of_directions_run(workplace, line):
    if "--verify" in line:
        live_mxnet()
    result = CliRunner().invoke(main, shlex.split(line)[1:])
    assert result.exit_code == 0, result.output
    if match := re.search(r"-o (\S+)", line):
        assert_loads(match[1])
    if "--verify" in line:
        assert result.output.endswith(": pass\n")


def test_the_page_about_backends_shows_what_is_there(tmp_path):
    """Its backend is the example's, its picture that of the command."""
    page = DOCS / "how-to" / "partition-a-model.md"
    toml = ROOT / "examples/backends/toy.toml"
    assert blocks(page, "toml") == [toml.read_text()]
    picture = str(tmp_path / "parts.svg")
    command = ["partition", str(ROOT / "examples/digits"), "-o", str(tmp_path / "parts")]
    result = CliRunner().invoke(main, [*command, "--backend", str(toml), "--svg", picture])
    assert result.exit_code == 0, result.output
    assert Path(picture).read_text() == (DOCS / "images" / "partition.svg").read_text()


def assert_loads(path):
    """What was written is taken by its framework."""
    if path.endswith(".onnx"):
        onnx.checker.check_model(path, full_check=True)
        if path == "relax.onnx":
            assert RELAX.ask("functions", str(Path(path).absolute())) == ["main"]
    elif path.endswith("-symbol.json"):
        model = live_mxnet().model.load_checkpoint(path.removesuffix("-symbol.json"), 0)
        assert set(model[1]) < set(model[0].list_arguments())
    else:
        form = "json" if path.endswith(".json") else "text"
        assert "def @main" in tvm_live.ask("text_of", [form, Path(path).read_text()])


def test_there_are_commands_for_all_directions():
    pairs = {tuple(kind(p) for p in re.search(r"convert (\S+) .*-o (\S+)", c).groups())
             for c in commands_of(DIRECTIONS) if c.startswith("serde convert")}  # fmt: skip
    assert len(pairs & set(product(("mxnet", "onnx", "relay"), repeat=2))) == 9


def kind(path):
    """The format a file is in, by its name."""
    ends = {"-symbol.json": "mxnet", ".onnx": "onnx", ".relay": "relay", ".json": "relay"}
    return next((f for end, f in ends.items() if path.endswith(end)), "other")


@pytest.mark.parametrize("block", blocks(DIRECTIONS, "python"))
def test_the_code_of_directions_runs(workplace, block):
    scope = {}
    if "mxnet" in block and "serde.bridges" in block:
        mx = live_mxnet()
        text, arrays = conv_net(workplace)
        scope = {
            "sym": mx.sym.load_json(text),
            "params": {n: mx.nd.array(a) for n, a in arrays.items()},
        }
    exec(block, scope)
    assert list(workplace.glob("model.onnx"))


def test_the_first_command_of_the_readme_ends_in_the_example(tmp_path, monkeypatch, capsys):
    """Its last part; setting up an environment is what the checks themselves began with."""
    first = blocks(ROOT / "README.md", "sh")[0]
    assert first.rstrip().endswith("python examples/digits/convert.py")
    shutil.copytree(ROOT / "examples" / "digits", tmp_path / "digits")
    scope = {"__name__": "example", "__file__": str(tmp_path / "digits" / "convert.py")}
    exec((tmp_path / "digits" / "convert.py").read_text(), scope)
    scope["main"]()
    out = capsys.readouterr().out
    (shown,) = re.findall(
        r"^```text\n(converted.*?)^```$", (ROOT / "README.md").read_text(), re.M | re.S
    )
    rounding = r"[\d.]+e-0\d$"  # which processors differ in
    assert re.sub(rounding, "", shown, flags=re.M) == re.sub(rounding, "", out, flags=re.M)
    before, after = re.findall(r"accuracy in .*: +([\d.]+) %", out)
    assert before == after and float(before) > 95


def test_the_second_command_of_the_readme_is_what_ci_runs():
    assert "python3 tests/run.py" in blocks(ROOT / "README.md", "sh")[1]
    assert "python3 tests/run.py" in (ROOT / ".ci" / "run").read_text()
