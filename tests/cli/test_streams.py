"""Standard streams and URLs in place of files."""

from __future__ import annotations

import hashlib
import json
import os
import shlex
import shutil
import subprocess
import sys
from functools import partial
from pathlib import Path

import fsspec
import numpy as np
import onnx
import pytest
from click.testing import CliRunner

from serde.cli.commands import main
from testing.onnx_live import model_of

DIGITS = Path(__file__).resolve().parents[2] / "examples" / "digits"
MODEL = model_of("g (float[N,3] x) => (float[N,3] y) { y = Relu(x) }", 17, 8).SerializeToString()


def serde(*arguments, given=b""):
    result = CliRunner().invoke(main, [str(a) for a in arguments], input=given)
    assert "Traceback" not in result.output
    return result.exit_code, result.stdout_bytes, result.stderr


@pytest.fixture(autouse=True)
def here(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)


def test_from_stream_to_stream():
    code, out, err = serde("convert", "-", "-o", "-", "--to", "onnx", "--verify", given=MODEL)
    assert (code, err) == (0, "")
    assert onnx.load_from_string(out).graph.node[0].op_type == "Relu"


def test_a_stream_is_read_like_a_file():
    code, out, _ = serde("convert", "-", "-o", "b.onnx", "--verify-strict", given=MODEL)
    assert code == 0 and out.startswith(b"- (onnx)") and out.endswith(b": pass\n")
    assert serde("inspect", "-", given=MODEL)[1].startswith(b"-: onnx opset 17, 1 nodes")
    assert serde("check", "-", given=MODEL)[1].startswith(b"-: everything converts to onnx")
    assert serde("run", "-", given=MODEL)[1] == b"  y: float32 [2, 3]\n"
    assert serde("view", "-", "-o", "p.html", "--no-browser", given=MODEL)[0] == 0
    assert "<title>-" in Path("p.html").read_text()
    code, _, err = serde("convert", "-", "-o", "b.onnx", given=b"nothing")
    assert code == 3 and err.startswith("serde: stdin ")
    code, _, err = serde("migrate", "-", "-o", "d")
    assert code == 3 and "there is no such file, folder or prefix" in err


COMMANDS = [
    ("bench", "{}", "--seconds", "0"), ("check", "{}", "--backend", "opset 13"),
    ("compare", "{}", "b.onnx"), ("compare", "b.onnx", "{}"), ("convert", "{}", "-o", "c.onnx"),
    ("inspect", "b.onnx", "{}"), ("join", "b.onnx", "{}", "-o", "c.onnx", "--connect", "y=x"),
    ("partition", "{}", "-o", "parts", "--backend", "opset 13"), ("repair", "{}", "-o", "c.onnx"),
    ("run", "{}"), ("verify-hash", "{}"), ("view", "{}", "-o", "p.html", "--no-browser"),
    ("wrap", "{}", "-o", "c.onnx", "--post", "numpy:negative"),
]  # fmt: skip


@pytest.fixture
def url(place):
    Path("a.onnx").write_bytes(MODEL)
    serde("convert", "a.onnx", "-o", "b.onnx", "--hash")
    where = f"{place}/models/b.onnx"
    with fsspec.open(where, "wb", auto_mkdir=True) as file:
        file.write(Path("b.onnx").read_bytes())
    return where


@pytest.mark.parametrize("command", COMMANDS, ids=lambda c: f"{c[0]}{c.index('{}')}")
def test_every_command_reads_streams_and_urls(command, url):
    """It calls them as the user does, and does what it does with a file."""
    for source, given in (("b.onnx", b""), ("-", Path("b.onnx").read_bytes()), (url, b"")):
        code, out, err = serde(*(a.format(source) for a in command), given=given)
        assert code == 0, err
        shown = out.decode() + err
        assert "serde-" not in shown
        assert source in shown or command[0] in ("compare", "join", "run", "view", "wrap")


