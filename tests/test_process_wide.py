"""Threads get what one thread gets, the process stays as it was, and memory is not used up."""

from __future__ import annotations

import functools
import gc
import os
import signal
import stat
import sys
import tracemalloc
import warnings
from concurrent.futures import ThreadPoolExecutor

import numpy as np
import onnx
import pytest

import serde
from serde.backends.partition import partition
from serde.formats.onnx.repair import repair
from serde.plugins.targets import consumer_names, format_of_consumer
from serde.spec import inference, memo, source_checks
from testing.onnx_live import model_of

BODIES = (
    "{ a = Relu(x)  b = Softmax<axis=1>(a)  c = Add(b, w)  y = Tanh(c) }",
    "{ a = MatMul(x, w)  b = LeakyRelu<alpha=0.3>(a)  y = Transpose<perm=[1,0]>(b) }",
    "{ a = ReduceMean<axes=[1], keepdims=1>(x)  b = Sub(x, a)  c = Mul(b, w)  y = Sigmoid(c) }",
    "{ a = Concat<axis=0>(x, w)  b = Slice(a, s, e)  y = Elu(b) }",
)
OUTPUTS = ("a.onnx", "a-symbol.json", "a.relay")
INPUTS = {"x": (8, 8)}


def write_model(folder, number, body):
    rng = np.random.default_rng(number)
    model = model_of(f"g (float[8,8] x) => (float[8,8] y) {body}", 13, 7)
    arrays = {"w": rng.standard_normal((8, 8)).astype("f"), "s": np.int64([0]), "e": np.int64([8])}
    model.graph.initializer.extend(
        onnx.numpy_helper.from_array(a, n) for n, a in arrays.items() if n in body
    )
    path = folder / f"m{number}.onnx"
    onnx.save(model, path)
    return path


def convert_all(source, folder):
    """The bytes of the source in all formats, there and back."""
    folder.mkdir(parents=True)
    for name in OUTPUTS:
        serde.convert(source, folder / name, verify=name == "a.onnx")
    for name in OUTPUTS[1:]:
        options = {"inputs": INPUTS} if "symbol" in name else {}
        serde.convert(folder / name, folder / f"back-{name}.onnx", **options)
    partition(source, "opset 13").save(folder / "parts")
    return {
        str(p.relative_to(folder)): (p.read_bytes(), stat.S_IMODE(p.stat().st_mode))
        for p in folder.rglob("*") if p.is_file()
    }  # fmt: skip


def test_threads_convert_to_the_same_bytes(tmp_path):
    sources = [write_model(tmp_path, n, BODIES[n % len(BODIES)]) for n in range(16)]
    expected = [convert_all(s, tmp_path / "one" / s.stem) for s in sources]
    switching = sys.getswitchinterval()
    sys.setswitchinterval(1e-5)
    try:
        with ThreadPoolExecutor(8) as threads:
            results = list(
                threads.map(lambda s: convert_all(s, tmp_path / "many" / s.stem), sources)
            )
    finally:
        sys.setswitchinterval(switching)
    assert results == expected
    assert len(expected[0]) >= 8


def describe_process():
    mask = os.umask(0o22)
    os.umask(mask)
    handlers = {s: signal.getsignal(s) for s in (signal.SIGINT, signal.SIGTERM, signal.SIGHUP)}
    random = np.random.get_state()
    return {
        "umask": mask, "signals": handlers, "folder": os.getcwd(), "environment": dict(os.environ),
        "collector": (gc.isenabled(), gc.get_threshold(), gc.get_freeze_count()),
        "numpy": (np.geterr(), np.get_printoptions(), random[1].tobytes(), random[2]),
        "python": (sys.getrecursionlimit(), sys.getswitchinterval(), [*sys.path],
                   [*sys.meta_path], sys.stdout, sys.stderr, sys.get_int_max_str_digits()),
        "warnings": [*warnings.filters],
    }  # fmt: skip


def fail(tmp_path):
    with pytest.raises(serde.errors.SerdeError):
        serde.convert(tmp_path / "none.onnx", tmp_path / "x.onnx")


