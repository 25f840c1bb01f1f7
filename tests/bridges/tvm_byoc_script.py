"""TVM's own partitioning with ONNX as its target; ``test_tvm_byoc.py`` runs this beside TVM.

    python tests/bridges/tvm_byoc_script.py SITE [LIBRARY INPUT]

SITE is the folder of TVM's own packages. Prints a line of JSON for each thing done. With a LIBRARY
it loads that and prints its output alone, as a process that did not compile it.
"""

from __future__ import annotations

import json
import subprocess
import sys

sys.path.append(sys.argv[1])

import numpy as np
import onnx
import onnxruntime
import tvm
from tvm import relay
from tvm.contrib import graph_executor

from serde.bridges.tvm import partition_for_onnx, register_onnx_codegen, save_onnx_parts, to_onnx
from serde.legalize.target import Target

GENERATOR = np.random.default_rng(3)
SOME = Target("some", 17, {op: {} for op in "Conv Relu Add Split Concat".split()})
X = GENERATOR.standard_normal((1, 3, 8, 8)).astype(np.float32)
PARAMS = {
    "w": GENERATOR.standard_normal((4, 3, 3, 3)).astype(np.float32),
    "b": GENERATOR.standard_normal(4).astype(np.float32),
}


def model():
    """A convolution, a function that SOME lacks, a split whose tuple leaves a part, a sum."""
    x, w, b = (relay.var(n, shape=s) for n, s in (("x", X.shape), ("w", (4, 3, 3, 3)), ("b", (4,))))
    y = relay.nn.relu(relay.nn.bias_add(relay.nn.conv2d(x, w, padding=(1, 1)), b))
    first, second = relay.split(relay.erf(y), 2, axis=1)
    z = relay.concatenate([second, first], axis=1)
    return relay.Function([x, w, b], relay.Tuple([relay.nn.relu(relay.add(z, y)), y]))


MODULE = relay.transform.InferType()(tvm.IRModule.from_expr(model()))


def run_module():
    built = relay.create_executor("graph", mod=MODULE, device=tvm.cpu(), target="llvm").evaluate()
    return [y.numpy() for y in built(X, PARAMS["w"], PARAMS["b"])]


WANTED = run_module()


def build_module(module):
    with tvm.transform.PassContext(opt_level=3):
        return relay.build(module, target="llvm")


def run_library(library):
    machine = graph_executor.GraphModule(library["default"](tvm.cpu()))
    machine.set_input("x", X)
    return machine


def error_of(machine):
    machine.run()
    outputs = [machine.get_output(n).numpy() for n in range(2)]
    return max(float(np.abs(a - b).max()) for a, b in zip(outputs, WANTED, strict=True))


def part_names(module):
    return sorted(v.name_hint for v in module.get_global_vars() if v.name_hint != "main")


def takes_all():
    module = partition_for_onnx(MODULE, PARAMS)
    return [len(part_names(module)), error_of(run_library(build_module(module)))]


def takes_some():
    module = partition_for_onnx(MODULE, PARAMS, SOME)
    return [len(part_names(module)), error_of(run_library(build_module(module)))]


def keeps_the_module():
    """The module given is not changed, and parameters that are not given stay inputs."""
    before = tvm.ir.structural_hash(MODULE)
    module = partition_for_onnx(MODULE)
    return [before == tvm.ir.structural_hash(MODULE), [p.name_hint for p in module["main"].params]]


def saves_parts():
    machine = run_library(build_module(partition_for_onnx(MODULE, PARAMS, SOME)))
    files = save_onnx_parts(machine.run, "saved")
    models = [onnx.load(path) for path in files]
    for each in models:
        onnx.checker.check_model(each, full_check=True)
    return sorted(sorted({n.op_type for n in m.graph.node}) for m in models)


