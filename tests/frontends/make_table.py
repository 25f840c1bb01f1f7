"""docs/reference/tracing.md, made of the tables: ``python -m tests.frontends.make_table``."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import numpy as np

from serde.frontends.numpy.core import FUNCTIONS, name_of
from serde.frontends.numpy.elementwise import EMITTERS
from serde.frontends.numpy.methods import METHODS
from tests.frontends.properties import NEED_SIZES

PAGE = Path(__file__).resolve().parents[2] / "docs" / "reference" / "tracing.md"
HEAD = """# What can be traced

`python -m tests.frontends.make_table` makes this page; a test compares them. Other
functions are refused with their name and the line that calls them.
[trace-python-code.md](../how-to/trace-python-code.md) shows how to trace.
"""
TAIL = """
## Limits

* Some functions need sizes as numbers, and refuse names of them: {need_sizes}.
* Complex numbers are pairs of arrays: arithmetic, `np.fft`, `np.abs`, `np.angle` and what only moves elements.
* `np.linalg.solve`, `inv`, `det`, `slogdet` and `cholesky` are unrolled for matrices up to 64 rows; ONNX has no
  singular values or eigenvalues.
* `np.unique` takes NaN for equal to other NaN or not, as the runtime does. Results of data-dependent size have a
  size without a name.
* An integer power whose exponent is an array is right up to an exponent of 254, or of the bases 0, 1, -1 and even
  numbers.
* ONNX Runtime's `Where` makes -0 of its second operand +0, and so does `np.where`.
* The namespace that `x.__array_namespace__()` gives has the Array API's names and options; its `floor_divide` is the
  standard's where an operand is infinite. The operator `//` is NumPy's.
* float16 is computed as the runtime computes it.
"""


def list_names(names: Iterator[str]) -> str:
    """Names as one paragraph of code."""
    return ", ".join(f"`{n}`" for n in sorted(names))


def as_page() -> str:
    """The page."""
    functions = {name_of(f) for f in FUNCTIONS}
    ufuncs = {f"np.{n}" for n in EMITTERS if isinstance(getattr(np, n, None), np.ufunc)}
    methods = iter(METHODS)
    parts = [HEAD, "## Ufuncs\n", list_names(iter(ufuncs | {"np.matmul"})), "\n## Functions\n"]
    parts += [list_names(iter(functions)), "\n## Methods of arrays\n", list_names(methods)]
    needs = list_names(n for n in NEED_SIZES if n in functions)
    parts.append(TAIL.format(need_sizes=needs))
    return "\n".join(parts)


if __name__ == "__main__":
    PAGE.write_text(as_page(), encoding="utf-8")
