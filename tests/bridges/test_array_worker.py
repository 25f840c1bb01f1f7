"""Models that run in another process: their inputs go by name, and their time is their own."""

from __future__ import annotations

import os
import re
import signal
import subprocess
import sys
import threading
import time
from pathlib import Path

import numpy as np
import onnx
import pytest

import serde
from serde.bridges.array_worker import ArrayWorker, WorkerRun, get_worker, order_feeds, read_program
from serde.bridges.onnxruntime import RuntimeWorker
from serde.errors import SerdeError
from testing.onnx_live import save_model
from tests.tflite.litert_live import why_not as why_no_litert
from tests.torch.torch_live import why_not as why_no_torch

X, Y = np.array([5, 6], np.float32), np.array([1, 3], np.float32)
LIVE = [
    pytest.param(name, marks=pytest.mark.skipif(bool(why()), reason=why() or "there is one"))
    for name, why in {"m.tflite": why_no_litert, "m.py": why_no_torch}.items()
]


@pytest.fixture
def source(tmp_path: Path) -> Path:
    """A model whose result depends on the order of its inputs."""
    graph = onnx.parser.parse_graph("g (float[2] a, float[2] b) => (float[2] y) { y = Sub(a, b) }")
    model = onnx.helper.make_model(graph, opset_imports=[onnx.helper.make_opsetid("", 17)])
    onnx.save(model, tmp_path / "m.onnx")
    return tmp_path / "m.onnx"


def test_feeds_are_put_in_the_order_of_the_model() -> None:
    first, second = order_feeds(["a", "b", "c"], {"b": Y, "a": X})
    assert first is X and second is Y
    with pytest.raises(SerdeError, match="the input 'a' is missing"):
        order_feeds(["a", "b"], {"b": Y})
    with pytest.raises(SerdeError, match="no input 'z'; it has a, b"):
        order_feeds(["a", "b"], {"a": X, "z": Y})


@pytest.mark.parametrize("name", LIVE)
def test_inputs_are_fed_by_name_in_any_order(name: str, source: Path) -> None:
    target = source.with_name(name)
    serde.convert(source, target, verify=True)
    model = serde.prepare(target)
    for feeds in ({"a": X, "b": Y}, {"b": Y, "a": X}):
        np.testing.assert_array_equal(model(feeds)["y"], X - Y)
    compared = serde.compare(source, target, data={"b": Y, "a": X})
    assert compared.ok


@pytest.mark.parametrize("name", LIVE)
def test_models_are_timed_where_they_run(name: str, source: Path) -> None:
    """What a run takes is not what it takes to send arrays there, which is far more here."""
    target = source.with_name(name)
    serde.convert(source, target, verify=False)
    model = serde.prepare(target)
    start = time.perf_counter()
    model(X, Y)
    around = time.perf_counter() - start
    clock, processor = model.bind_inputs({"a": X, "b": Y})(10)
    assert 0 < clock < around
    assert processor > 0
    assert model.pid is not None


HUGE = {  # models whose results take more memory than a process may have, and what they end with
    "Range": "g (float[2] x) => (int64[N] y) <int64 z = {0}, int64 n = {268435456}, int64 o = {1}>"
             " { s = Shape(x) q = ReduceSum<keepdims = 0>(s) m = Mul(q, n) y = Range(z, m, o) }",
    "Expand": "g (float[2] x, int64[2] s) => (float[N,2] y) { y = Expand(x, s) }",
    "Loop": "g (float[2] x) => (float[2] y, float[T,65536,2] t) <int64 n = {2147483648},"
            " bool c = {1}, int64[2] k = {65536, 2}> { y, t = Loop(n, c, x) <body = b (int64 i,"
            " bool p, float[2] s) => (bool q, float[2] r, float[65536,2] u)"
            " { q = Identity(p) r = Identity(s) u = Expand(s, k) }> }",
}  # fmt: skip
FEEDS = {"x": np.float32([1, 2]), "s": np.int64([1 << 28, 2])}
linux = pytest.mark.skipif(sys.platform != "linux", reason="memory is limited on Linux")


