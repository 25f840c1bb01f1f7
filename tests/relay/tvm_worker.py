"""Answers questions about Relay with the real TVM; runs in the environment ``tvm_live.py`` makes.

One request a line on standard input, one reply a line on standard output, both JSON.
"""

from __future__ import annotations

import json
import os
import sys
from pathlib import Path

import numpy as np
import tvm
from tvm import relay

sys.path.insert(0, str(Path(__file__).resolve().parents[2]))
from tests.relay.ops import record
from tests.relay.tvm_networks import flat, gluon, testing

FORMS = {"text": lambda text: tvm.relay.fromtext(text), "json": lambda text: tvm.ir.load_json(text)}


def module(form, text, typed=True):
    found = FORMS[form](text)
    return relay.transform.InferType()(found) if typed and form == "json" else found


def same(a, b):
    """Whether two modules, each ``[form, text]``, are equal to TVM."""
    return any(tvm.ir.structural_equal(module(*a, typed), module(*b, typed)) for typed in (0, 1))


def text_of(a):
    return module(*a).astext(show_meta_data=True)


def json_of(a):
    return tvm.ir.save_json(module(*a))


def run(a, inputs, outputs, params=None):
    """Run ``main`` with the arrays of one file; write what it gives, flattened, to another.

    ``params`` is a parameter file, for parameters of ``main`` that are not among the arrays.
    """
    found = module(*a)
    if params:
        held = relay.load_param_dict(Path(params).read_bytes())
        found["main"] = relay.build_module.bind_params_by_name(found["main"], held)
    feeds = np.load(inputs)
    names = [p.name_hint for p in found["main"].params]
    executor = relay.create_executor("vm", mod=found, device=tvm.cpu(), target="llvm")
    result = executor.evaluate()(*(tvm.nd.array(feeds[n]) for n in names))
    np.savez(outputs, *(y.numpy() for y in flat(result)))


def build(a, folder):
    """Compile a module to everything TVM makes of one."""
    found, folder = module(*a), Path(folder)
    library = relay.build(found, target="llvm")
    library.export_library(str(folder / "lib.so"))
    (folder / "graph.json").write_text(library.get_graph_json())
    (folder / "p.params").write_bytes(relay.save_param_dict(library.get_params()))
    code, _ = relay.vm.compile(found, target="llvm").save()
    (folder / "vm.ro").write_bytes(bytes(code))


def ops():
    """The type of every Relay operator's attributes."""
    names = [n for n in tvm.ir.Op.list_op_names() if not n.startswith(("relax.", "tir.", "script"))]
    return {n: tvm.ir.Op.get(n).attrs_type_key for n in names}


def fields(text):
    """Names and types of the fields of the attributes of the call that ``main`` is."""
    attrs = tvm.ir.load_json(text)["main"].body.attrs
    return [[f.name, f.type_info] for f in tvm.ir._ffi_api.AttrsListFieldInfo(attrs)]


def live(*case):
    """Run a case of ``tests/relay/ops``."""
    return record.live(*case)


NETWORKS = (testing, gluon)
COMMANDS = {
    f.__name__: f for f in (same, text_of, json_of, run, build, ops, fields, live, *NETWORKS)
}


def main():
    out = os.fdopen(os.dup(1), "w")
    os.dup2(2, 1)  # TVM's own messages
    print(json.dumps(tvm.__version__), file=out, flush=True)
    for line in sys.stdin:
        name, *arguments = json.loads(line)
        try:
            reply = {"value": COMMANDS[name](*arguments)}
        except Exception as error:
            reply = {"error": str(error).strip()[-2000:]}
        print(json.dumps(reply), file=out, flush=True)


if __name__ == "__main__":
    main()
