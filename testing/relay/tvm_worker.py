"""Answers questions about Relay with the real TVM; runs in the environment ``tvm_live.py`` makes."""

from __future__ import annotations

import os
import sys
from pathlib import Path
from types import SimpleNamespace

import numpy as np
import tvm
from tvm import relay

sys.path.insert(0, str(Path(__file__).resolve().parents[2]))
from testing.relay.ops import record
from testing.relay.tvm_networks import gluon, testing
from testing.relay.tvm_running import build_static, execute, flat
from testing.serving import serve

FORMS = {"text": lambda text: tvm.relay.fromtext(text), "json": lambda text: tvm.ir.load_json(text)}


def module(form, text, typed=True):
    mod = FORMS[form](text)
    return relay.transform.InferType()(mod) if typed and form == "json" else mod


def same(a, b):
    """Whether two modules, each ``[form, text]``, are equal to TVM."""
    return any(tvm.ir.structural_equal(module(*a, typed), module(*b, typed)) for typed in (0, 1))


def identical(a, b):
    """Whether two modules are structurally equal as they stand, before types are inferred."""
    return tvm.ir.structural_equal(module(*a, False), module(*b, False), map_free_vars=True)


def text_of(a):
    return module(*a).astext(show_meta_data=True)


def json_of(a):
    return tvm.ir.save_json(module(*a))


def run(a, inputs, outputs, params=None):
    """Run ``main`` with the arrays of one file; write what it gives, flattened, to another.

    ``params`` is a parameter file, for parameters of ``main`` that are not among the arrays.
    """
    mod = module(*a)
    if params:
        held = relay.load_param_dict(Path(params).read_bytes())
        mod["main"] = relay.build_module.bind_params_by_name(mod["main"], held)
    feeds = np.load(inputs)
    np.savez(outputs, *run_main(mod, feeds))


def run_static(a, inputs, outputs):
    """The same by the graph executor, which ``relay.build`` compiles static shapes for."""
    mod, feeds = module(*a), np.load(inputs)
    names = [p.name_hint for p in mod["main"].params]
    np.savez(outputs, *build_static(mod)([feeds[n] for n in names]))


def run_network(files, inputs, outputs):
    """The same of files of JSON and of parameters, if any, compiled in the least time.

    The third of ``files`` is a number of seconds, after which this process ends.
    """
    path, params, seconds = files
    arrays = dict(np.load(inputs))
    if params:
        arrays.update(relay.load_param_dict(Path(params).read_bytes()))
    np.savez(outputs, *execute(module("json", Path(path).read_text()), arrays, seconds))


def run_main(mod, feeds):
    """What ``main`` gives for arrays by name, flattened."""
    names = [p.name_hint for p in mod["main"].params]
    with tvm.transform.PassContext(opt_level=1):
        executor = relay.create_executor("vm", mod=mod, device=tvm.cpu(), target="llvm")
        result = executor.evaluate()(*(tvm.nd.array(feeds[n]) for n in names))
    return [y.numpy() for y in flat(result)]


def run_onnx(path, inputs, outputs, package):
    """Run a model by TVM's own importer, with the onnx that is installed at ``package``."""
    if os.path.dirname(package) not in sys.path:
        sys.path.append(os.path.dirname(package))
    import onnx

    if not hasattr(onnx, "mapping"):  # which newer releases have left out
        from onnx import helper

        kinds = {k: helper.tensor_dtype_to_np_dtype(k) for k in helper.get_all_tensor_dtypes()}
        names = {np.dtype(t): k for k, t in kinds.items()}
        onnx.mapping = SimpleNamespace(TENSOR_TYPE_TO_NP_TYPE=kinds, NP_TYPE_TO_TENSOR_TYPE=names)
        sys.modules["onnx.mapping"] = onnx.mapping
    feeds = np.load(inputs)
    model = onnx.load(path)
    shapes = {n: feeds[n].shape for n in feeds.files}
    mod, held = relay.frontend.from_onnx(model, shape=shapes)
    mod["main"] = relay.build_module.bind_params_by_name(mod["main"], held)
    np.savez(outputs, *run_main(relay.transform.InferType()(mod), feeds))


def build(a, folder):
    """Compile a module to everything TVM makes of one."""
    mod, folder = module(*a), Path(folder)
    library = relay.build(mod, target="llvm")
    library.export_library(str(folder / "lib.so"))
    (folder / "graph.json").write_text(library.get_graph_json())
    (folder / "p.params").write_bytes(relay.save_param_dict(library.get_params()))
    code, _ = relay.vm.compile(mod, target="llvm").save()
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
    f.__name__: f
    for f in (
        same,
        identical,
        text_of,
        json_of,
        run,
        run_static,
        run_network,
        run_onnx,
        build,
        ops,
        fields,
        live,
        *NETWORKS,
    )
}


if __name__ == "__main__":
    serve(tvm.__version__, COMMANDS)