@pytest.fixture
def limit_memory(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("SERDE_MAX_MEMORY", "700")


@linux
@pytest.mark.usefixtures("limit_memory")
@pytest.mark.parametrize("name", HUGE)
def test_a_model_that_takes_too_much_ends_alone(name: str, tmp_path: Path) -> None:
    path = save_model(tmp_path / "huge.onnx", HUGE[name])
    feeds = {v.name: FEEDS[v.name] for v in serde.load(path).inputs}
    said = r"ONNX Runtime cannot run the model: it takes more memory than the 700 MiB.*SERDE_MAX_M"
    with pytest.raises(SerdeError, match=said):
        serde.run(path, feeds)
    check = serde.verify(path, path, data=feeds)
    assert not check.done and re.search(
        f"not compared: the source cannot be run here: {said}", str(check)
    )
    assert serde.compare(path, path, data=feeds).verification.done is False
    small = save_model(tmp_path / "small.onnx", "g (float[2] x) => (float[2] y) { y = Relu(x) }")
    assert serde.verify(small, small).ok


@linux
@pytest.mark.usefixtures("limit_memory")
def test_a_result_that_takes_too_much_is_not_compared(tmp_path: Path) -> None:
    small = save_model(tmp_path / "a.onnx", "g (float[2] x) => (int64[N] y) { y = Shape(x) }")
    check = serde.verify(small, save_model(tmp_path / "b.onnx", HUGE["Range"]))
    assert not check.done and "the result cannot be run here" in check.statement
    assert "700 MiB" in check.statement


@linux
@pytest.mark.usefixtures("limit_memory")
def test_outputs_that_fit_are_compared_only_where_that_fits(tmp_path: Path) -> None:
    path = save_model(tmp_path / "m.onnx", "g (float[N] x) => (float[N] y) { y = Relu(x) }")
    check = serde.verify(path, path, data={"x": np.zeros(20_000_000, np.float32)})
    assert not check.done and "comparing 20,000,000 elements takes 1,525 MiB" in check.statement


def start_sleeper() -> ArrayWorker:
    program = """
def load(seconds):
    time.sleep(seconds)
    return seconds
def run(model, values, count, **options):
    if options.get("signal"):
        os.kill(os.getpid(), options["signal"])
    return time_calls(lambda: values, count)
serve("1", load, run)
"""
    return ArrayWorker(read_program("worker_loop.py") + program, "Sleeper", "sleeper", "")


def test_dropped_models_leave_the_memory_at_once_also_where_they_refer_to_themselves() -> None:
    program = """
import weakref
models = weakref.WeakSet()
class Model:
    def __init__(self):
        self.itself = self
        models.add(self)
serve("1", Model, lambda model, values, count: ([np.array(len(models))], [0, 0]))
"""
    worker = ArrayWorker(read_program("worker_loop.py") + program, "Counter", "counter", "")
    for _ in range(3):
        number = worker.load()
        (count,), _ = worker.time_runs(number, [])
        assert count == 1
        worker.drop(number)


def test_models_of_a_process_are_dropped_and_their_values_kept_apart() -> None:
    worker = start_sleeper()
    first, second = (WorkerRun(worker, worker.load(seconds=0), None, {}) for _ in range(2))
    x = np.arange(6.0).reshape(2, 3)
    np.testing.assert_array_equal(first({"x": x})[0]["x"], x)
    number = first.number
    del first
    np.testing.assert_array_equal(second({"x": x})[0]["x"], x)
    with pytest.raises(SerdeError, match="Sleeper cannot run the model: KeyError"):
        worker.time_runs(number, [])


@pytest.mark.skipif(os.name != "posix", reason="signals are those of POSIX")
@pytest.mark.parametrize("name", ["SIGABRT", "SIGSEGV", "SIGKILL"])
def test_a_crash_is_an_error_that_names_its_signal(name: str) -> None:
    worker = start_sleeper()
    number = worker.load(seconds=0)
    with pytest.raises(SerdeError, match=f"it ended its process with {name}"):
        worker.time_runs(number, [], signal=getattr(signal, name))
    assert not worker.is_running


@pytest.mark.skipif(not hasattr(os, "fork"), reason="needs fork")
def test_a_forked_process_is_told_to_prepare_its_own() -> None:
    """It would wait for answers, or take those to other orders."""
    worker = start_sleeper()
    run = WorkerRun(worker, worker.load(seconds=0), None, {})
    child = os.fork()
    if not child:
        signal.alarm(30)
        messages = []
        for order in (lambda: run([]), lambda: worker.load(seconds=0)):
            try:
                order()
            except SerdeError as error:
                messages.append(str(error))
        os._exit(sum("prepare the model again" in m for m in messages))
    assert os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]) == 2
    assert worker.load(seconds=0) == 1


