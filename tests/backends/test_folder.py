"""A partition is written whole or not at all, and its folder can be used again."""

from __future__ import annotations

import errno
import json
import os
import shutil
import signal
import sys
from contextlib import suppress
from pathlib import Path

import numpy as np
import onnx
import pytest

from serde.backends import folder as partition_folder
from serde.backends.manifest import hash_file
from serde.backends.partition import partition
from serde.backends.runner import run
from serde.errors import MalformedFile, Unconvertible, UsageError
from testing.onnx_live import model_of

BACKEND = 'name = "b"\nopset = 13\n[[operators]]\nnames = ["Relu"]\n'
X = {"x": np.linspace(-2, 2, 8, dtype="f").reshape(2, 4)}
BODIES = {
    "old": "g (float[2,4] x) => (float[2,4] y) { a = Relu(x)  y = Tanh(a) }",
    "new": "g (float[2,4] x) => (float[2,4] y) "
           "{ a = Relu(x)  b = Tanh(a)  c = Relu(b)  y = Exp(c) }",
}  # fmt: skip
TWO_TYPES = (
    "g (float[2,4] x) => (float[2,4] y, string[2] t) "
    "{ a = Relu(x)  y = Tanh(a)  i = Constant<value_ints=[1,2]>()  t = Cast<to=8>(i) }"
)
EXPECTED = {
    "old": np.tanh(np.maximum(X["x"], 0)), "new": np.exp(np.tanh(np.maximum(X["x"], 0))),
}  # fmt: skip
CLEANING = {"_clean_up", "_undo", "_remove"}
STEPS = ("rename", "replace", "mkdir", "unlink", "open")


@pytest.fixture
def splits(tmp_path, monkeypatch):
    """Two models in parts, the first in ``out`` beside a file of the user's."""
    monkeypatch.chdir(tmp_path)
    Path("b.toml").write_text(BACKEND)
    made = {}
    for name, body in BODIES.items():
        onnx.save(model_of(body, 13, 7), f"{name}.onnx")
        made[name] = partition(f"{name}.onnx", "b.toml")
    made["old"].save("out")
    Path("out/notes.txt").write_text("mine")
    return made


def contents(place="out"):
    return {
        str(p.relative_to(place)): p.read_bytes() for p in Path(place).rglob("*") if p.is_file()
    }


def run_as(name):
    np.testing.assert_allclose(run("out", X)["y"], EXPECTED[name], rtol=1e-6)
    assert Path("out/notes.txt").read_text() == "mine"


def strike_at(at, action, monkeypatch):
    """Do ``action`` before the step of that number that changes the disk; count the steps."""
    count = [0]

    def around(function):
        def call(*args, **options):
            count[0] += 1
            if count[0] == at:
                action()
            return function(*args, **options)

        return call

    for name in STEPS:
        monkeypatch.setattr(os, name, around(getattr(os, name)))
    return count


def count_steps(split, monkeypatch):
    shutil.copytree("out", "aside")
    with monkeypatch.context() as patch:
        count = strike_at(0, lambda: None, patch)
        split.save("aside")
    shutil.rmtree("aside")
    assert count[0] > 15
    return count[0]


def test_a_partition_replaces_the_files_of_the_one_there_and_no_others(splits):
    old = set(contents())
    splits["new"].save("out")
    run_as("new")
    splits["old"].save("out")
    run_as("old")
    assert set(contents()) == old  # parts that the new one had more are gone


@pytest.mark.parametrize("kind", [OSError, KeyboardInterrupt, MemoryError])
def test_a_failure_at_any_step_leaves_the_partition_that_was_there(splits, monkeypatch, kind):
    before = contents()

    def fail():
        raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC)) if kind is OSError else kind()

    failed = finished = 0
    for at in range(1, count_steps(splits["new"], monkeypatch) + 1):
        with monkeypatch.context() as patch:
            strike_at(at, fail, patch)
            try:
                splits["new"].save("out")
            except kind as error:
                failed += 1
                assert ".serde" not in str(getattr(error, "filename", ""))
        if np.allclose(run("out", X)["y"], EXPECTED["new"]):  # only a leftover was not removed
            finished += 1
            run_as("new")
            splits["old"].save("out")
        run_as("old")
        after = {n: d for n, d in contents().items() if not n.startswith(".")}
        assert after.keys() == before.keys()
    assert failed > 10 and finished < 20
    splits["new"].save("out")
    run_as("new")
    assert not [n for n in contents() if n.startswith(".")]


