"""Pad, MXNet's and NumPy's."""

from __future__ import annotations

from testing.mxnet.cases import case, f16, f32, f64, operator_test, refuses


def numpy(op, *xs, **attrs):
    return case(op, *xs, **attrs).but(np_shape=True)


CASES = [
    *(
        case("Pad", f32(2, 3, 4, 5), mode=m, pad_width="(0,0,0,0,1,2,3,1)")
        for m in ("constant", "edge", "reflect")
    ),
    *(
        case("Pad", f32(2, 3, 4, 5, 2), mode=m, pad_width="(0,0,0,0,1,2,3,1,1,0)")
        for m in ("constant", "edge", "reflect")
    ),
    case(
        "Pad", f32(2, 3, 4, 5), mode="constant", pad_width="(0,0,0,0,1,2,3,1)", constant_value=2.5
    ),
    case(
        "Pad", f64(2, 3, 4, 5), mode="constant", pad_width="(0,0,0,0,1,2,3,1)", constant_value=-2.5
    ),
    case("Pad", f16(2, 3, 4, 5), mode="edge", pad_width="(0,0,0,0,1,2,3,1)"),
    *(
        numpy("_npi_pad", x, pad_width="((1, 0), (2, 1))", mode=m)
        for m in ("constant", "edge", "reflect")
        for x in (f32(2, 3), f64(3, 4))
    ),
    numpy("_npi_pad", f32(2, 3), pad_width="((1, 0), (2, 1))", constant_value=2.5),
    *(
        numpy("_npi_pad", f32(3, 4, 5), pad_width=w, mode=m)
        for m in ("symmetric", "maximum", "minimum")
        for w in ("((1, 2), (0, 0), (3, 0))", "((0, 1), (2, 4), (0, 0))")
    ),
    numpy("_npi_pad", f32(3, 4), pad_width="((0, 0), (9, 5))", mode="symmetric"),
    numpy("_npi_pad", f16(2, 3, 2), pad_width="((1, 0), (2, 1), (0, 0))"),
    refuses("_npi_pad", f32(2, 3), pad_width="((1, 0), (2, 1))", mode="wrap", says="mode='wrap'"),
]

test_padding = operator_test(CASES)
