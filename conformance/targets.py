"""The targets of the matrix: files of each format, run by their own runtimes."""

from __future__ import annotations

import os
import tempfile
from collections.abc import Iterator, Mapping, Sequence
from functools import cached_property
from pathlib import Path
from typing import Any

import numpy as np
import onnx

import serde
from serde.errors import SerdeError
from serde.formats.onnx.from_ir import from_ir
from serde.formats.onnx.writer import to_proto
from serde.ir.graph import IR_OPSET, Graph
from serde.legalize.target import LOWEST_WRITTEN
from serde.spec import schema
from testing.live_worker import LiveError
from testing.mxnet.releases_live import WRITTEN, worker

from .matrix import NotRun, Target
from .onnx_runs import (
    as_declared,
    as_float32,
    require_agreement,
    run_both_ways,
    run_onnx,
    with_float32_ends,
)

# What MXNet itself cannot do on a processor, as it says so.
MXNET_LACKS = (
    "FP16 gemm on cpu not implemented",
    "If not using CUDNN, only 1D or 2D Deconvolution is supported",
    "Dilate is not supported in 3d convolution",
)
BFLOAT16 = onnx.helper.tensor_dtype_to_np_dtype(onnx.TensorProto.BFLOAT16)
NEWEST_RUN = 26  # the newest opset that ONNX Runtime 1.31 takes
ROUNDING = frozenset({"DynamicQuantizeLinear", "QuantizeLinear", "Round"})


class Onnx(Target):
    """Models at every opset, by ONNX Runtime with its optimiser and without.

    ``onnx.reference`` judges what ONNX Runtime has no kernel for, or cannot load at that opset.
    """

    name = "onnx"
    variants = tuple(str(v) for v in range(LOWEST_WRITTEN, IR_OPSET + 1))

    def __init__(self) -> None:
        self._last: tuple[Any, Any, Sequence[Any]] | None = None  # model, feeds, results

    def run(self, graph: Graph, feeds: Mapping[str, Any], variant: str) -> Sequence[Any]:
        model = to_proto(from_ir(graph, int(variant)))
        onnx.checker.check_model(model)
        named = {i.name: feeds[i.name] for i in model.graph.input if i.name in feeds}
        key = model.graph.SerializeToString(), *_versions(model)
        if self._last is None or self._last[0] != key or self._last[1] is not feeds:
            self._last = None
            self._last = key, feeds, run_onnx(model, named)
        return self._last[2]


class Consumer(Target):
    """What the profile of a consumer writes, run by the consumer.

    These multiply by the reciprocal where the standard divides: a quotient halfway between two
    integers may be rounded to either.
    """

    def __init__(self) -> None:
        self.rounds = False  # whether the last model does

    def run(self, graph: Graph, feeds: Mapping[str, Any], variant: str) -> Sequence[Any]:
        """``variant`` is an opset, that of the profile if empty."""
        from testing.consumers.runtimes import run

        model = to_proto(from_ir(graph, int(variant) if variant else None, profile=self.name))
        held = {t.name for t in model.graph.initializer}
        inputs = {i.name: feeds[i.name] for i in model.graph.input if i.name not in held}
        self.rounds = not ROUNDING.isdisjoint(n.op_type for n in model.graph.node)
        with tempfile.TemporaryDirectory() as folder:
            onnx.save(model, f"{folder}/m.onnx")
            return run(self.name, f"{folder}/m.onnx", inputs)

    def comparable(self, expected: Any, got: Any) -> Any:
        """The expected integer for one next to it, where the model rounds."""
        is_alike = (got.dtype, got.shape) == (expected.dtype, expected.shape)
        if not self.rounds or not is_alike or expected.dtype.kind not in "iu":
            return got
        apart = np.abs(got.astype(np.float64) - expected.astype(np.float64))
        return np.where(apart <= 1, expected, got)


class ONNXRuntime(Target):
    """ONNX Runtime with its optimizers and without, and nothing in its place."""

    name = "onnxruntime"

    def run(self, graph: Graph, feeds: Mapping[str, Any], variant: str) -> Sequence[Any]:
        model = to_proto(from_ir(graph, profile=self.name))
        onnx.checker.check_model(model)
        named = {i.name: feeds[i.name] for i in model.graph.input if i.name in feeds}
        casted = with_float32_ends(model)
        named = {n: as_float32(a) for n, a in named.items()}
        results = require_agreement(model, *run_both_ways(casted, named))
        return [*map(as_declared, results, model.graph.output)]

    def comparable(self, expected: Any, got: Any) -> Any:
        """The expected bfloat16 for one two steps away: operators in float32 round one by one."""
        return round_bfloat16(expected, got)


