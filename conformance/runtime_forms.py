"""The page of the forms that ONNX Runtime gets wrong, and of those that are written instead.

It is made of the declarations in formats/onnx/consumers/onnxruntime/forms.py;
tests/onnx/test_onnxruntime_forms.py measures a release.
"""

from __future__ import annotations

from collections.abc import Iterator

from serde.formats.onnx.consumers.onnxruntime.forms import FORMS, MEASURED

HEAD = """\
# ONNX Runtime

<!-- Made by `python -m conformance.pages`; do not edit. -->

ONNX Runtime rewrites a model before it runs it, by default with all its graph optimizers. Some of
them change what a valid model computes. No ONNX file that serde writes has one of the forms below,
from any source and at any opset (`formats/onnx/consumers/onnxruntime/forms.py`); the files for
TVM's importer (`--profile relax`) are not for ONNX Runtime. The tests compare with ONNX Runtime as
users run it and with `ORT_DISABLE_ALL`. The releases are those among {measured}
that get a form wrong; `tests/onnx/test_onnxruntime_forms.py` measures the one that is installed.

| form | optimizer | what comes of it | what is written | releases |
|---|---|---|---|---|
"""
TAIL = """
A `Pad` that ONNX Runtime would have fused rightly is fused when the model is written. These forms
cost nodes: a pool with pads after a `Pad` of zeros below opset 18 (one `Slice`), a mean without
pads whose pads reach its kernel (two sums of windows), a vector times a tensor computed from a
transposed one (one `Transpose`), and a cubic `Resize` of transposed images (two `Reshape`).

Attributes that equal the default of the written opset are left out, and so are `dilations` of 1 of
`AveragePool`: ONNX Runtime copies them to operators of its own that have no such attribute, and
older releases refuse attributes that came with a later opset.

With `--profile onnxruntime`, operators and element types that it has no kernel for are
[written otherwise](../how-to/consumers.md).
"""


def page() -> Iterator[str]:
    """The lines of docs/reference/onnxruntime.md."""
    yield HEAD.format(measured=", ".join(MEASURED)).rstrip()
    for form in FORMS.values():
        first, last = form.releases[0], form.releases[-1]
        optimizer = f"`{form.optimizer}`" if form.optimizer else "none; the kernel"
        cells = (form.what, optimizer, form.effect, form.written, f"{first} to {last}")
        yield f"| {' | '.join(cells)} |"
    yield TAIL