@pytest.mark.parametrize("is_first", [False, True])
def test_a_signal_at_any_line_of_the_clean_up_leaves_no_half_of_a_folder(splits, is_first):
    """Where Python has ``shutil.rmtree`` lose the signal, or close a folder twice."""
    place = Path("other" if is_first else "out").absolute()

    def interrupt(at):
        """Save, and raise Ctrl-C at a line behind the swap; whether it has as many."""
        lines = 0

        def trace(frame, event, argument):
            nonlocal lines
            code = frame.f_code
            if code.co_filename != partition_folder.__file__ or code.co_name not in CLEANING:
                return None
            is_entered = code.co_name == "_clean_up" and frame.f_lineno < code.co_firstlineno + 6
            if event == "line" and not is_entered:
                lines += 1
                if lines == at:
                    raise KeyboardInterrupt
            return trace

        before = sys.gettrace()
        sys.settrace(trace)
        try:
            splits["new"].save(place)
        finally:
            sys.settrace(before)

    for at in range(1, 60):
        with suppress(KeyboardInterrupt):
            interrupt(at)
        assert not list(place.glob(".serde*")), at
        np.testing.assert_allclose(run(place, X)["y"], EXPECTED["new"], rtol=1e-6)


@pytest.mark.parametrize("kind", [OSError, KeyboardInterrupt])
def test_a_folder_that_cannot_be_locked_is_removed(splits, monkeypatch, kind):
    real = partition_folder.lock_folder

    def lock(folder, **options):
        if Path(folder).name.startswith("."):
            raise kind
        return real(folder, **options)

    before = contents(), os.listdir("out")
    monkeypatch.setattr(partition_folder, "lock_folder", lock)
    with pytest.raises(kind):
        splits["new"].save("out")
    assert (contents(), os.listdir("out")) == before


@pytest.mark.skipif(not hasattr(os, "fork"), reason="needs fork")
@pytest.mark.parametrize("is_first", [False, True])
def test_a_process_killed_at_any_step_leaves_a_folder_that_can_be_used(
    splits, monkeypatch, is_first
):
    steps = count_steps(splits["new"], monkeypatch)
    shutil.copytree("out", "kept")
    seen = set()
    for at in range(1, steps + 1):
        shutil.rmtree("out")
        shutil.copytree("kept", "out")
        if is_first:
            for path in Path("out").iterdir():
                path.unlink()
        child = os.fork()
        if child == 0:
            try:
                strike_at(at, lambda: os.kill(os.getpid(), signal.SIGKILL), pytest.MonkeyPatch())
                splits["new"].save("out")
            finally:
                os._exit(1)
        os.waitpid(child, 0)
        if is_first:
            splits["old"].save("out")
            Path("out/notes.txt").write_text("mine")
            run_as("old")
            assert contents().keys() == contents("kept").keys()
            continue
        try:
            value = run("out", X)["y"]
            seen.add(next(n for n, e in EXPECTED.items() if np.allclose(value, e)))
        except MalformedFile as error:
            assert "there is no manifest.json" in str(error)
            seen.add("none")
        with pytest.raises(ZeroDivisionError), partition_folder.replace_parts(Path("out")):
            raise ZeroDivisionError  # another process that comes, restores it, and fails
        if "new" not in seen:
            run_as("old")
            assert contents() == contents("kept")
        splits["new"].save("out")
        run_as("new")
        assert not [n for n in contents() if n.startswith(".")]
    assert is_first or seen == {"old", "none", "new"}


def test_a_remainder_that_cannot_be_expressed_leaves_the_partition(splits):
    onnx.save(model_of(TWO_TYPES, 13, 7), "bad.onnx")
    before = contents()
    with pytest.raises(Unconvertible):
        partition("bad.onnx", "b.toml").save("out", "mxnet")
    assert contents() == before
    with pytest.raises(Unconvertible):
        partition("bad.onnx", "b.toml").save("deep/er", "mxnet")
    assert not Path("deep").exists()


@pytest.mark.parametrize("manifest", [None, "{}", "[]", '{"name": "a web page"}', "no JSON"])
def test_a_folder_of_other_files_is_refused(splits, manifest):
    Path("other").mkdir()
    Path("other/mine.txt").write_text("mine")
    if manifest is not None:
        Path("other/manifest.json").write_text(manifest)
    before = contents("other")
    with pytest.raises(UsageError, match="no manifest.json of a partition: name a folder"):
        splits["old"].save("other")
    assert contents("other") == before