def round_bfloat16(expected: Any, got: Any) -> Any:
    """``got`` with the expected bfloat16 for one two steps away."""
    if getattr(got, "dtype", None) != BFLOAT16 or got.shape != expected.shape:
        return got
    a, b = (np.asarray(v, np.float32) for v in (got, expected))
    return np.where(np.abs(a - b) <= np.maximum(np.abs(b), 2**-6) * 2**-6, expected, got)


class OpenVINO(Consumer):
    """OpenVINO on the processor."""

    name = "openvino"


class Tract(Consumer):
    """tract on the processor."""

    name = "tract"


class MNN(Consumer):
    """MNN on the processor."""

    name = "mnn"


class NCNN(Consumer):
    """What pnnx makes of the model, in ncnn on the processor."""

    name = "ncnn"


class Torch(Target):
    """The sources of PyTorch modules, run in a process of their own."""

    name = "torch"

    @cached_property
    def worker(self) -> Any:
        """The process, which ``SERDE_PYTORCH`` names a Python for."""
        from serde.bridges.torch import TorchWorker

        return TorchWorker()

    def run(self, graph: Graph, feeds: Mapping[str, Any], variant: str) -> Sequence[Any]:
        with tempfile.TemporaryDirectory() as folder:
            path = f"{folder}/m.py"
            serde.save(graph, path)
            return self.worker.run(path, [feeds[v.name] for v in graph.inputs])  # type: ignore[no-any-return]

    def comparable(self, expected: Any, got: Any) -> Any:
        """The expected bfloat16 for one two steps away: PyTorch's softmax rounds once."""
        return round_bfloat16(expected, got)


class Litert(Target):
    """TensorFlow Lite's files, run by LiteRT with XNNPACK's kernels and without.

    A file that it cannot run is a wrong one.
    """

    name = "litert"

    @cached_property
    def worker(self) -> Any:
        """The process, for which ``SERDE_LITERT`` names a folder with LiteRT."""
        from serde.bridges.litert import LitertWorker

        return LitertWorker()

    def run(self, graph: Graph, feeds: Mapping[str, Any], variant: str) -> Sequence[Any]:
        with tempfile.TemporaryDirectory() as folder:
            path = f"{folder}/m.tflite"
            serde.save(graph, path)
            arrays = [feeds[v.name] for v in graph.inputs]
            try:
                both = [self.worker.run(path, arrays, delegates=d) for d in (True, False)]
            except SerdeError as error:
                del self.worker  # it may have ended
                raise RuntimeError(str(error)) from error
        for ours, theirs in zip(*both, strict=True):
            # The kernels without XNNPACK have the largest number where infinity belongs.
            ours, theirs = map(np.nan_to_num, (ours, theirs))
            scale = float(np.abs(ours, dtype=np.float64).max(initial=0))
            np.testing.assert_allclose(ours, theirs, 1e-4, 1e-5 * max(scale, 1.0))
        return both[0]  # type: ignore[no-any-return]


def _versions(model: onnx.ModelProto) -> Iterator[int]:
    """The versions of a model's operators: two opsets of the same ones are one model to a runtime.

    ONNX Runtime is asked again where it knows an opset no more, and at every fourth.
    """
    opset = next((o.version for o in model.opset_import if not o.domain), 1)
    yield opset // 4
    yield opset > NEWEST_RUN
    stack = [model.graph]
    while stack:
        for node in stack.pop().node:
            operator = schema.find(node.op_type, opset) if not node.domain else None
            yield operator.since if operator is not None else 0
            stack.extend(a.g for a in node.attribute if a.HasField("g"))