@pytest.mark.skipif(os.name != "posix", reason="signals are those of POSIX")
def test_ctrl_c_ends_the_process_at_once() -> None:
    """A terminal sends it to both; an idle one stays."""
    worker = start_sleeper()
    worker.load(seconds=0)
    os.kill(worker.pid, signal.SIGINT)
    worker.load(seconds=0)
    main = threading.main_thread().ident
    assert main is not None
    timer = threading.Timer(0.5, signal.pthread_kill, (main, signal.SIGINT))
    before = signal.signal(signal.SIGINT, signal.default_int_handler)  # may be ignored outside
    start = time.monotonic()
    timer.start()
    try:
        with pytest.raises(KeyboardInterrupt):
            worker.load(seconds=60)
    finally:
        signal.signal(signal.SIGINT, before)
    assert time.monotonic() - start < 20
    with pytest.raises(SerdeError, match="it ended its process with SIGKILL"):
        worker.load(seconds=0)


@pytest.mark.skipif(os.name != "posix", reason="signals are those of POSIX")
@pytest.mark.parametrize("before, after", [
    ("worker.load(seconds=0)", "folder = worker.make_folder(); worker.load(seconds=60)"),
    ("", "worker.wait(); worker.load(seconds=60)"),
])  # fmt: skip
def test_it_ends_with_the_process_that_started_it(before: str, after: str, tmp_path: Path) -> None:
    """Whatever it computes, and however that process ends; its files go as well."""
    code = (
        "import os; from tests.bridges.test_array_worker import start_sleeper\n"
        f"worker = start_sleeper(); {before or 'pass'}; print(worker.pid, flush=True)\n{after}"
    )
    paths = os.pathsep.join(filter(None, sys.path))
    with subprocess.Popen(
        [sys.executable, "-c", code], stdout=subprocess.PIPE, text=True,
        env={**os.environ, "PYTHONPATH": paths, "TMPDIR": os.fspath(tmp_path)},
    ) as process:  # fmt: skip
        assert process.stdout is not None
        pid = int(process.stdout.readline())
        process.kill()
    deadline = time.monotonic() + 20
    while time.monotonic() < deadline:
        try:
            os.kill(pid, 0)
        except ProcessLookupError:
            assert not [*tmp_path.glob("serde-*")]
            return
        time.sleep(0.05)
    raise AssertionError("it is still there")


def test_a_process_is_shared_and_one_stays_idle() -> None:
    first = get_worker(RuntimeWorker)
    pid = first.pid
    del first
    assert get_worker(RuntimeWorker).pid == pid


@linux
def test_commands_end_with_the_codes_of_the_docs(tmp_path: Path) -> None:
    path = save_model(tmp_path / "huge.onnx", HUGE["Range"])
    codes = {
        ("convert", path, "-o", "o.onnx", "--verify"): 0,
        ("convert", path, "-o", "o.onnx", "--verify-strict"): 4,
        ("compare", path, path): 4,
        ("run", path, "--data", "in.npz"): 1,
        ("convert", path, "-o", "o.onnx", "--verify-strict", "--isolate", "--max-memory", "600"): 4,
    }
    np.savez(tmp_path / "in.npz", x=FEEDS["x"])
    for words, code in codes.items():
        done = subprocess.run(
            [sys.executable, "-m", "serde", *words], cwd=tmp_path, capture_output=True, text=True,
            env={**os.environ, "PYTHONPATH": os.pathsep.join(filter(None, sys.path)),
                 "SERDE_MAX_MEMORY": "700"},
        )  # fmt: skip
        printed = done.stdout + done.stderr
        limit = 600 if "--isolate" in words else 700
        assert (done.returncode, f"the {limit} MiB" in printed) == (code, True), printed