def test_a_repaired_model_goes_where_it_is_to(url):
    """To a file as before, which a damaged source does not cost; to the stream alone; to a URL."""
    Path("notes.txt").write_text("notes")
    code, _, err = serde("repair", "a.onnx", "-o", "notes.txt")
    assert code == 2 and "is no model of ONNX" in err and Path("notes.txt").read_text() == "notes"
    code, out, err = serde("repair", "a.onnx", "-o", "-")
    assert code == 0 and onnx.load_from_string(out).graph.node[0].op_type == "Relu"
    assert "a.onnx → -" in err
    target = url.replace("b.onnx", "c.onnx")
    assert serde("repair", "a.onnx", "-o", target)[0] == 0
    assert onnx.load_from_string(fsspec.open(target, "rb").open().read()).graph.node
    inode = os.stat("a.onnx").st_ino
    assert serde("repair", "a.onnx", "-o", "d.onnx")[0] == 0 and os.stat("a.onnx").st_ino == inode


@pytest.mark.parametrize("command", [
    ("join", "a.onnx", "{}", "-o", "-", "--connect", "y=x"),
    ("wrap", "{}", "-o", "-", "--post", "code.py:negate"),
], ids=lambda c: c[0])  # fmt: skip
def test_models_that_are_made_of_others_go_to_the_stream_alone(command):
    """What the user's own code prints goes elsewhere."""
    Path("a.onnx").write_bytes(MODEL)
    Path("code.py").write_text("import numpy\ndef negate(y):\n print('hello')\n return -y\n")
    words = [a.format("-") for a in command]
    code, out, err = serde(*words, given=MODEL)
    assert (code, out) == (2, b"") and "-o - does not tell the format: name it" in err
    code, out, err = serde(*words, "--to", "onnx", given=MODEL)
    assert code == 0, err
    assert {n.op_type for n in onnx.load_from_string(out).graph.node} <= {"Relu", "Neg"}
    assert err == ("hello\n" if command[0] == "wrap" else "")


def test_other_files_that_are_read_may_be_at_urls(place):
    """Parameters, and the arrays to verify with; where there are none the URL is named."""
    url = f"{place}/in"
    np.savez("in.npz", data=np.zeros((2, 1, 8, 8), np.float32))
    with fsspec.open(f"{place}/out/in.npz", "wb") as file:
        file.write(Path("in.npz").read_bytes())
    shutil.copy(DIGITS / "digits-symbol.json", "d-symbol.json")
    params = ("--params", f"{url}/digits-0010.params")
    for command in (
        ("convert", "d-symbol.json", "-o", "d.onnx", *params), ("check", "d-symbol.json", *params),
        ("convert", "d.onnx", "-o", "e.onnx", "--data", f"{place}/out/in.npz"),
        ("run", "d-symbol.json", *params, "--data", f"{place}/out/in.npz"),
        ("compare", "d.onnx", "d-symbol.json", "--other-params", params[1]),
        ("partition", "d-symbol.json", "-o", "parts", "--backend", "opset 13", *params),
    ):  # fmt: skip
        code, out, err = serde(*command)
        assert code == 0, err
        assert "serde-" not in out.decode() + err
    import serde as package

    graph = package.load("d-symbol.json", params=params[1])
    assert all(v.tensor is None or v.tensor.load().size for v in graph.constants())
    code, _, err = serde(
        "convert", "d-symbol.json", "-o", "d.onnx", "--params", f"{url}/none.params"
    )
    assert code and "none.params: there is no" in err
    assert "serde-" not in err


def test_a_partition_is_written_to_this_machine(place):
    Path("a.onnx").write_bytes(MODEL)
    code, _, err = serde("partition", "a.onnx", "-o", f"{place}/p", "--backend", "opset 13")
    if place.startswith("file://"):
        assert code == 0 and Path(place.removeprefix("file://"), "p", "manifest.json").exists()
    else:
        assert code == 2 and "a partition is a folder of this machine, not at a URL" in err
    assert not list(Path().glob("*:"))