def test_a_file_that_is_no_part_is_not_replaced(splits):
    foreign = next(n for n in (f"accelerator_{k}.onnx" for k in range(9)) if n not in contents())
    Path("out", foreign).write_text("mine")
    before = contents()
    with pytest.raises(UsageError, match="is no file of the partition there: move it away"):
        splits["new"].save("out")
    assert contents() == before


@pytest.mark.parametrize("name", ["accelerator_0.onnx", "manifest.json"])
def test_a_folder_of_the_name_of_a_part_is_not_replaced(splits, name, monkeypatch):
    def make_folder():
        Path("out", name).unlink()
        Path("out", name).mkdir()
        Path("out", name, "mine.txt").write_text("mine")

    with pytest.raises(UsageError, match="is no file of the partition there: move it away"):
        splits["new"].save("out", check=lambda folder: make_folder())
    assert Path("out", name, "mine.txt").read_text() == "mine"


def test_a_part_that_was_changed_is_not_removed(splits):
    splits["new"].save("out")
    last = max(n for n in contents() if n.startswith("accelerator"))
    Path("out", last).write_bytes(b"changed by hand")
    splits["old"].save("out")
    run_as("old")
    assert Path("out", last).read_bytes() == b"changed by hand"


def test_a_file_that_a_manifest_claims_to_be_of_a_part_is_not_removed(splits):
    Path("out/mine.txt").write_text("mine")
    manifest = json.loads(Path("out/manifest.json").read_text())
    manifest["parts"][0]["files"]["mine.txt"] = hash_file(Path("out/mine.txt"))
    Path("out/manifest.json").write_text(json.dumps(manifest))
    splits["new"].save("out")
    run_as("new")
    assert Path("out/mine.txt").read_text() == "mine"


@pytest.mark.parametrize("name", ["mine.txt", "accelerator_0.onnx"])
def test_a_leftover_does_not_take_the_place_of_what_came_since(splits, name):
    Path("out/manifest.json").unlink()
    Path("out/.serde-000000000000.part/old").mkdir(parents=True)
    Path("out/.serde-000000000000.part/old", name).write_text("from the leftover")
    Path("out", name).write_text("mine")
    before = contents()
    with pytest.raises(UsageError, match="which a process that was killed moved away: move one"):
        splits["new"].save("out")
    assert contents() == before


def test_a_folder_reached_by_a_link_and_the_working_folder(splits, monkeypatch):
    os.symlink("out", "link")
    splits["new"].save("link")
    run_as("new")
    assert Path("link").is_symlink()
    monkeypatch.chdir("out")
    splits["old"].save(".")
    monkeypatch.chdir("..")
    run_as("old")


@pytest.mark.skipif(not hasattr(os, "fork"), reason="needs fork")
def test_processes_that_write_one_folder_take_turns(splits):
    children = []
    for name in ("old", "new") * 2:
        child = os.fork()
        if child == 0:
            try:
                for _ in range(5):
                    splits[name].save("out")
                os._exit(0)
            finally:
                os._exit(1)
        children.append(child)
    assert [os.waitpid(child, 0)[1] for child in children] == [0] * 4
    value = run("out", X)["y"]
    run_as(next(n for n, e in EXPECTED.items() if np.allclose(value, e)))
    assert not [n for n in contents() if n.startswith(".")]


def test_what_is_no_leftover_is_left_alone(splits):
    """Names like those of leftovers, and a manifest in one that claims files of the user's."""
    Path("elsewhere/new").mkdir(parents=True)
    os.symlink("../elsewhere", "out/.serde-000000000000.part")
    Path("out/.serde-111111111111.part").write_text("a file")
    Path("out/manifest.json").rename("elsewhere/new/manifest.json")
    made = Path("out/.serde-222222222222.part/new")
    made.mkdir(parents=True)
    document = json.loads(Path("elsewhere/new/manifest.json").read_text())
    document["parts"][0]["files"] = {"notes.txt": "0" * 64}
    Path(made, "manifest.json").write_text(json.dumps(document))
    with pytest.raises(UsageError, match="has files, and no manifest"):
        splits["new"].save("out")
    assert Path("out/notes.txt").read_text() == "mine" and Path("elsewhere/new").is_dir()
    assert Path("out/.serde-111111111111.part").is_file() and not made.exists()
