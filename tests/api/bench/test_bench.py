"""Models measured beside each other: on the same inputs, in turn, as ratios to the first."""

from __future__ import annotations

import os

import numpy as np
import onnx
import pytest
from onnx import numpy_helper

import serde
from serde.api import bench as module
from serde.api.bench import bench
from testing.mxnet_live import live_mxnet
from testing.onnx_live import DIGITS, model_of


def make_products(path, size, count, dtype=np.float32, name="x"):
    """A model of so many products of matrices."""
    kind = {np.float32: "float", np.float16: "float16"}[dtype]
    nodes = "\n".join(f"v{i + 1} = MatMul(v{i}, w)" for i in range(1, count))
    body = f"g ({kind}[N,{size}] {name}) => ({kind}[N,{size}] v{count}) {{ v1 = MatMul({name}, w)\n{nodes} }}"
    model = model_of(body, 17)
    weight = np.eye(size, dtype=dtype)
    model.graph.initializer.append(numpy_helper.from_array(weight, "w"))
    onnx.save(model, path)
    return path


def test_more_work_takes_more_time(tmp_path):
    small = make_products(tmp_path / "small.onnx", 128, 1)
    large = make_products(tmp_path / "large.onnx", 128, 40)
    first, second = bench([small, large], inputs={"x": (64, 128)}, seconds=1).models
    assert (first.model, first.ratio, first.memory_ratio) == (str(small), 1, 1)
    assert second.processor_ratio > 4 and second.ratio > 3
    assert first.ratio_quartiles == (1, 1) and second.ratio_quartiles[0] <= second.ratio
    assert first.size == small.stat().st_size and second.size == large.stat().st_size


def test_weights_take_memory(tmp_path):
    small = make_products(tmp_path / "small.onnx", 16, 1)
    large = make_products(tmp_path / "large.onnx", 4096, 1, name="data")
    result = bench([large], data={"data": np.zeros((1, 4096), np.float32)}, seconds=0)
    assert result.inputs == "the inputs given"
    assert result.models[0].memory > bench([small], seconds=0).models[0].memory + 4096 * 4096 * 3
    with pytest.raises(serde.SerdeError, match=r"small\.onnx: .*invalid dimensions"):
        bench([large, small], seconds=0)


def test_inputs_go_by_place_and_in_the_type_of_each(tmp_path):
    models = [
        make_products(tmp_path / "a.onnx", 8, 1),
        make_products(tmp_path / "b.onnx", 8, 1, np.float16, "other"),
    ]
    result = bench(models, seconds=0)
    assert result.rounds == module.LEAST and result.inputs == "random inputs, seed 0"
    assert [m.runtime for m in result.models] == ["onnx", "onnx"]


def test_formats_beside_each_other(tmp_path):
    live_mxnet()
    serde.convert(DIGITS, tmp_path / "digits.onnx")
    result = bench([DIGITS, tmp_path / "digits.onnx"], inputs={"data": (1, 1, 8, 8)}, seconds=0)
    assert [m.runtime for m in result.models] == ["mxnet", "onnx"]
    assert result.models[1].ratio < 1 and result.models[1].memory_ratio < 1
    files = sum(
        (DIGITS / name).stat().st_size for name in ("digits-symbol.json", "digits-0010.params")
    )
    assert result.models[0].size == files


def test_models_in_parts_beside_the_whole(tmp_path):
    whole = make_products(tmp_path / "whole.onnx", 64, 3)
    parts = tmp_path / "parts"
    serde.partition(whole, "opset 17").save(parts)
    own = sum(f.stat().st_size for f in parts.iterdir())
    shapes = {"x": (4, 64)}
    for models in ([whole, parts], [parts, whole], [parts]):
        measured = bench(models, inputs=shapes, seconds=0).models
        assert {m.model: m.runtime for m in measured} == {
            str(m): "onnx in parts" if m is parts else "onnx" for m in models
        }
        assert {m.size for m in measured if m.model == str(parts)} == {own}


@pytest.mark.parametrize("threads", [0, -1, os.cpu_count() + 1, 100_000, "2", 1.5])
def test_threads_are_those_of_the_machine(tmp_path, threads):
    model = make_products(tmp_path / "a.onnx", 8, 1)
    for call in (bench, lambda models, threads: serde.prepare(models[0], threads=threads)):
        with pytest.raises(serde.UsageError, match="threads"):
            call([model], threads=threads)
    assert bench([model], threads=os.cpu_count(), seconds=0).threads == os.cpu_count()


@pytest.mark.parametrize(
    ("models", "data", "message"),
    [([], None, "no model"), (["none.onnx"], {"x": np.zeros(1)}, "no such file"),
     (["a.onnx"], {"x": np.zeros((2, 8)), "y": np.zeros(1)}, None),
     (["a.onnx"], {"b": np.zeros(1), "c": np.zeros(1)}, "2 arrays are more than the model's 1")],
)  # fmt: skip
def test_refusals(tmp_path, monkeypatch, models, data, message):
    monkeypatch.chdir(tmp_path)
    make_products(tmp_path / "a.onnx", 8, 1)
    if message is None:
        assert bench(models, data=data, seconds=0).models
        return
    with pytest.raises(serde.SerdeError, match=message):
        bench(models, data=data, seconds=0)


def test_quartiles():
    assert module._quartiles([1.0, 2.0, 3.0, 4.0, 5.0]) == (2.0, 4.0)
