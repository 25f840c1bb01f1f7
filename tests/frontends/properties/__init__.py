"""A table of calls for every function that can be traced, drawn by hypothesis."""

from __future__ import annotations

from . import creation, elementwise, linalg, manipulation, methods, reductions, searching, signals

FAMILIES = (creation, elementwise, linalg, manipulation, methods, reductions, searching, signals)
CASES = {name: case for family in FAMILIES for name, case in family.CASES.items()}
# Functions that need some sizes as numbers, and refuse names of them.
NEED_SIZES = {
    "np.array_equal", "np.apply_along_axis", "np.cross", "np.delete", "np.linalg.cross",
    "np.linalg.matrix_power", "np.linalg.inv", "np.linalg.det", "np.linalg.slogdet",
    "np.linalg.cholesky", "np.linalg.solve", "np.vander", "np.cumprod", "np.cumulative_prod",
    "np.convolve", "np.correlate", "ndarray.cumprod", "np.add.accumulate", "np.squeeze",
    "np.unstack", "ndarray.squeeze",
}  # fmt: skip