@pytest.mark.parametrize("user", ["as it is", "changed"])
def test_a_conversion_leaves_the_process_as_it_was(tmp_path, user):
    source = write_model(tmp_path, 0, BODIES[0])
    convert_all(source, tmp_path / "before")  # imports what it needs
    if user == "changed":
        gc.disable()
    try:
        before = describe_process()
        convert_all(source, tmp_path / "out")
        fail(tmp_path)
        assert describe_process() == before
    finally:
        gc.enable()


def count_kept():
    """Entries of all caches and memos."""
    gc.collect()
    caches = [o for o in gc.get_objects() if isinstance(o, functools._lru_cache_wrapper)]
    of_serde = [c for c in caches if c.__wrapped__.__module__.startswith("serde")]
    assert len(of_serde) > 20
    memos = (inference._memo, inference._nodes, memo._numbers, source_checks._legal)
    return sum(c.cache_info().currsize for c in of_serde) + sum(map(len, memos))


def convert_to_everything(source, folder):
    for profile in consumer_names():
        if profile not in ("npu-static", "edgetpu"):  # which do not take it
            suffix = format_of_consumer(profile).suffixes[0]
            serde.convert(source, folder / f"p{suffix}", profile=profile)
    for opset in (9, 13, 17, 21):
        serde.convert(source, folder / "p.onnx", opset=opset, decomposed=("Softmax",))
    for name in OUTPUTS[1:]:
        serde.convert(source, folder / name)
        options = {"inputs": INPUTS} if "symbol" in name else {}
        for target in OUTPUTS:
            serde.convert(folder / name, folder / f"b{target}", **options)
    for backend in ("openvino", "opset 13", str(folder / "b.toml")):
        partition(source, backend).save(folder / "parts")
    serde.check(source, to="mxnet")
    repair(source, folder / "p.onnx")


def test_what_is_kept_does_not_grow_with_conversions(tmp_path):
    (tmp_path / "b.toml").write_text('name = "b"\nopset = 13\n[[operators]]\nnames = ["Relu"]\n')
    source = write_model(tmp_path, 0, BODIES[0])
    for _ in range(3):
        convert_to_everything(source, tmp_path)
    before = count_kept()
    tracemalloc.start()
    try:
        convert_to_everything(source, tmp_path)
        gc.collect()
        first = tracemalloc.get_traced_memory()[0]
        for _ in range(8):
            convert_to_everything(source, tmp_path)
        gc.collect()
        growth = tracemalloc.get_traced_memory()[0] - first
    finally:
        tracemalloc.stop()
    assert count_kept() == before
    assert growth < 3 << 20  # Python's own table of interned names may double


def test_long_attributes_are_not_kept(tmp_path):
    """Trees of a forest, say: a memo that kept them would keep every model that was read."""
    count_before = len(memo._numbers)
    for seed in range(3):
        values = np.random.default_rng(seed).standard_normal(5000).tolist()
        listed = ", ".join(map(repr, values))
        body = f"g (float[N,3] x) => (float[5000] y) {{ y = Constant<value_floats=[{listed}]>() }}"
        onnx.save(model_of(body, 13, 7), tmp_path / "m.onnx")
        serde.convert(tmp_path / "m.onnx", tmp_path / "o.onnx")
    kept = [k for k in memo._numbers if len(repr(k)) > 10_000]
    assert kept == [] and len(memo._numbers) - count_before < 50


def test_names_of_files_do_not_fill_a_cache(tmp_path):
    """Operators that nothing knows have any names."""
    for number in range(3):
        body = f"g (float[N,3] x) => (float[N,3] y) {{ y = Foo{number}(x) }}"
        onnx.save(model_of(body, 13, 7), tmp_path / "m.onnx")
        with pytest.raises(serde.errors.Unconvertible):
            serde.convert(tmp_path / "m.onnx", tmp_path / "o.onnx")
    endless = [
        o for o in gc.get_objects()
        if isinstance(o, functools._lru_cache_wrapper) and o.__wrapped__.__module__.startswith("serde")
        and o.cache_parameters()["maxsize"] is None and o.cache_info().currsize > 500
    ]  # fmt: skip
    assert endless == []
