"""The targets of the matrix: files of each format, run by their own runtimes."""

from __future__ import annotations

import os
import tempfile
import warnings
from collections.abc import Iterator, Mapping, Sequence
from functools import cached_property
from pathlib import Path
from typing import Any

import numpy as np
import onnx

import serde
from serde.formats.onnx.from_ir import from_ir
from serde.formats.onnx.writer import to_proto
from serde.ir.graph import IR_OPSET, Graph
from serde.legalize.convert import LOWEST_WRITTEN
from serde.pipeline import get_profile
from serde.spec import schema
from tests.live_worker import LiveError
from tests.mxnet.releases_live import WRITTEN, worker

from .matrix import NotRun, Target

# What MXNet itself cannot do on a processor, as it says so.
MXNET_LACKS = (
    "FP16 gemm on cpu not implemented",
    "If not using CUDNN, only 1D or 2D Deconvolution is supported",
    "Dilate is not supported in 3d convolution",
)
BFLOAT16 = onnx.helper.tensor_dtype_to_np_dtype(onnx.TensorProto.BFLOAT16)
NEWEST_RUN = 26  # the newest opset that ONNX Runtime 1.31 takes
ROUNDING = frozenset({"DynamicQuantizeLinear", "QuantizeLinear", "Round"})
RANDOM = frozenset(
    "Bernoulli Dropout Multinomial RandomNormal RandomNormalLike RandomUniform RandomUniformLike"
    .split()
)  # fmt: skip


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
        from tests.consumers.runtimes import run

        model = to_proto(from_ir(graph, **get_profile(self.name).write_options()))
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
        model = to_proto(from_ir(graph, **get_profile(self.name).write_options()))
        onnx.checker.check_model(model)
        named = {i.name: feeds[i.name] for i in model.graph.input if i.name in feeds}
        casted = _with_float32_ends(model)
        named = {n: _as_float32(a) for n, a in named.items()}
        results = _require_agreement(model, *_run_both_ways(casted, named))
        return [*map(_as_declared, results, model.graph.output)]

    def comparable(self, expected: Any, got: Any) -> Any:
        """The expected bfloat16 for one two steps away: operators in float32 round one by one."""
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


class Onnx2Torch(Consumer):
    """The PyTorch modules that onnx2torch makes."""

    name = "onnx2torch"

    def comparable(self, expected: Any, got: Any) -> Any:
        """PyTorch divides as the standard does."""
        return got


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


def run_onnx(model: onnx.ModelProto, feeds: Mapping[str, Any]) -> Sequence[Any]:
    """What ONNX Runtime computes, in both ways alike, or else onnx.reference.

    Raises:
        AssertionError: where the two ways of ONNX Runtime differ.
    """
    from onnx.reference import ReferenceEvaluator

    optimized, plain = _run_both_ways(model, feeds)
    if isinstance(plain, Exception):
        with warnings.catch_warnings(), np.errstate(all="ignore"):
            warnings.simplefilter("ignore")
            try:
                return ReferenceEvaluator(model).run(None, dict(feeds))
            except Exception as error:
                raise NotRun(f"{_line(plain)}; onnx.reference: {_line(error)}") from error
    return _require_agreement(model, optimized, plain)


def _run_both_ways(model: onnx.ModelProto, feeds: Mapping[str, Any]) -> Sequence[Any]:
    """What ONNX Runtime computes, or raises, with its optimizers and without."""
    import onnxruntime as ort

    levels = ort.GraphOptimizationLevel
    runs: list[Any] = []
    for level in (levels.ORT_ENABLE_ALL, levels.ORT_DISABLE_ALL):
        options = ort.SessionOptions()
        options.log_severity_level = 4
        options.intra_op_num_threads = options.inter_op_num_threads = 1
        options.graph_optimization_level = level
        try:
            session = ort.InferenceSession(model.SerializeToString(), options)
            results = session.run(None, dict(feeds))
            runs.append([*map(_with_type, results, model.graph.output)])
        except Exception as error:  # its exceptions have no common base but this
            runs.append(error)
    return runs


def _require_agreement(model: onnx.ModelProto, optimized: Any, plain: Any) -> Sequence[Any]:
    """What ONNX Runtime computes both ways.

    Raises:
        AssertionError: where they differ, or one fails.
    """
    if isinstance(plain, Exception):
        if "locale" in str(plain):
            raise NotRun("the system lacks the locale that StringNormalizer asks for")
        raise AssertionError(f"it does not load or run: {_line(plain)}")
    if isinstance(optimized, Exception):
        raise AssertionError(f"optimised, it does not load: {_line(optimized)}")
    if not _is_random(model.graph) and not all(map(_is_same, optimized, plain)):
        raise AssertionError("ONNX Runtime computes something else where it optimises")
    return plain  # type: ignore[no-any-return]