def test_one_model_is_in_the_stream():
    code, _, err = serde("compare", "-", "-", given=MODEL)
    assert code == 2 and "- is the standard input, which holds one model" in err


def test_functions_read_and_write_at_urls(url):
    """What they return does not depend on what was copied."""
    import serde

    weight = np.arange(4000, dtype=np.float32)  # which stays in the file when it is read
    model = model_of("g (float[N,4000] x) => (float[N,4000] y) { y = Mul(x, w) }", 17, 8)
    model.graph.initializer.append(onnx.numpy_helper.from_array(weight, "w"))
    onnx.save(model, "a.onnx")
    with fsspec.open(url, "wb") as file:
        file.write(Path("a.onnx").read_bytes())
    target = url.replace("b.onnx", "c.onnx")
    graph = serde.load(url)
    assert [w.rpartition("/")[2] for w in serde.save(graph, target)] == ["c.onnx"]
    prepared, joined = serde.prepare(target), serde.compose(url, target, {"y": "x"})
    wrapped = serde.wrap(url, post=np.negative)
    x = np.ones([2, 4000], np.float32)
    for run, expected in ((prepared, weight), (graph, weight), (partial(serde.run, target), weight),
                          (joined, weight**2), (wrapped, -weight)):  # fmt: skip
        (array,) = run({"x": x}).values()
        np.testing.assert_array_equal(array, x * expected)
    report = serde.check(url)
    path = url.removeprefix("file://")
    assert report.ok and report.source == path and url in report.provenance.call
    comparison = serde.compare(url, second="a.onnx")
    assert comparison.ok and comparison.first == path
    assert serde.verify("a.onnx", url).ok
    assert serde.partition(source=url, backend="opset 13").save("parts")


@pytest.mark.skipif(os.name != "posix", reason="a shell closes the streams")
@pytest.mark.parametrize("closed", ["<&-", ">&-", "2>&-", "<&- >&- 2>&-"])
def test_closed_streams_change_nothing(closed):
    """Nor does the result get what is printed, where it would be the file of that number."""
    Path("a.onnx").write_bytes(MODEL)
    command = f"{shlex.quote(sys.executable)} -m serde"
    for end, code in (("convert a.onnx -o b.onnx --verify", 0), ("inspect gone.onnx", 3)):
        done = subprocess.run(["sh", "-c", f"{command} {end} {closed}"], capture_output=True)
        assert done.returncode == code
        assert b"Traceback" not in done.stderr
        assert bool(done.stderr) == (code == 3 and "2>&-" not in closed)
    assert [n.op_type for n in onnx.load("b.onnx").graph.node] == ["Relu"]


@pytest.mark.skipif(not os.path.exists("/dev/full"), reason="there is no full device")
@pytest.mark.parametrize("command", ["convert a.onnx -o b.onnx --dequantize", "migrate a.onnx -o d",
                                     "convert gone.onnx -o b.onnx", "join a.onnx"])  # fmt: skip
@pytest.mark.parametrize("is_buffered", [True, False])
def test_where_errors_cannot_be_told_the_exit_code_is_what_it_is(command, is_buffered, monkeypatch):
    """A full stdout is an error of the system: results are lost."""
    Path("a.onnx").write_bytes(MODEL)
    line = f"{shlex.quote(sys.executable)} -m serde {command}"
    if not is_buffered:
        monkeypatch.setenv("PYTHONUNBUFFERED", "1")
    else:
        monkeypatch.delenv("PYTHONUNBUFFERED", raising=False)
    codes = []
    for end in (">/dev/null 2>/dev/null", ">/dev/null 2>/dev/full", ">/dev/full 2>err"):
        shutil.rmtree("d", ignore_errors=True)
        codes.append(subprocess.run(["sh", "-c", f"{line} {end}"]).returncode)
    right, full_errors, full_output = codes
    assert full_output == (right or 5)
    assert full_errors == right or (right, full_errors) == (2, 5)  # click's own message
    assert "Traceback" not in Path("err").read_text()


