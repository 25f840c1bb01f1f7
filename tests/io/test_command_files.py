"""No command writes over a file that it has read, whatever the file and however it is named."""

from __future__ import annotations

import os
import shutil
from pathlib import Path

import numpy as np
import onnx
import pytest
from click.testing import CliRunner

import serde
from serde.api.migrate import migrate
from serde.cli.commands import main
from serde.errors import UsageError
from serde.io.atomic_write import Replacing
from serde.io.command_files import CommandFiles, active_files, within_command
from testing.onnx_live import model_of

DIGITS = Path(__file__).resolve().parents[2] / "examples" / "digits"
PREPARE = "import numpy as np\ndef scale(x):\n    return x * np.float32(2)\n"
BACKEND = 'name = "b"\nopset = 13\n[[operators]]\nnames = ["Relu"]\n'
# For each command its arguments, and the files that it reads; {} is the output under test.
COMMANDS = {
    "convert report": ("convert digits-symbol.json -o new.onnx --report {}",
                       ["digits-symbol.json", "digits-0010.params"]),
    "convert onnx report": ("convert m.onnx -o new-symbol.json --report {}", ["m.onnx", "weights"]),
    "convert relay report": ("convert r.relay -o new.onnx --report {}", ["r.relay", "r.params"]),
    "convert archive report": ("convert m.tar.gz -o new.onnx --report {}", ["m.tar.gz"]),
    "convert archive": ("convert m.tar.gz --to onnx -o {}", ["m.tar.gz"]),
    "convert params report": ("convert digits-symbol.json --params given -o new.onnx --report {}",
                              ["given", "digits-symbol.json"]),
    "convert params": ("convert digits-symbol.json --params given --to onnx -o {}", ["given"]),
    "convert weights": ("convert m.onnx --to onnx -o {}", ["weights"]),
    "convert beside": ("convert digits-symbol.json --to onnx -o {}", ["digits-0010.params"]),
    "convert named by weights": ("convert digits-0010.params --to onnx -o {}",
                                 ["digits-0010.params"]),
    "convert data": ("convert m.onnx --data in.npz --to onnx -o {}", ["in.npz"]),
    "convert expected": ("convert m.onnx --data in.npz --expected out.npz -o new.onnx --report {}",
                         ["in.npz", "out.npz"]),
    "convert value": ("convert m.onnx --set-input x=x.npy -o new.onnx --report {}", ["x.npy"]),
    "convert value later": ("convert m.onnx --report {} --set-input x=x.npy -o new.onnx",
                            ["x.npy"]),
    "check report": ("check digits-symbol.json --report {}",
                     ["digits-symbol.json", "digits-0010.params"]),
    "compare report": ("compare m.onnx n.onnx --data in.npz --report {}",
                       ["m.onnx", "n.onnx", "weights", "in.npz"]),
    "partition picture": ("partition m.onnx -o parts --backend b.toml --svg {}",
                          ["m.onnx", "weights", "b.toml"]),
    "partition data": ("partition m.onnx -o parts --backend b.toml --data in.npz --svg {}",
                       ["in.npz"]),
    "run": ("run made --data in.npz -o {}", ["made/manifest.json", "made/remainder_9.onnx", "in.npz"]),
    "join": ("join m.onnx n.onnx -o {}", ["m.onnx", "n.onnx", "weights"]),
    "convert labels": ("convert i.onnx --labels classes --to onnx -o {}", ["classes"]),
    "convert labels report": ("convert i.onnx --labels classes -o new.onnx --report {}",
                              ["classes"]),
    "wrap": ("wrap m.onnx --pre prepare.py:scale -o {}", ["m.onnx", "weights", "prepare.py"]),
    "repair": ("repair m.onnx -o {}", ["weights"]),
}  # fmt: skip
CASES = [(name, file) for name, (_, files) in COMMANDS.items() for file in files]
ALIASES = ["itself", "hard link", "symbolic link", "path"]


