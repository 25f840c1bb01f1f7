"""The rule table from TensorFlow Lite's operators into the IR, and how it treats integers.

A rule computes with real numbers. The table hands it what the integers of quantized operands stand
for, and quantizes its results: DequantizeLinear, the layer, QuantizeLinear. A rule in ``MOVES``
only arranges elements: it is handed the integers, unless those of operands and results stand for
different numbers. A rule in ``PLAIN`` is handed what the file has.
"""

from __future__ import annotations

import copy
from collections.abc import Mapping, Sequence
from types import MappingProxyType
from typing import Any

import numpy as np

from serde.errors import ConversionError, UnsupportedOp, require
from serde.ir.graph import DType, Node, Value
from serde.rewrite.rules import Keyed, Rule, RuleTable

from .decode import CUSTOM_MARK
from .io.schema import enums
from .quantization import NARROW, Quantization

FUSED = "fused_activation_function"
# Operators whose results are elements of the operands that are listed; none is all.
MOVES: Mapping[str, tuple[int, ...]] = {
    **dict.fromkeys(
        ("BATCH_TO_SPACE_ND", "BROADCAST_TO", "DEPTH_TO_SPACE", "EXPAND_DIMS", "GATHER",
         "GATHER_ND", "MAX_POOL_2D", "MIRROR_PAD", "PAD", "REDUCE_MAX", "REDUCE_MIN", "RESHAPE",
         "RESIZE_NEAREST_NEIGHBOR", "REVERSE_SEQUENCE", "REVERSE_V2", "SLICE", "SPACE_TO_BATCH_ND",
         "SPACE_TO_DEPTH", "SPLIT_V", "SQUEEZE", "STRIDED_SLICE", "TILE", "TRANSPOSE", "UNPACK"),
        (0,)),
    **dict.fromkeys(("CONCATENATION", "PACK"), ()),
    "DYNAMIC_UPDATE_SLICE": (0, 1), "FILL": (1,), "PADV2": (0, 2), "SCATTER_ND": (1,),
    "SPLIT": (1,), "EMBEDDING_LOOKUP": (1,),
}  # fmt: skip
# Of these, those that runtimes of ONNX compute of bytes and not of int16.
BYTES_ONLY = frozenset(
    "MAX_POOL_2D MIRROR_PAD PAD PADV2 REDUCE_MAX REDUCE_MIN RESIZE_NEAREST_NEIGHBOR "
    "SPACE_TO_BATCH_ND".split()
)
# Operators that compute with integers as they are, or look at their quantization themselves.
PLAIN = frozenset(
    "ARG_MAX ARG_MIN BITCAST BITWISE_XOR CALL CALL_ONCE CAST DENSIFY DEQUANTIZE IF QUANTIZE RANK "
    "RIGHT_SHIFT SHAPE STABLEHLO_COMPOSITE UNIQUE WHERE WHILE ZEROS_LIKE".split()
)
LAYERS = frozenset(
    "CONV_2D CONV_3D CONV_3D_TRANSPOSE DEPTHWISE_CONV_2D FULLY_CONNECTED TRANSPOSE_CONV".split()
)  # whose last operand may be a bias
NAMED = "keeps a variable by name: make the model with it as an input and an output"
RANDOM = "draws random numbers: compute them outside of the model, as an input"
COMPLEX = "computes with complex numbers: take their parts, or end the model before it (--outputs)"
HASHES = "keeps a table of keys: look them up outside of the model, and feed the numbers"
REASONS = {
    **dict.fromkeys(("MULTINOMIAL", "RANDOM_STANDARD_NORMAL", "RANDOM_UNIFORM",
                     "STABLEHLO_RNG_BIT_GENERATOR"), RANDOM),
    **dict.fromkeys(("HASHTABLE", "HASHTABLE_FIND", "HASHTABLE_IMPORT", "HASHTABLE_LOOKUP",
                     "HASHTABLE_SIZE", "LSH_PROJECTION", "SKIP_GRAM"), HASHES),
    **dict.fromkeys(("ASSIGN_VARIABLE", "CALL_ONCE", "READ_VARIABLE", "VAR_HANDLE"), NAMED),
}  # fmt: skip


