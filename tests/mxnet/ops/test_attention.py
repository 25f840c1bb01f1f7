"""The interleaved products of GluonNLP's attention."""

from __future__ import annotations

import json
from functools import partial

from testing.mxnet.cases import (
    Case,
    Refusal,
    case,
    f16,
    f32,
    f64,
    i8,
    i32,
    in_float32,
    of,
    operator_test,
    refuses,
    u8,
)
from tests.mxnet.ops.test_quantization import load_symbol
from tests.mxnet.ops.test_quantized_matmul import node, symbol, variable

P = "_contrib_interleaved_matmul_"
T, S, N, H, U = 5, 3, 2, 4, 6


def fuse(op, heads, *inputs):
    """As oneDNN's pass makes it of the plain operator: by itself MXNet cannot run it."""

    def network(mx, *variables):
        plain = getattr(mx.sym.contrib, f"interleaved_matmul_{op}")(*variables, heads=heads)
        return plain.get_backend_symbol("MKLDNN")

    return Case(f"_sg_mkldnn_{op}", inputs, {"heads": str(heads)}, network=network)


def quantise(op, heads, *operands, **attrs):
    """Integers and their ranges, as the quantising pass hands them over."""
    count = len(operands) // 3
    plain = node(f"{P}{op}", "inner", {"heads": heads}, range(count))
    body = [variable(f"b{i}") for i in range(count)]
    names = [variable(f"x{i}") for i in range(len(operands))]
    attrs = {"heads": heads, "quantized": True, **attrs}
    outer = node(f"_sg_mkldnn_{op}", "op", attrs, range(len(operands)))
    outer["subgraphs"] = [symbol([*body, plain], [[count, 0, 0]])]
    outputs = 1 if "enable_float_output" in attrs else 3
    text = json.dumps(symbol([*names, outer], [[len(names), i, 0] for i in range(outputs)]))
    texts = {k: str(v) for k, v in attrs.items()}
    return Case(f"_sg_mkldnn_{op}", operands, texts, network=partial(load_symbol, text))


RANGES, SHARES = (of([-2.1]), of([3])), (of([0]), of([0.97]))
RESULTS = ({"enable_float_output": True}, {"min_calib_range": -9, "max_calib_range": 10.3})


def integers(t, n, h, u):
    """Scores and sums of integer attention."""
    qkv = i8(t, n, h * 3 * u, low=-128, high=127)
    shares = u8(n * h, t, t, low=0, high=255)
    for attrs in RESULTS:
        yield quantise("selfatt_qk", h, qkv, *RANGES, **attrs)
        yield quantise("selfatt_valatt", h, qkv, shares, *RANGES, *SHARES, **attrs)


FORMS = ((3, 2, 2, 4), (5, 1, 1, 6), (1, 2, 3, 2))
CASES = [
    case(P + "selfatt_qk", f32(T, N, H * 3 * U), heads=H),
    case(P + "selfatt_qk", f16(T, N, H * 3 * U), heads=H).but(oracle=in_float32),
    case(P + "selfatt_qk", f32(1, 1, 3 * U), heads=1),
    case(P + "selfatt_valatt", f32(T, N, H * 3 * U), f32(N * H, T, T), heads=H),
    case(P + "encdec_qk", f32(T, N, H * U), f32(S, N, H * 2 * U), heads=H),
    case(P + "encdec_valatt", f32(S, N, H * 2 * U), f32(N * H, T, S), heads=H),
    *(case("_contrib_div_sqrt_dim", f32(*s)) for s in ((3,), (2, 3), (2, 3, 4), (2, 3, 4, 5))),
    case("_contrib_div_sqrt_dim", f16(2, 3)),
    case("_contrib_div_sqrt_dim", f64(2, 3)),
    case(P + "selfatt_valatt", f32(1, 2, 18), f32(4, 1, 1), heads=2),
    case(P + "selfatt_valatt", f32(3, 1, 12), f32(1, 3, 3), heads=1),
    *(case(P + "encdec_qk", f32(1, 2, 6), f32(n, 2, 12), heads=2) for n in (1, 3)),
    *(case(P + "encdec_valatt", f32(1, 2, 12), f32(4, n, 1), heads=2) for n in (1, 3)),
    *(case("_contrib_div_sqrt_dim", make(4, 10)) for make in (i32, u8)),
    *(fuse("selfatt_qk", h, f32(t, n, h * 3 * u)) for t, n, h, u in FORMS),
    *(fuse("selfatt_valatt", h, f32(t, n, h * 3 * u), f32(n * h, t, t)) for t, n, h, u in FORMS),
    *(case for form in FORMS for case in integers(*form)),
    Refusal(quantise("selfatt_qk", 1, i8(3, 2, 12), *RANGES), "without calibration"),
    refuses(
        "_contrib_interleaved_matmul_selfatt_qk",
        f32(1, 1, 18),
        heads=4,
        says="18 numbers for 4 heads",
    ),
]
test_attention = operator_test(CASES)