@pytest.fixture
def folder(tmp_path, monkeypatch):
    """Models of all formats, with weights beside them, and other inputs."""
    monkeypatch.chdir(tmp_path)
    for name in ("digits-symbol.json", "digits-0010.params"):
        shutil.copy(DIGITS / name, tmp_path)
    shutil.copy("digits-0010.params", "given")
    shutil.make_archive("m", "gztar", DIGITS)
    rng = np.random.default_rng(0)
    weights = rng.standard_normal((40, 40)).astype("f")
    body = "g (float[1,40] x) => (float[1,40] y) { a = MatMul(x, w)  y = Relu(a) }"
    for name, location in {"m.onnx": "weights", "n.onnx": "more", "r.onnx": "more.r"}.items():
        model = model_of(body, 13, 7)
        model.graph.initializer.append(onnx.numpy_helper.from_array(weights, "w"))
        onnx.save(model, name, save_as_external_data=True, location=location)
    serde.convert("r.onnx", "r.relay")
    np.savez("in.npz", x=np.ones((1, 40), "f"))
    np.savez("out.npz", y=np.maximum(np.ones((1, 40), "f") @ weights, 0))
    np.save("x.npy", np.ones((1, 40), "f"))
    onnx.save(model_of("g (float[1,3] x) => (float[1,3] y) { y = Relu(x) }", 13, 7), "i.onnx")
    Path("classes").write_text("a\nb\nc\n")
    Path("prepare.py").write_text(PREPARE)
    Path("b.toml").write_text(BACKEND)
    from serde.backends.partition import partition

    manifest = partition("m.onnx", "b.toml").save("made")
    os.rename(Path("made", next(iter(manifest.parts[0].files))), "made/remainder_9.onnx")
    text = Path("made/manifest.json").read_text()
    Path("made/manifest.json").write_text(text.replace(next(iter(manifest.parts[0].files)),
                                                       "remainder_9.onnx"))  # fmt: skip
    return tmp_path


def contents(folder):
    return {str(p): p.read_bytes() for p in folder.rglob("*") if p.is_file()}


def make_alias(file, kind, suffix):
    """Another path of a file, which a command takes for its output."""
    path = Path(f"{kind.replace(' ', '-')}{suffix}")
    if kind == "itself" and file.endswith(suffix):
        return file
    if kind == "path" and file.endswith(suffix):
        return str(Path("made/..", file).resolve())
    if kind == "symbolic link":
        path.symlink_to(file)
    else:
        os.link(file, path)
    return str(path)


@pytest.mark.parametrize("alias", ALIASES)
@pytest.mark.parametrize(("name", "file"), CASES)
def test_no_command_writes_over_what_it_reads(folder, name, file, alias):
    text = COMMANDS[name][0]
    suffix = ".npz" if name == "run" else ".json" if "--report" in text else ""
    suffix = ".onnx" if name in ("join", "wrap", "repair") else suffix
    output = make_alias(file, alias, suffix)
    before = contents(folder)
    result = CliRunner().invoke(main, text.format(output).split())
    assert result.exit_code == 2, result.output
    after = contents(folder)
    assert {p: after.get(p) for p in before} == before
    assert not [p for p in after if "/new" in p]  # nothing was written before the refusal


@pytest.mark.parametrize("alias", ["itself", "symbolic link", "path"])
@pytest.mark.parametrize(
    "command", ["convert m.onnx -o {}", "repair m.onnx -o {}", "convert m.onnx -o {} --verify"]
)
def test_a_model_is_converted_in_place(folder, command, alias):
    output = make_alias("m.onnx", alias, ".onnx")
    result = CliRunner().invoke(main, command.format(output).split())
    assert result.exit_code == 0, result.output
    assert serde.load(output).metadata.get("producer", "serde") is not None


def test_a_pair_is_replaced_by_its_prefix(folder):
    options = "--write-epoch 10 -o digits-symbol.json"
    result = CliRunner().invoke(main, f"convert digits {options}".split())
    assert result.exit_code == 0, result.output
    assert serde.convert("digits-symbol.json", "d.onnx").ok


BESIDE = {  # of each result, what comes beside it
    "o.onnx": ("o.onnx.data", {"external_data": "always"}), "o-symbol.json": ("o-0000.params", {}),
    "o.relay": ("o.params", {}), "o.py": ("o.safetensors", {}),
}  # fmt: skip


