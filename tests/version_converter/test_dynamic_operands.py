"""Dynamic operands, at opsets that hold them in attributes."""

from __future__ import annotations

import numpy as np
import pytest

from tests.version_converter.single import BY_NAME, STATIC, UNKNOWN, Single

RNG = np.random.default_rng(11)
X = RNG.standard_normal((2, 3, 4)).astype(np.float32)
POSITIVE = np.abs(X) + np.float32(0.5)
COMPLEX = RNG.standard_normal((2, 3, 4, 2)).astype(np.float32)
REDUCTIONS = "L1 L2 LogSum LogSumExp Max Mean Min Prod Sum SumSquare"
ints = np.int64


def reductions() -> list[Single]:
    cases = []
    for kind in REDUCTIONS.split():
        op = f"Reduce{kind}"
        cases += [Single(op, (POSITIVE, ints([-1, 0])), {"keepdims": k}) for k in (0, 1)]
        cases += [Single(op, (POSITIVE, ints([])), {"noop_with_empty_axes": n}) for n in (0, 1)]
    return cases


def running() -> list[Single]:
    ways = [{"exclusive": e, "reverse": r} for e in (0, 1) for r in (0, 1)]
    return [
        Single(op, (X, ints(axis)), way)
        for op in ("CumSum", "CumProd") for way in ways for axis in (0, -1)
    ]  # fmt: skip


PADS = [
    Single("Pad", operands, {"mode": mode})
    for mode in ("constant", "edge", "reflect", "wrap")
    for operands in ((X, ints([1, 1, 2, 0]), np.float32(2), ints([-1, 1])),
                     (X, ints([0, 1, 1, 1, 0, 2]), np.float32(2)),
                     (X, ints([0, -1, 1, 1, 1, -2]), np.float32(2)))
]  # fmt: skip
SLICES = [
    Single("Slice", (X, *map(ints, bounds)))
    for bounds in (
        ([1, -3], [100, -1], [2, -2]),
        ([-1, 2], [-100, 0], [2, -2], [-2, -1]),
        ([1, 0, 0], [2, 3, 2]),
    )
]
OTHERS = [
    Single("Slice", (X, ints([1, 0, 1]), ints([2, -1, 2]), None, ints([1, 2, 1]))),
    Single("Squeeze", (X[:, :1], ints([1]))),
    Single("Squeeze", (X[:1, :1], ints([-2, 0]))),
    Single("Squeeze", (X[:0, :1], ints([1]))),
    Single("Unsqueeze", (X, ints([1]))),
    Single("Unsqueeze", (X, ints([-2, 0]))),
    Single("TopK", (X, ints([2])), {"axis": 1}, outputs=2),
    Single("TopK", (X, ints([2])), {"axis": -1, "largest": 0}, outputs=2),
    Single("DFT", (X[..., None], None, ints(1))),
    Single("DFT", (X[..., None], ints(6), ints(-2)), {"onesided": 1}),
    Single("DFT", (COMPLEX, ints(5), ints(1)), {"inverse": 1}),
    Single("GatherND", (X, ints([[0, 1], [1, -1]]))),
    Single("GatherND", (X, ints([[[0], [1]], [[1], [2]]])), {"batch_dims": 1}),
    Single("ScatterND", (X, ints([[0, 1], [1, 2]]), X[0, :2])),
    Single("Reshape", (X[:0], ints([3, 0, 5])), {"allowzero": 1}),
    Single("Reshape", (X, ints([3, 2, 4])), {"allowzero": 1}),
    Single("Det", (RNG.standard_normal((2, 4, 4)).astype(np.float32),)),
    Single("Det", (np.float32([[0, 1, 2], [1, 0, 3], [4, -3, 8]]),)),
    Single("Det", (np.float32([[0, 0, 2], [0, 0, 3], [4, -3, 8]]),)),
]  # fmt: skip


@pytest.mark.parametrize(
    "case", [*reductions(), *running(), *PADS, *SLICES, *OTHERS], ids=lambda c: c.id
)
def test_operand_computed(case: Single) -> None:
    """At opset 7 with no size known, at 12 with all of them."""
    older, newer = (17, 17) if case.op == "CumProd" else (7, 12)
    case.check((older,), [UNKNOWN])
    case.check((newer,), [STATIC])