@pytest.mark.skipif(os.name != "posix", reason="no folder that is in use is removed")
def test_a_folder_that_is_gone():
    """Nothing is looked for in the working folder where nothing is named there."""
    model = Path("a.onnx").absolute()
    model.write_bytes(MODEL)
    code = "import os, runpy, sys; os.mkdir('d'); os.chdir('d'); os.rmdir('../d'); "
    code += "sys.argv[:1] = ['serde']; runpy.run_module('serde', run_name='__main__')"
    command = [sys.executable, "-c", code, "check", model, "--to", "relay"]
    done = subprocess.run(command, capture_output=True, text=True)
    assert (done.returncode, done.stderr) == (0, "")


@pytest.mark.parametrize(
    ("more", "reason"),
    [
        ((), "-o - does not tell the format: name it, as with --to onnx"),
        (("--to", "mxnet"), "the result is 2 files, and -o - writes one: name a file"),
    ],
)
def test_what_no_stream_takes(more, reason):
    source = model_of("g (float[N,3] x) => (float[N,3] y) <float[3] w = {1,2,3}> "
                      "{ y = Mul(x, w) }", 17, 8).SerializeToString()  # fmt: skip
    code, out, err = serde("convert", "-", "-o", "-", *more, given=source)
    assert (code, out) == (2, b"") and reason in err


@pytest.fixture(params=["file", "memory"])
def place(request, tmp_path):
    others = shutil.ignore_patterns("*.npz", "*.py", "*.onnx")  # the last is what the example makes
    shutil.copytree(DIGITS, tmp_path / "in", ignore=others)
    (tmp_path / "out").mkdir()
    if request.param == "file":
        yield tmp_path.as_uri()
        return
    system = fsspec.filesystem("memory")
    system.put(str(tmp_path / "in"), "/place/in", recursive=True)
    yield "memory://place"
    system.rm("/place", recursive=True)


def test_urls_are_read_and_written(place):
    url, target = f"{place}/in/digits-symbol.json", f"{place}/out/d-symbol.json"
    arguments = ("--input", "data=2,1,8,8", "--report", "r.json")
    code, out, err = serde("convert", url, "-o", target, *arguments)
    assert code == 0, err
    assert f"{url} (mxnet) → {target} in" in out.decode()
    names = [p.rpartition("/")[2] for p in fsspec.filesystem(place.partition(":")[0]).ls(
        f"{place}/out", detail=False)]  # fmt: skip
    assert sorted(names) == ["d-0000.params", "d-symbol.json"]
    found = json.loads(Path("r.json").read_text())["provenance"]
    for files, folder in ((found["source"], "in"), (found["result"], "out")):
        assert len(files) == 2 and all(f["sha256"] for f in files)
        local = str(Path(folder).resolve()) + "/"
        start = f"{place}/{folder}/" if place.startswith("memory") else local
        assert all(f["path"].startswith(start) for f in files)
    code, out, _ = serde("check", f"{place}/in", *arguments)
    assert code == 0 and out.startswith(place.encode())


def test_the_report_of_a_stream(tmp_path):
    code, _, err = serde("convert", "-", "-o", "-", "--to", "onnx", "--report", "r.json",
                         given=MODEL)  # fmt: skip
    report = json.loads(Path("r.json").read_text())
    assert code == 0, err
    assert (report["source"], report["target"], report["files"]) == ("-", "-", ["-"])
    (source,), (result,) = report["provenance"]["source"], report["provenance"]["result"]
    assert source["sha256"] == hashlib.sha256(MODEL).hexdigest() and result["sha256"]
    assert (source["path"], result["path"]) == ("stdin", "stdout.onnx")


def test_a_file_at_a_url_takes_no_place_of_another_output(tmp_path):
    shutil.copy(DIGITS / "digits-symbol.json", tmp_path)
    url = (tmp_path / "r.json").as_uri()
    code, _, err = serde("convert", "digits-symbol.json", "-o", url, "--report", "r.json")
    assert code == 2 and "are one file" in err