class MXNet(Target):
    """Symbols and parameters, bound and run by live MXNet."""

    name = "mxnet"

    @cached_property
    def mxnet(self) -> Any:
        """The live framework."""
        from serde.bridges.mxnet import import_mxnet

        os.environ["MXNET_SUBGRAPH_VERBOSE"] = "0"
        return import_mxnet()

    def run(self, graph: Graph, feeds: Mapping[str, Any], variant: str) -> Sequence[Any]:
        mx = self.mxnet
        with tempfile.TemporaryDirectory() as folder:
            path = Path(folder) / "m-symbol.json"
            serde.save(graph, path, mxnet=mx.__version__)
            symbol = mx.sym.load(str(path))
            held = dict(mx.nd.load(str(path.with_name("m-0000.params"))))
        return self.bind(symbol, {n.partition(":")[2]: a for n, a in held.items()}, feeds)

    def bind(
        self, symbol: Any, arrays: Mapping[str, Any], feeds: Mapping[str, Any]
    ) -> Sequence[Any]:
        """Bind as any program does, and run in inference mode.

        ``Symbol.bind`` infers no shapes of a ``_while_loop``'s results, those of a loop that MXNet
        made included. Gluon's ``CachedOp`` runs such a symbol.
        """
        mx = self.mxnet
        arrays = {**arrays}
        arrays |= {n: mx.nd.array(np.atleast_1d(a), dtype=a.dtype) for n, a in feeds.items()}
        if '"_while_loop"' in symbol.tojson():
            outputs = mx.nd.CachedOp(symbol)(*(arrays[n] for n in symbol.list_inputs()))
            return [y.asnumpy() for y in (outputs if isinstance(outputs, list) else [outputs])]
        try:
            bound = symbol.bind(
                mx.cpu(), {n: arrays[n] for n in symbol.list_arguments()}, grad_req="null",
                aux_states={n: arrays[n] for n in symbol.list_auxiliary_states()},
            )  # fmt: skip
            return [y.asnumpy() for y in bound.forward(is_train=False)]
        except mx.MXNetError as error:
            if lacking := next((r for r in MXNET_LACKS if r in str(error)), None):
                raise NotRun(lacking) from error
            raise

    def comparable(self, expected: Any, got: Any) -> Any:
        """``(1,)`` where ONNX has no axes, and booleans where MXNet has floats."""
        if getattr(expected, "shape", None) == () and got.shape == (1,):
            return got.reshape(())
        return got


class MXNetReleases(MXNet):
    """What is written for each release of MXNet beside the newest 1.x, run by that release."""

    name = "mxnet-releases"
    variants = tuple(WRITTEN)

    def run(self, graph: Graph, feeds: Mapping[str, Any], variant: str) -> Sequence[Any]:
        with tempfile.TemporaryDirectory() as folder:
            symbol, params = f"{folder}/m-symbol.json", f"{folder}/m-0000.params"
            serde.save(graph, symbol, mxnet=variant)
            try:
                return worker(variant).run([symbol, params], feeds, command="run_files")
            except LiveError as error:
                if lacking := next((r for r in MXNET_LACKS if r in str(error)), None):
                    raise NotRun(lacking) from error
                raise


class Relay(Target):
    """Modules in Relay's JSON with parameters, compiled by live TVM for its virtual machine."""

    name = "relay"

    def run(self, graph: Graph, feeds: Mapping[str, Any], variant: str) -> Sequence[Any]:
        from serde.formats.relay.encode import encode
        from serde.formats.relay.from_ir import from_ir as relay_from_ir

        new_graph = relay_from_ir(graph)
        with tempfile.TemporaryDirectory() as folder:
            path, *params = encode(new_graph, Path(folder) / "m.json")
            inputs = {v.name: feeds[v.name] for v in new_graph.inputs}
            return self.ask(folder, inputs, "run", ["json", Path(path).read_text()], *params)

    def ask(
        self, folder: str, feeds: Mapping[str, Any], request: str, model: Any, *more: str
    ) -> Sequence[Any]:
        """What TVM answers to a request, from one file of arrays to another."""
        from testing.relay.tvm_live import ask

        np.savez(f"{folder}/in.npz", **feeds)
        ask(request, model, f"{folder}/in.npz", f"{folder}/out.npz", *more)
        with np.load(f"{folder}/out.npz") as arrays:
            return [arrays[f"arr_{i}"] for i in range(len(arrays.files))]


class Relax(Target):
    """What the profile ``relax`` writes, imported, compiled and run by live TVM."""

    name = "relax"

    def run(self, graph: Graph, feeds: Mapping[str, Any], variant: str) -> Sequence[Any]:
        return self.run_model(to_proto(from_ir(graph, profile="relax")), feeds)

    def run_model(self, model: onnx.ModelProto, feeds: Mapping[str, Any]) -> Sequence[Any]:
        """What the importer's result computes."""
        from testing.relax.relax_live import run

        held = {t.name for t in model.graph.initializer}
        inputs = {i.name: feeds[i.name] for i in model.graph.input if i.name not in held}
        with tempfile.TemporaryDirectory() as folder:
            onnx.save(model, f"{folder}/m.onnx")
            return run(f"{folder}/m.onnx", inputs)
