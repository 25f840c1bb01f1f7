"""Writing that fails, or is killed, at any step: what was there is untouched or wholly replaced."""

from __future__ import annotations

import errno
import os
import signal
import time
from collections.abc import Callable
from contextlib import suppress
from pathlib import Path
from typing import Any

import numpy as np
import onnx
import pytest

import serde
from serde.io import atomic_write
from serde.io.open_folder import OpenFolder

pytestmark = pytest.mark.skipif(not hasattr(os, "fork"), reason="needs fork")
TARGETS = {
    "t.onnx": ({"external_data": "always"}, "t.onnx.data"),
    "t-symbol.json": ({}, "t-0000.params"),
    "t.relay": ({}, "t.params"),
}
ENDLESS = 10**9


class Faults:
    """Counts the steps of writing, and strikes at one of them.

    A step is one call that changes the disk: making, writing, closing, renaming or removing a
    file. ``strike`` is called before it is done; before half of it, if it writes. Of those that are
    no writing it is called ``behind`` them, if that is asked for.
    """

    def __init__(self, at: int, strike: Callable[[], None], behind: bool = False) -> None:
        self.at, self.strike, self.count, self.behind = at, strike, 0, behind

    def step(self) -> bool:
        self.count += 1
        return self.count == self.at

    def around(self, function: Callable[..., Any]) -> Callable[..., Any]:
        def call(*args: Any, **options: Any) -> Any:
            is_hit = self.step()
            if is_hit and not self.behind:
                self.strike()
            result = function(*args, **options)
            if is_hit and self.behind:
                self.strike()
            return result

        return call

    def install(self, monkeypatch: pytest.MonkeyPatch) -> None:
        layer = self

        class File:
            def __init__(self, path: str) -> None:
                self.inner: Any = open(path, "xb", buffering=0)  # noqa: SIM115

            def write(self, data: Any) -> int:
                if layer.step():
                    self.inner.write(memoryview(data).cast("B")[: memoryview(data).nbytes // 2])
                    layer.strike()
                return self.inner.write(data)

            def close(self) -> None:
                if not self.inner.closed and layer.step():
                    layer.strike()
                self.inner.close()

            def __enter__(self) -> File:
                return self

            def __exit__(self, *error: object) -> None:
                self.close()

            def __getattr__(self, name: str) -> Any:
                return getattr(self.inner, name)

        monkeypatch.setattr(atomic_write, "SMALL", 1 << 30)  # copy step by step
        monkeypatch.setattr(
            OpenFolder, "create",
            self.around(lambda folder, name: File(os.path.join(folder.path, name))),
        )  # fmt: skip
        for name in ("replace", "unlink"):
            monkeypatch.setattr(os, name, self.around(getattr(os, name)))


def model(seed: int) -> onnx.ModelProto:
    rng = np.random.default_rng(seed)
    return serde_model(rng.standard_normal((40, 40)).astype(np.float32))


def serde_model(weights: np.ndarray) -> onnx.ModelProto:
    helper = onnx.helper
    value = helper.make_tensor_value_info
    graph = helper.make_graph(
        [helper.make_node("MatMul", ["x", "w"], ["y"])], "g", [value("x", 1, [1, 40])],
        [value("y", 1, [1, 40])], [onnx.numpy_helper.from_array(weights, "w")],
    )  # fmt: skip
    return helper.make_model(graph, opset_imports=[helper.make_opsetid("", 17)], ir_version=8)


def contents(folder: Path) -> dict[str, bytes]:
    return {p.name: p.read_bytes() for p in sorted(folder.iterdir())}


@pytest.fixture(params=TARGETS)
def case(request, tmp_path):
    """A target in a folder of its own, how it is written from two models, and its pairs of files."""
    options, weights = TARGETS[request.param]
    folder = tmp_path / "out"
    pairs = []
    for seed in (1, 2):
        onnx.save(model(seed), tmp_path / f"{seed}.onnx")
        folder.mkdir(exist_ok=True)
        serde.convert(tmp_path / f"{seed}.onnx", folder / request.param, **options)
        pairs.append(contents(folder))
        for path in folder.iterdir():
            path.unlink()
    assert pairs[0].keys() == {request.param, weights} and pairs[0] != pairs[1]
    graph = serde.load(tmp_path / "2.onnx")

    def write() -> None:
        serde.save(graph, folder / request.param, **options)

    return folder, request.param, write, pairs


def lay_out(folder: Path, files: dict[str, bytes]) -> None:
    for path in folder.iterdir():
        path.unlink()
    for name, data in files.items():
        (folder / name).write_bytes(data)


def count_steps(write: Callable[[], None], monkeypatch: pytest.MonkeyPatch) -> int:
    with monkeypatch.context() as patch:
        faults = Faults(ENDLESS, lambda: None)
        faults.install(patch)
        write()
    assert faults.count > 8
    return faults.count


@pytest.mark.parametrize("number", [errno.ENOSPC, errno.EIO, errno.EROFS, errno.EACCES])
@pytest.mark.parametrize("exists", [True, False])
def test_a_step_that_fails_leaves_what_was_there(case, monkeypatch, number, exists):
    folder, _, write, (old, new) = case
    before = old if exists else {}

    def strike() -> None:
        raise OSError(number, os.strerror(number))

    lay_out(folder, before)
    for at in range(1, count_steps(write, monkeypatch) + 1):
        lay_out(folder, before)
        with monkeypatch.context() as patch:
            Faults(at, strike).install(patch)
            try:
                write()
            except OSError as error:
                assert error.errno == number and ".part" not in str(error)
                failed = True
            else:
                failed = False
        files = contents(folder)
        hidden = {n for n in files if n.startswith(".")}
        if failed:
            assert files == before, (at, files.keys())
        else:  # what was kept could not be removed
            assert {n: files[n] for n in files.keys() - hidden} == new, at
            assert len(hidden) <= 1 and exists >= bool(hidden)


@pytest.mark.filterwarnings("ignore::pytest.PytestUnraisableExceptionWarning")  # files left open
@pytest.mark.parametrize("exists", [True, False])
def test_an_interrupt_behind_any_step_leaves_one_pair(case, monkeypatch, exists):
    """Ctrl-C comes while the system is at work, and is told once it has done the step."""
    folder, _, write, (old, new) = case
    before = old if exists else {}

    def strike() -> None:
        raise KeyboardInterrupt

    lay_out(folder, before)
    for at in range(1, count_steps(write, monkeypatch) + 1):
        lay_out(folder, before)
        with monkeypatch.context() as patch, suppress(KeyboardInterrupt):
            Faults(at, strike, behind=True).install(patch)
            write()
        assert contents(folder) in (before, new), (at, contents(folder).keys())


@pytest.mark.parametrize("exists", [True, False])
def test_a_process_killed_at_any_step_leaves_no_mixed_pair(case, monkeypatch, exists):
    folder, name, write, (old, new) = case
    before = old if exists else {}
    lay_out(folder, before)
    steps = count_steps(write, monkeypatch)
    seen = set()
    for at in range(1, steps + 1):
        lay_out(folder, before)
        child = os.fork()
        if child == 0:
            try:
                faults = Faults(at, lambda: os.kill(os.getpid(), signal.SIGKILL))
                faults.install(pytest.MonkeyPatch())
                write()
            finally:
                os._exit(1)
        _, status = os.waitpid(child, 0)
        assert os.WIFSIGNALED(status), at
        files = contents(folder)
        shown = {n: d for n, d in files.items() if not n.startswith(".")}
        if name in shown:
            assert shown in (old, new), at
            seen.add("old" if shown == old else "new")
        else:  # no model: nothing can be loaded, and all that was there is kept
            kept = {n: d for n, d in files.items() if n.endswith(".before")}
            assert all(d in (*kept.values(), *shown.values()) for d in before.values()), at
            seen.add("none")
    assert seen == ({"old", "none", "new"} if exists else {"none", "new"})


def test_a_full_disk_is_told_with_the_name_of_the_file(case, monkeypatch):
    """The system itself refuses to write beyond a size."""
    resource = pytest.importorskip("resource")
    folder, _, write, (old, _) = case
    lay_out(folder, old)
    child = os.fork()
    if child == 0:
        resource.setrlimit(resource.RLIMIT_FSIZE, (2000, 2000))
        try:
            write()
        except OSError as error:
            os._exit(0 if error.errno == errno.EFBIG and str(folder) in error.filename else 1)
        os._exit(2)
    assert os.waitpid(child, 0)[1] == 0
    assert contents(folder) == old


def test_a_writer_beside_another_replaces_all_of_it(case):
    """Processes that write different models to one target at once: one of the pairs is there."""
    folder, name, write, (old, new) = case
    options, _ = TARGETS[name]
    other = serde.load(folder.parent / "1.onnx")

    def write_other() -> None:
        serde.save(other, folder / name, **options)

    rename = atomic_write.NewFile.rename

    def rename_slowly(*names: Any) -> None:
        time.sleep(0.002)  # others have their turn
        rename(*names)

    lay_out(folder, old)
    for _ in range(5):
        children = []
        for task in (write, write_other, write, write_other):
            child = os.fork()
            if child == 0:
                try:
                    atomic_write.NewFile.rename = rename_slowly
                    for _ in range(5):
                        task()
                    os._exit(0)
                finally:
                    os._exit(1)
            children.append(child)
        assert [os.waitpid(child, 0)[1] for child in children] == [0] * 4
        assert contents(folder) in (old, new)
