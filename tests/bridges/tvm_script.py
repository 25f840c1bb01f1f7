"""What users do with a live TVM and serde in one process; ``test_tvm.py`` runs it beside TVM.

    python tests/bridges/tvm_script.py SITE

SITE is the folder of TVM's own packages. Prints a line of JSON for each thing done.
"""

from __future__ import annotations

import json
import subprocess
import sys

sys.path.append(sys.argv[1])

import numpy as np
import tvm
from tvm import relay

import serde
from serde.errors import SerdeError

GENERATOR = np.random.default_rng(3)
X = GENERATOR.standard_normal((2, 3)).astype(np.float32)
WEIGHT = GENERATOR.standard_normal((4, 3)).astype(np.float32)


def model():
    x, w = relay.var("x", shape=(2, 3)), relay.var("w", shape=(4, 3))
    return relay.Function([x, w], relay.nn.relu(relay.nn.dense(x, w)))


MODULE = relay.transform.InferType()(tvm.IRModule.from_expr(model()))
PARAMS = {"w": tvm.nd.array(WEIGHT)}


def ran(path):
    import onnxruntime

    session = onnxruntime.InferenceSession(path, providers=["CPUExecutionProvider"])
    (actual,) = session.run(None, {session.get_inputs()[0].name: X})
    return float(np.abs(actual - np.maximum(X @ WEIGHT.T, 0)).max())


def export():
    return ran(serde.export(MODULE, PARAMS, "onnx", "exported.onnx"))


def exported_arrays():
    return ran(serde.export(MODULE, {"w": WEIGHT}, "onnx", "arrays.onnx"))


def exported_bound():
    bound = relay.build_module.bind_params_by_name(model(), PARAMS)
    return ran(serde.export(tvm.IRModule.from_expr(bound), path="bound.onnx"))


def exported_function():
    return ran(serde.export(model(), PARAMS, path="function.onnx"))


def check():
    report = serde.check(MODULE, params=PARAMS)
    return [report.ok, report.source_format, report.operators]


def refuse():
    key = relay.var("key", shape=(10,), dtype="uint64")
    drawn = relay.Function([key], relay.TupleGetItem(relay.random.threefry_split(key), 0))
    return [str(p.reason) for p in serde.check(drawn).problems]


def inspect():
    graph, name = serde.api.read(MODULE, params=PARAMS)
    return [name, [n.op for n in graph.nodes], [v.name for v in graph.inputs]]


def verify(*source, **options):
    report = serde.convert(*source, "verified.onnx", verify=True, **options)
    return [report.verification.source, report.ok]


def verified_live():
    return verify(MODULE, params=PARAMS)


def verified_files():
    write_text("m.relay", MODULE.astext(show_meta_data=True))
    write_text("m.json", tvm.ir.save_json(MODULE))
    with open("m.params", "wb") as file:
        file.write(relay.save_param_dict(PARAMS))
    return [verify(name, params="m.params") for name in ("m.relay", "m.json")]


def write_text(name, text):
    with open(name, "w") as file:
        file.write(text)


def verified_names():
    """Parameters of one name, text TVM itself does not read, a tuple, another function."""
    two = [relay.var("data", shape=(2, 3)), relay.var("data", shape=(2, 3))]
    text = '#[version = "0.0.5"]\ndef @main(%a.b: Tensor[(2, 3), float32]) { tanh(%a.b) }'
    write_text("odd.relay", text)
    pair = relay.var("p", relay.TupleType([relay.TensorType((2, 3)), relay.TensorType((2, 3))]))
    fields = [relay.TupleGetItem(pair, at) for at in (0, 1)]
    several = tvm.IRModule.from_expr(relay.Function([two[0]], relay.exp(two[0])))
    several[tvm.ir.GlobalVar("other")] = relay.Function([two[1]], relay.tanh(two[1]))
    return [
        verify(relay.Function(two, relay.subtract(*two))),
        verify("odd.relay"),
        verify(relay.Function([pair], relay.subtract(*fields))),
        verify(several, entry="other"),
    ]


def verified_printed_names():
    """Inputs whose names the text form does not hold."""
    from onnx import parser, save

    model = parser.parse_model(
        '<ir_version: 8, opset_import: ["" : 17]> g (float[2,3] x, float[2,3] b) => (float[2,3] y)'
        "{ y = Sub(x, b) }"
    )
    for name, value in zip(("x:0", "b/0"), model.graph.input, strict=True):
        value.name = name
    model.graph.node[0].input[:] = ["x:0", "b/0"]
    save(model, "names.onnx")
    return serde.convert("names.onnx", "names.relay", verify=True).ok


def run_models():
    """A live module and a file, each in TVM."""
    expected = np.maximum(X @ WEIGHT.T, 0)
    outputs = [
        serde.run(MODULE, {"x": X}, params=PARAMS),
        serde.run("m.relay", X, params="m.params"),
    ]
    return [float(np.abs(next(iter(each.values())) - expected).max()) for each in outputs]


def commands():
    """The command line, from the files of ``verified_files``."""
    results = []
    for line in (
        "convert m.relay --params m.params -o cli.onnx --verify", "check m.json --params m.params",
        "inspect m.json --params m.params",
    ):  # fmt: skip
        start = [sys.executable, "-c", f"import sys; sys.path.append({sys.argv[1]!r}); "
                 "from serde.cli.commands import main; main()"]  # fmt: skip
        done = subprocess.run([*start, *line.split()], capture_output=True, text=True)
        results.append([done.returncode, done.stdout])
    return results


CASES = (
    export, exported_arrays, exported_bound, exported_function, check, refuse, inspect,
    verified_live, verified_files, verified_names, verified_printed_names,
    run_models, commands,
)  # fmt: skip

for case in CASES:
    try:
        result = case()
    except (SerdeError, tvm.TVMError) as error:
        result = f"{type(error).__name__}: {error}"
    print(json.dumps([case.__name__, result]), flush=True)
