"""Products of matrices."""

from __future__ import annotations

from testing.mxnet.cases import case, f16, f32, f64, in_float32, operator_test, refuses

CASES = [
    *(
        case("FullyConnected", f32(*s), f32(6, n), f32(6), num_hidden=6)
        for s, n in (((2, 3), 3), ((2, 3, 4), 12), ((2, 3, 4, 5), 60), ((2, 3, 2, 2, 2), 24))
    ),
    *(
        case("FullyConnected", f32(*s), f32(6, s[-1]), f32(6), num_hidden=6, flatten=False)
        for s in ((2, 3), (2, 3, 4), (2, 3, 4, 5), (3,))
    ),
    case("FullyConnected", f32(2, 3, 4), f32(6, 12), num_hidden=6, no_bias=True),
    case("FullyConnected", f32(2, 3, 4), f32(6, 4), num_hidden=6, no_bias=True, flatten=False),
    case("FullyConnected", f32(2, 3, 4), f32(6, 4), f32(6), num_hidden=6, flatten=False).but(
        params=()
    ),
    case("FullyConnected", f32(5), f32(6, 1), f32(6), num_hidden=6),
    case("FullyConnected", f64(2, 3, 4), f64(6, 12), f64(6), num_hidden=6),
    case("FullyConnected", f64(2, 3, 4), f64(6, 4), f64(6), num_hidden=6, flatten=False),
    case("FullyConnected", f16(2, 3, 4), f16(6, 12), f16(6), num_hidden=6).but(oracle=in_float32),
    case("FullyConnected", f16(2, 3, 4), f16(6, 4), f16(6), num_hidden=6, flatten=False).but(
        oracle=in_float32
    ),
    *(
        case("dot", a, b)
        for a, b in (
            (f32(3), f32(3)),
            (f32(2, 3), f32(3)),
            (f32(2, 3), f32(3, 4)),
            (f32(2, 4, 3), f32(3, 5)),
            (f32(2, 3), f32(3, 4, 5)),
            (f32(2, 2, 3), f32(3, 4, 5)),
            (f32(3), f32(3, 4)),
            (f32(2, 3, 4), f32(4)),
        )
    ),
    *(
        case("dot", a, b, transpose_a=True)
        for a, b in ((f32(3, 2), f32(3, 4)), (f32(3, 2, 4), f32(3, 5)), (f32(3, 2), f32(3)))
    ),
    *(
        case("dot", a, b, transpose_b=True)
        for a, b in ((f32(2, 3), f32(4, 3)), (f32(2, 3), f32(4, 5, 3)), (f32(2, 3), f32(3)))
    ),
    case("dot", f32(3, 2), f32(4, 3), transpose_a=True, transpose_b=True),
    case("dot", f64(2, 3), f64(3, 4)),
    case("dot", f16(2, 3), f16(3, 4)).but(oracle=in_float32),
    *(
        case(
            "batch_dot",
            f32(2, *((4, 3) if ta else (3, 4))),
            f32(2, *((5, 4) if tb else (4, 5))),
            transpose_a=ta,
            transpose_b=tb,
        )
        for ta in (0, 1)
        for tb in (0, 1)
    ),
    case("batch_dot", f32(2, 3, 4, 5), f32(2, 3, 5, 6)),
    case("batch_dot", f64(2, 4, 5), f64(2, 5, 6)),
    case("batch_dot", f16(2, 4, 5), f16(2, 5, 6)).but(oracle=in_float32),
    refuses("dot", f32(2, 3), f32(3, 4), forward_stype="csr", says="forward_stype=csr"),
]
test_linear = operator_test(CASES)