RARE = frozenset(  # element types that ONNX Runtime's Python has no arrays of; all are float32s
    getattr(onnx.TensorProto, name)
    for name in "BFLOAT16 FLOAT8E4M3FN FLOAT8E4M3FNUZ FLOAT8E5M2 FLOAT8E5M2FNUZ INT4 UINT4".split()
)
RARE_TYPES = frozenset(map(onnx.helper.tensor_dtype_to_np_dtype, RARE))


def _with_float32_ends(model: onnx.ModelProto) -> onnx.ModelProto:
    """The model with inputs and outputs of float32 in place of ``RARE`` types."""
    casted = onnx.ModelProto()
    casted.CopyFrom(model)
    graph = casted.graph
    for end in (*graph.input, *graph.output):
        tensor, is_input = end.type.tensor_type, end in graph.input
        if tensor.elem_type not in RARE:
            continue
        inner = f"{end.name} as declared"
        for node in graph.node:
            node.input[:] = [inner if n == end.name else n for n in node.input]
            node.output[:] = [inner if n == end.name else n for n in node.output]
        names, kind = ([end.name], [inner]), tensor.elem_type
        if is_input:
            graph.node.insert(0, onnx.helper.make_node("Cast", *names, to=kind))
        else:
            graph.node.append(
                onnx.helper.make_node("Cast", *names[::-1], to=onnx.TensorProto.FLOAT)
            )
        tensor.elem_type = onnx.TensorProto.FLOAT
    return casted


def _as_float32(feed: Any) -> Any:
    is_rare = getattr(feed, "dtype", None) in RARE_TYPES
    return feed.astype(np.float32) if is_rare else feed


def _as_declared(result: Any, output: onnx.ValueInfoProto) -> Any:
    kind = output.type.tensor_type.elem_type
    return result.astype(onnx.helper.tensor_dtype_to_np_dtype(kind)) if kind in RARE else result


def _with_type(array: Any, output: onnx.ValueInfoProto) -> Any:
    """An output of ONNX Runtime, which returns the bytes of 8-bit floats."""
    elements = output.type.tensor_type.elem_type
    if elements == onnx.TensorProto.UINT8 or getattr(array, "dtype", None) != np.uint8:
        return array
    return array.view(onnx.helper.tensor_dtype_to_np_dtype(elements))


def _is_random(graph: onnx.GraphProto) -> bool:
    """Whether a node draws random numbers."""
    return any(
        n.op_type in RANDOM or any(_is_random(a.g) for a in n.attribute if a.HasField("g"))
        for n in graph.node
    )


def _line(error: Exception) -> str:
    return (str(error) or type(error).__name__).splitlines()[0][:120]


def _is_same(a: Any, b: Any) -> bool:
    if isinstance(a, (list, dict)) or a is None:
        return repr(a) == repr(b)
    a, b = np.asarray(a), np.asarray(b)
    if a.shape != b.shape or a.dtype != b.dtype:
        return False
    if a.dtype.kind == "V":  # bfloat16 and 8-bit floats
        a, b = a.astype(np.float32), b.astype(np.float32)
    if a.dtype.kind != "f":
        if a.dtype.kind in "OUS":
            return bool(np.array_equal(a, b))
        apart = np.abs(a.astype(np.float64) - b.astype(np.float64)).max(initial=0)
        return bool(apart <= 1)  # an integer that is rounded may lie next to its neighbour
    scale = np.abs(b[np.isfinite(b)], dtype=np.float64).max(initial=1)
    bound = 1e-2 if a.dtype.itemsize == 2 else 1e-4
    return bool(np.isclose(a, b, rtol=bound, atol=bound * scale, equal_nan=True).all())


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
        from tests.relay.tvm_live import ask

        np.savez(f"{folder}/in.npz", **feeds)
        ask(request, model, f"{folder}/in.npz", f"{folder}/out.npz", *more)
        with np.load(f"{folder}/out.npz") as arrays:
            return [arrays[f"arr_{i}"] for i in range(len(arrays.files))]


class Relax(Target):
    """What the profile ``relax`` writes, imported, compiled and run by live TVM."""

    name = "relax"

    def run(self, graph: Graph, feeds: Mapping[str, Any], variant: str) -> Sequence[Any]:
        return self.run_model(
            to_proto(from_ir(graph, **get_profile("relax").write_options())), feeds
        )

    def run_model(self, model: onnx.ModelProto, feeds: Mapping[str, Any]) -> Sequence[Any]:
        """What the importer's result computes."""
        from tests.relax.relax_live import run

        held = {t.name for t in model.graph.initializer}
        inputs = {i.name: feeds[i.name] for i in model.graph.input if i.name not in held}
        with tempfile.TemporaryDirectory() as folder:
            onnx.save(model, f"{folder}/m.onnx")
            return run(f"{folder}/m.onnx", inputs)