@pytest.mark.parametrize("target", BESIDE)
def test_what_lies_beside_no_model_is_of_something_else(folder, target):
    """A checkpoint under the name that the weights of the result would have."""
    name, options = BESIDE[target]
    Path(name).write_bytes(b"a checkpoint")
    before = contents(folder)
    with pytest.raises(UsageError, match=f"{name} is there without {target}.*: move it away"):
        serde.convert("m.onnx", target, **options)
    assert contents(folder) == before
    os.unlink(name)
    serde.convert("m.onnx", target, **options)
    weights = Path(name).read_bytes()
    serde.convert("m.onnx", target, **options)  # a result is replaced with its weights
    os.unlink(target)
    serde.convert("m.onnx", target, **options)  # the same weights are those of the result
    Path(target).rename(f".{target}.0123456789ab.part.before")
    Path(name).write_bytes(b"of a process that was killed")
    serde.convert("m.onnx", target, **options)
    assert Path(name).read_bytes() == weights


def test_a_pair_that_another_model_shares_weights_with_is_not_replaced(folder):
    shutil.copy("digits-symbol.json", "given-symbol.json")
    shutil.copy("given", "given-0000.params")
    before = contents(folder)
    command = "convert digits-symbol.json --params given-0000.params -o given-symbol.json"
    result = CliRunner().invoke(main, command.split())
    assert result.exit_code == 2 and "given-0000.params is a file of the source" in result.output
    assert contents(folder) == before


@pytest.mark.parametrize(
    "command",
    ["convert m.onnx -o a-symbol.json --report a-symbol.json",
     "partition m.onnx -o parts --backend b.toml --svg parts/manifest.json"],
)  # fmt: skip
def test_two_outputs_are_two_files(folder, command):
    result = CliRunner().invoke(main, command.split())
    assert result.exit_code == 2
    manifest = Path("parts/manifest.json")
    assert not manifest.exists() or manifest.read_text().startswith("{")


@pytest.mark.parametrize("alias", ALIASES)
@pytest.mark.parametrize("name", ["manifest.json", "accelerator_0.onnx", "remainder_0.onnx"])
def test_no_picture_takes_the_place_of_a_part(folder, name, alias):
    command = "partition m.onnx -o parts --backend b.toml"
    assert CliRunner().invoke(main, command.split()).exit_code == 0
    output = make_alias(f"parts/{name}", alias, "")
    before = contents(folder)
    result = CliRunner().invoke(main, [*command.split(), "--svg", output])
    assert result.exit_code == 2 and "is no picture of serde" in result.output
    assert contents(folder) == before


@pytest.mark.parametrize("command", [
    "convert m.onnx -o new.onnx --report r.json", "convert . --from mxnet -o new.onnx --report r.html",
    "convert r.relay -o new.relay --report r.json", "check digits-symbol.json --report r.json",
    "partition m.onnx -o parts --backend b.toml --svg p.svg", "run made --data in.npz -o o.npz",
    "compare m.onnx n.onnx --report r.json", "join m.onnx n.onnx -o new.onnx",
    "convert m.onnx -o new.onnx --external-data always",
])  # fmt: skip
def test_a_command_can_be_given_again(folder, command):
    for name in ("m.tar.gz", "given"):
        Path(name).unlink()
    for _ in range(2):
        result = CliRunner().invoke(main, command.split())
        assert result.exit_code == 0, result.output


def test_reports_and_partitions_of_python_spare_the_model(folder):
    from serde.backends.partition import partition

    shutil.copy("m.onnx", "model.json")
    before = contents(folder)
    reports = [serde.check("digits-symbol.json"), serde.convert("digits-symbol.json", "new.onnx")]
    for report in reports:
        with pytest.raises(UsageError, match="is a file of the source"):
            report.save("digits-symbol.json")
        report.save("r.json")
        report.save("r.json")
    with pytest.raises(UsageError, match="is a file of the source"):
        partition("made/remainder_9.onnx", "b.toml").save("made")
    after = contents(folder)
    assert {p: after.get(p) for p in before} == before


# What is loaded, and the file of its weights that is no model by itself.
MAPPED = {"m.onnx": "weights", "digits-symbol.json": "digits-0010.params", "r.relay": "r.params"}


@pytest.mark.parametrize("alias", ALIASES)
@pytest.mark.parametrize("source", MAPPED)
@pytest.mark.parametrize("format", ["onnx", "mxnet", "relay"])
def test_a_graph_is_not_saved_over_the_weights_that_it_reads(folder, source, alias, format):
    graph = serde.load(source)
    output = make_alias(MAPPED[source], alias, "")
    before = contents(folder)
    with pytest.raises(UsageError, match="is a file of the source|-symbol.json"):
        serde.save(graph, output, format=format)
    assert contents(folder) == before