@pytest.mark.parametrize("held", [(), (1, 2)], ids=["computed", "constant"])
@pytest.mark.parametrize("attrs", [
    {}, {"pads": [0, 1, 0, 1]}, {"strides": [2, 1]}, {"dilations": [2, 1]},
], ids=str)  # fmt: skip
def test_patches_put_back(attrs: dict[str, list[int]], held: tuple[int, ...]) -> None:
    """Col2Im, of a patch two high and three wide."""
    size, block = np.array([6, 5]), np.array([2, 3])
    pads = np.array(attrs.get("pads", [0] * 4)).reshape(2, 2).sum(0)
    reach = (block - 1) * attrs.get("dilations", [1, 1]) + 1
    count = (size + pads - reach) // attrs.get("strides", [1, 1]) + 1
    columns = RNG.standard_normal((2, 12, count.prod())).astype(np.float32)
    case = Single("Col2Im", (columns, ints(size), ints(block)), attrs, held)
    case.check((7, 17), (BY_NAME, STATIC))


FIXED = [  # divisors and dividends of every size
    np.array(values, np.float64)
    for values in (
        [5.3, -5.3, 5.3, -5.3, 0, 1e30, 1e300, 3, np.inf, 1, np.nan, 2, -7.5, 1e-300, 0.3],
        [2, 2, -2, -2, 3, 3, 7e-5, np.inf, 2, np.nan, 1, 0, 2.5, 5e-310, 0.1],
    )
]


@pytest.mark.parametrize("kind", [np.float16, np.float32, np.float64])
def test_remainder_is_exact(kind: type) -> None:
    with np.errstate(over="ignore"):
        a, b = (v.astype(kind) for v in FIXED)
    Single("Mod", (a, b), {"fmod": 1}, tolerance=0).check([9], [STATIC])


FROM_THE_BACK = [
    Single("CenterCropPad", (X, ints([5, 1])), {"axes": [-1, -3]}),
    Single("CenterCropPad", (X, ints([1, 6])), {"axes": [-2, 2]}, (1,)),
    Single("MeanVarianceNormalization", (X,), {"axes": [0, -1]}),
    *(Single("OneHot", (ints([[0, -1, 2], [1, 1, 9]]), ints(4), np.float32([2, 5])), {"axis": a})
      for a in (-3, -2, -1, 1)),
]  # fmt: skip


@pytest.mark.parametrize("case", FROM_THE_BACK, ids=lambda c: c.id)
def test_axes_from_the_back(case: Single) -> None:
    case.check((7, 12), [UNKNOWN])
    case.check((10, 17), [STATIC])


@pytest.mark.parametrize("mode", ["avg", "max"])
@pytest.mark.parametrize("ratio", [0, 2])
@pytest.mark.parametrize("coordinates", ["half_pixel", "output_half_pixel"])
def test_regions(mode: str, ratio: int, coordinates: str) -> None:
    x = RNG.standard_normal((2, 3, 9, 10)).astype(np.float32)
    regions = np.float32([[0, 0, 5, 5], [1, 2, 20, 9], [-3, -3, 1, 1], [4, 4, 4, 4], [6, 5, 2, 1]])
    how = {"mode": mode, "sampling_ratio": ratio, "coordinate_transformation_mode": coordinates,
           "output_height": 2, "output_width": 3, "spatial_scale": 0.75}  # fmt: skip
    Single("RoiAlign", (x, regions, ints([0, 1, 0, 1, 1])), how).check((8, 15), [BY_NAME])


POOLED = RNG.standard_normal((2, 2, 7, 8)).astype(np.float32)


@pytest.mark.parametrize("dilations", [[1, 1], [2, 1]], ids=str)
@pytest.mark.parametrize("padding", ["NOTSET", "SAME_UPPER", "SAME_LOWER", "VALID"])
@pytest.mark.parametrize("ceil_mode", [0, 1])
def test_windows(dilations: list[int], padding: str, ceil_mode: int) -> None:
    """Pools over sizes known and unknown, with the largest's indices in both orders."""
    if dilations != [1, 1] and padding.startswith("SAME"):
        pytest.skip("ONNX Runtime pads by the window without its gaps, to another size than SAME")
    how = {"kernel_shape": [3, 2], "strides": [2, 3], "auto_pad": padding, "ceil_mode": ceil_mode,
           "dilations": dilations} | ({"pads": [1, 0, 1, 1]} if padding == "NOTSET" else {})  # fmt: skip
    for order, opset in ((0, 9), (1, 7)):
        Single("MaxPool", [POOLED], {**how, "storage_order": order}, outputs=2).check([opset])
    Single("MaxPool", [POOLED], how).check([9], [UNKNOWN])
    for included, opset in ((0, 9), (1, 18)):
        Single("AveragePool", [POOLED], {**how, "count_include_pad": included}).check([opset])
    if dilations == [1, 1] or padding == "NOTSET":  # where ONNX Runtime runs LpPool
        Single("LpPool", [POOLED], {**how, "p": 3}).check([17])


def test_strings_compared() -> None:
    words = np.array([["a", "b", ""], ["b", "ä", "a"]], object)
    Single("Equal", (words, np.array(["a", "ä", "a"], object))).check((11, 18))