class TfliteTable(RuleTable):
    """A table whose rules compute with real numbers; ``quantizations`` are those of a graph."""

    quantizations: Mapping[str, Quantization] = MappingProxyType({})

    def with_quantizations(self, quantizations: Mapping[str, Quantization]) -> TfliteTable:
        """A copy of the table for a graph."""
        table = copy.copy(self)
        table.quantizations = quantizations
        return table

    def _no_rule(self, op: str) -> UnsupportedOp:
        if op in self.reasons or op in enums()["BuiltinOperator"]:
            return super()._no_rule(op)
        return UnsupportedOp(
            f"{op.removeprefix(CUSTOM_MARK)!r} is a custom operator, whose meaning the file does "
            "not tell. Give a rule for it (rules=), or end the model before it (--outputs)"
        )

    def bind(self, rule: Rule, op: str, attrs: Keyed) -> dict[str, Any]:
        """Parse ``attrs`` for ``rule``; a fused activation is the table's."""
        if FUSED in attrs and FUSED not in rule.attributes:
            attrs = {name: value for name, value in attrs.items() if name != FUSED}
        return super().bind(rule, op, attrs)

    def form(self, value: Value | None) -> Quantization | None:
        """How a value's integers stand for real numbers, None where they stand for themselves."""
        if value is None or value.dtype not in NARROW:
            return None
        return self.quantizations.get(value.name)

    def apply(self, node: Node, builder: Any, inputs: tuple[Value | None, ...]) -> Any:
        """Emit what a node becomes."""
        is_complex = any(v is not None and v.dtype is DType.COMPLEX64 for v in node.inputs)
        rule = self._rules.get(f"complex.{node.op}" if is_complex else node.op)
        if rule is None:
            raise UnsupportedOp(COMPLEX) if is_complex else self._no_rule(node.op)
        fused = 0 if FUSED in rule.attributes else int(node.attrs.get(FUSED, 0))  # type: ignore[arg-type]
        forms = [self.form(v) for v in node.inputs]
        moves = node.op in PLAIN or self._only_moves(node, forms)
        operands = inputs if moves else self._dequantize(builder, node, inputs, forms)
        self._check_operands(rule, operands)
        fewest, _ = rule.operands
        require(None not in operands[:fewest], "an operand that it needs is left out. Give it")
        bound = self.bind(rule, node.op, node.attrs)
        hints = {
            "results": node.outputs, "forms": tuple(map(self._plain_form, node.inputs)),
            "result_forms": tuple(map(self._plain_form, node.outputs)),
        }  # fmt: skip
        bound.update({name: hints[name] for name in rule.hints})
        results = rule.function(builder, *operands, **bound)
        results = results if isinstance(results, tuple) else (results,)
        if fused:
            results = (activate(builder, fused, results[0]), *results[1:])
        if moves:
            return results
        pairs = zip(node.outputs, results, strict=False)
        quantized = [self._quantize(builder, old, new) for old, new in pairs]
        return (*quantized, *results[len(quantized) :])

    def _plain_form(self, value: Value | None) -> Quantization | None:
        """What a file says of a tensor, whatever its element type is."""
        return None if value is None else self.quantizations.get(value.name)

    def _only_moves(self, node: Node, forms: Sequence[Quantization | None]) -> bool:
        """Whether an operator arranges integers that all stand for the same numbers."""
        if node.op not in MOVES or node.attrs.get(FUSED):
            return False
        if node.op in BYTES_ONLY and node.outputs[0].dtype is DType.INT16 and forms[0] is not None:
            return False
        places = MOVES[node.op] or range(len(forms))
        read = [forms[at] for at in places if at < len(forms)]
        written = [self.form(v) for v in node.outputs]
        first = read[0] if read else None
        if first is None:
            return all(f is None for f in (*read, *written))
        return first.is_per_tensor and all(f == first for f in (*read, *written))

    def _dequantize(
        self, g: Any, node: Node, inputs: Sequence[Value | None],
        forms: Sequence[Quantization | None],
    ) -> tuple[Value | None, ...]:  # fmt: skip
        operands = []
        for at, (value, form) in enumerate(zip(inputs, forms, strict=True)):
            if value is None or form is None:
                require(
                    value is None or value.dtype not in NARROW or node.op not in NEEDS_SCALES,
                    f"operand {at} is of {value and value.type.value} and has no scale. "
                    "Quantize the model anew",
                )
                operands.append(value)
            else:
                require(
                    np.all(form.scale > 0) and np.isfinite(form.scale).all(),
                    f"the scale of operand {at} is not positive. Quantize the model anew",
                )
                operands.append(form.dequantize(g, value))
        if node.op in LAYERS:
            self._dequantize_bias(g, node, inputs, forms, operands)
        return tuple(operands)

    def _dequantize_bias(
        self, g: Any, node: Node, inputs: Sequence[Value | None],
        forms: Sequence[Quantization | None], operands: list[Value | None],
    ) -> None:  # fmt: skip
        """A bias of integers counts in the unit of the products, whatever its own scale is."""
        at, data, weights = BIAS.get(node.op, (2, 0, 1))
        bias = inputs[at] if at < len(inputs) else None
        if bias is None or bias.dtype not in (DType.INT32, DType.INT64):
            return
        x, w = forms[data], forms[weights]
        if x is None or w is None:
            raise ConversionError("a bias of integers beside operands without scales. "
                                  "Quantize the model anew")  # fmt: skip
        require(
            x.is_per_tensor and not w.block_size,
            "a bias of integers beside data of several scales, or weights in blocks. Quantize the "
            "model anew",
        )
        scale = (x.scale * w.scale).astype(np.float32)
        if bias.dtype is DType.INT64:
            if bias.tensor is None or np.abs(bias.array()).max(initial=0) >= 2**31:
                unit = g.const(scale.reshape(() if scale.size == 1 else scale.shape))
                operands[at] = g.Mul(g.cast(bias, DType.FLOAT32), unit)
                return
            bias = g.cast(bias, DType.INT32)
        operands[at] = Quantization.of(scale).dequantize(g, bias)

    def _quantize(self, g: Any, old: Value, new: Value | None) -> Value | None:
        form = self.form(old)
        if form is None or new is None or new.dtype is not DType.FLOAT32:
            return new
        assert old.dtype is not None
        reshape = g.maker(new, "Reshape") if form.is_per_tensor else None
        if reshape is not None:  # of integers, so that the layer is next to its quantization
            return g.Reshape(form.quantize(g, reshape.inputs[0], old.dtype), reshape.inputs[1])  # type: ignore[no-any-return]
        return form.quantize(g, new, old.dtype)