@pytest.mark.parametrize("change", [
    lambda g: serde.load(g, fp16=True), lambda g: serde.compose("n.onnx", g),
    lambda g: serde.select(g, [g.outputs[0].name]), lambda g: serde.wrap(g, post=lambda y: y + 1),
    lambda g: serde.rename(g, {g.outputs[0].name: "z"}),
])  # fmt: skip
def test_a_graph_made_of_another_knows_its_files(folder, change):
    graph = change(serde.load("m.onnx"))
    before = contents(folder)
    for save in (serde.save, serde.convert):
        options = {"format": "onnx"} if save is serde.save else {"to_format": "onnx"}
        with pytest.raises(UsageError, match="weights is a file of the source"):
            save(graph, "weights", **options)
    assert contents(folder) == before


def test_a_graph_is_not_partitioned_over_what_it_reads(folder):
    from serde.backends.partition import partition

    before = contents(folder)
    with pytest.raises(UsageError, match="is a file of the source"):
        partition(serde.load("made/remainder_9.onnx"), "b.toml").save("made")
    assert contents(folder) == before


def test_a_graph_is_not_saved_over_weights_beside_another_model(folder):
    """The other model is replaced; what becomes of its weights is the graph's."""
    shutil.copy("n.onnx", "a.onnx")
    shutil.copy("weights", "a.params")
    text = Path("m.onnx").read_bytes().replace(b"weights", b"a.param")
    Path("m.onnx").write_bytes(text)
    os.rename("a.params", "a.param")
    os.link("a.param", "a.params")
    graph = serde.load("m.onnx")
    before = contents(folder)
    serde.convert("n.onnx", "a-symbol.json")
    with pytest.raises(UsageError, match=r"a\.params is a file of the source"):
        serde.save(graph, "a.relay")
    after = contents(folder)
    assert {p: after.get(p) for p in before} == before


@pytest.mark.parametrize("source", [*MAPPED, "inside.onnx"])
def test_a_graph_is_saved_in_place(folder, source):
    serde.convert("m.onnx", "inside.onnx")
    expected = {v.name: v.array() for v in serde.load(source, copy=True).constants()}
    options = {"write_epoch": 10} if source.startswith("digits") else {}
    for _ in range(2):
        serde.save(serde.load(source), source, **options)
    saved = {v.name: v.array() for v in serde.load(source).constants()}
    assert {a.tobytes() for a in expected.values()} <= {a.tobytes() for a in saved.values()}


def test_what_is_only_looked_at_may_be_written_over(folder):
    """A folder is looked through for its symbol: results of before are no part of the model."""
    with within_command() as files:
        serde.load(folder, format="mxnet", params="given")
        files.refuse_target("m.onnx")
        with pytest.raises(UsageError):
            files.refuse_target("given")


def test_a_block_within_another_shares_its_files(tmp_path):
    path = tmp_path / "a"
    path.write_bytes(b"a")
    with within_command():
        with within_command(CommandFiles()):
            active_files().enter(path)
        with pytest.raises(UsageError, match="is read by this command"):
            Replacing(str(path))
    Replacing(str(path))


NOT_NAMES = ("a\0.onnx", "a\ud800.onnx")
CALLS = {
    "load": lambda name, model: serde.load(name),
    "convert": lambda name, model: serde.convert(model, name),
    "save": lambda name, model: serde.save(serde.load(model), name),
    "report": lambda name, model: serde.convert(model, "t.onnx").save(f"{name}.html"),
    "data": lambda name, model: serde.convert(model, "t.onnx", verify=True, data=name),
    "edits": lambda name, model: serde.convert(model, "t.onnx", edits=f"{name}.toml"),
    "parts": lambda name, model: serde.partition(model, "onnxruntime").save(name),
    "backend": lambda name, model: serde.partition(model, f"{name}.toml"),
    "migrate": lambda name, model: migrate([model], name),
    "config": lambda name, model: migrate([model], "out", config=f"{name}.toml"),
}


@pytest.mark.parametrize("name", NOT_NAMES)
@pytest.mark.parametrize("call", CALLS.values(), ids=CALLS)
def test_what_is_no_name_of_a_file_is_refused(call, name, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    onnx.save(model_of("g (float[2] x) => (float[2] y) { y = Relu(x) }", 17, 8), "m.onnx")
    with pytest.raises(UsageError, match="is the name of no file: give another name"):
        call(name, "m.onnx")
