"""A live module made of a model, in the interpreter that has TVM."""

from __future__ import annotations

import json
import os
import subprocess
import sysconfig
from pathlib import Path

import numpy as np
import onnx
import onnxruntime
import pytest
from onnx import helper, numpy_helper

from testing.relay import tvm_live

SCRIPT = """
import json, site, sys
import numpy as np
site.addsitedir(sys.argv[1])
import tvm
import serde
module, params = serde.import_(sys.argv[2], to="relay")
with tvm.transform.PassContext(opt_level=1):
    library = tvm.relay.build(module, target="llvm", params=params)
from tvm.contrib import graph_executor
run = graph_executor.GraphModule(library["default"](tvm.cpu()))
run.set_input("x", np.load(sys.argv[3]))
run.run()
print(json.dumps([sorted(params), run.get_output(0).numpy().ravel().tolist()]))
"""


def model(path: Path) -> None:
    """A dense layer and a softmax."""
    weight = np.random.default_rng(3).normal(size=(4, 3)).astype("float32")
    nodes = [
        helper.make_node("MatMul", ["x", "layer.weight"], ["h"]),
        helper.make_node("Softmax", ["h"], ["y"], axis=-1),
    ]
    x, y = (helper.make_tensor_value_info(n, 1, [2, d]) for n, d in (("x", 4), ("y", 3)))
    held = numpy_helper.from_array(weight, "layer.weight")
    graph = helper.make_graph(nodes, "g", [x], [y], [held])
    opset = helper.make_opsetid("", 17)
    onnx.save(helper.make_model(graph, opset_imports=[opset], ir_version=8), path)


def test_a_live_module_runs(tmp_path):
    worker = tvm_live.TVM.start()
    if isinstance(worker, str):
        pytest.skip(worker)
    path, feed = tmp_path / "m.onnx", tmp_path / "x.npy"
    model(path)
    x = np.random.default_rng(4).normal(size=(2, 4)).astype("float32")
    np.save(feed, x)
    folder = Path(os.environ["SERDE_TVM"])
    here = sysconfig.get_paths()["purelib"]
    done = subprocess.run(
        [folder / "v/bin/python", "-c", SCRIPT, here, path, feed], text=True, check=True,
        capture_output=True, env=tvm_live.environment(folder), timeout=300,
    )  # fmt: skip
    names, output = json.loads(done.stdout.splitlines()[-1])
    session = onnxruntime.InferenceSession(str(path), providers=["CPUExecutionProvider"])
    (expected,) = session.run(None, {"x": x})
    assert names == ["layer.weight"]
    np.testing.assert_allclose(output, expected.ravel(), rtol=1e-5)