# Where layers have their bias, data and weights, if not in the order of weights' data.
BIAS = {"TRANSPOSE_CONV": (3, 2, 1), "CONV_3D_TRANSPOSE": (3, 2, 1)}
# Operators whose integers are counts of a scale; others of these types are plain numbers.
NEEDS_SCALES = LAYERS | frozenset(
    "ADD AVERAGE_POOL_2D BATCH_MATMUL DIV ELU EXP GELU HARD_SWISH L2_NORMALIZATION LEAKY_RELU LOG "
    "LOGISTIC LOG_SOFTMAX MEAN MUL PRELU RELU6 RELU_N1_TO_1 RSQRT SOFTMAX SQRT "
    "SQUARED_DIFFERENCE SUB SUM TANH".split()
)


def activate(g: Any, kind: int, x: Value) -> Any:
    """A fused activation, by its number in the schema."""
    if kind == 1:
        return g.Relu(x) if x.type.kind == "f" else g.Max(x, g.scalar(0, x))
    if kind in BOUNDS:
        low, high = BOUNDS[kind]
        return g.Clip(x, g.scalar(low, x), g.scalar(high, x))
    if kind == 4:
        return g.Tanh(x)
    require(kind == 0, f"the fused activation {kind}, which kernels do not have. Leave it out")
    return x


BOUNDS = {2: (-1.0, 1.0), 3: (0.0, 6.0)}
reads = TfliteTable("tflite → ir", reasons=REASONS)