def exports():
    """The library is loaded in this process and in another, and run."""
    build_module(partition_for_onnx(MODULE, PARAMS, SOME)).export_library("exported.so")
    np.save("x.npy", X)
    here = error_of(run_library(tvm.runtime.load_module("exported.so")))
    command = [sys.executable, __file__, sys.argv[1], "exported.so", "x.npy"]
    done = subprocess.run(command, capture_output=True, text=True, check=True)
    there = np.array(json.loads(done.stdout.splitlines()[-1]))
    return [here, float(np.abs(there - WANTED[0]).max())]


def runs_in_the_virtual_machine():
    module = partition_for_onnx(MODULE, PARAMS, SOME)
    with tvm.transform.PassContext(opt_level=3):
        code = relay.vm.compile(module, target="llvm")
    code.mod.export_library("vm.so")
    loaded = tvm.runtime.vm.Executable.load_exec(code.save()[0], tvm.runtime.load_module("vm.so"))
    errors = []
    for each in (code, loaded):
        outputs = tvm.runtime.vm.VirtualMachine(each, tvm.cpu()).run(tvm.nd.array(X))
        errors.append(
            max(float(np.abs(a.numpy() - b).max()) for a, b in zip(outputs, WANTED, strict=True))
        )
    return errors


def runs_by_hand():
    """TVM's own sequence of passes, and a vendor's runtime."""
    calls = []

    def load_model(model):
        session = onnxruntime.InferenceSession(model, providers=["CPUExecutionProvider"])
        calls.append("load")

        def run(feeds):
            calls.append("run")
            return session.run(None, feeds)

        return run

    register_onnx_codegen("opset 13", load_model)
    held = {n: tvm.nd.array(a) for n, a in PARAMS.items()}
    module = tvm.IRModule.from_expr(relay.build_module.bind_params_by_name(MODULE["main"], held))
    table = relay.op.contrib.register.get_pattern_table("onnx")
    module = tvm.transform.Sequential([
        relay.transform.InferType(), relay.transform.MergeComposite(table),
        relay.transform.AnnotateTarget("onnx"), relay.transform.MergeCompilerRegions(),
        relay.transform.PartitionGraph(),
    ])(module)  # fmt: skip
    machine = run_library(build_module(module))
    errors = [error_of(machine), error_of(machine)]
    register_onnx_codegen()
    return [calls, max(errors)]


def leaves_dynamic_shapes():
    x = relay.var("x", shape=(relay.Any(), 3))
    module = tvm.IRModule.from_expr(relay.Function([x], relay.nn.relu(x)))
    return part_names(partition_for_onnx(relay.transform.InferType()(module)))


def makes_onnx():
    model = to_onnx(MODULE, PARAMS, "net", 13, "net.onnx")
    session = onnxruntime.InferenceSession("net.onnx", providers=["CPUExecutionProvider"])
    outputs = session.run(None, {session.get_inputs()[0].name: X})
    error = max(float(np.abs(a - b).max()) for a, b in zip(outputs, WANTED, strict=True))
    versions = {o.domain: o.version for o in model.opset_import}
    inputs = [i.name for i in to_onnx(MODULE["main"], {}, "net").graph.input]
    return [model.graph.name, versions, error, inputs]


CASES = (
    takes_all, takes_some, keeps_the_module, saves_parts, exports, runs_in_the_virtual_machine,
    runs_by_hand, leaves_dynamic_shapes, makes_onnx,
)  # fmt: skip

if len(sys.argv) > 2:
    register_onnx_codegen()
    machine = graph_executor.GraphModule(tvm.runtime.load_module(sys.argv[2])["default"](tvm.cpu()))
    machine.set_input("x", np.load(sys.argv[3]))
    machine.run()
    print(json.dumps(machine.get_output(0).numpy().tolist()))
    sys.exit()

for case in CASES:
    try:
        result = case()
    except Exception as error:
        result = f"{type(error).__name__}: {error}"[-600:]
    print(json.dumps([case.__name__, result]), flush=True)
