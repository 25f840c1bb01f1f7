"""Any two models, compared from Python."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from serde.api.report.comparison_report import ComparisonReport
from serde.api.report.data import describe_source
from serde.io.command_files import within_command
from serde.plugins import read_classes
from serde.plugins.keywords import check_keywords, list_keywords, with_options


@with_options(read_classes, lambda option: option.is_run)
@within_command()
def compare(
    first: Any, second: Any, *, layers: bool = True, params: Any = None,
    other_params: Any = None, inputs: Mapping[str, Any] | None = None, data: Any = None,
    seed: int = 0, rtol: float | None = None, atol: float | None = None,
    from_format: str | None = None, other_format: str | None = None,
    other_inputs: Mapping[str, Any] | None = None, other: Mapping[str, Any] | None = None,
    **options: Any,
) -> ComparisonReport:  # fmt: skip
    """Run two model files, of any formats, on the same inputs and compare what they compute.

    Each runs in its own framework, or, where that is not installed, as it converts to ONNX, with a
    note among ``not_compared``. Inputs and outputs are paired by name, or else by place. Models
    that compute in other types are each fed their own, and compared with the tolerance of the one
    of fewer bits.

    Args:
        first, second: model files, or Graphs.
        layers: whether the layers are compared that both have.
        params, other_params: their parameters, where they are not beside them.
        inputs, other_inputs: shapes of the inputs of the first and of the second, where its file
            leaves them open.
        data: the inputs, an ``.npz`` path or mapping by the names of the second; seeded random
            ones otherwise.
        seed: of the random inputs.
        rtol, atol: what an element may differ by, ``atol + rtol * |expected|``; if left out, a
            share of the output's largest number.
        options: those of ``load`` that tell what of the first's files is meant, such as ``epoch``.
        other: such options of the second, by name.
        from_format, other_format: of the first and the second, where their content does not tell.

    Returns:
        A comparison to print, to ``save`` as a page, or to look at: ``ok``, ``outputs``,
        ``layers``.

    Raises:
        UsageError: for models that do not take, or give, as many values of the same shapes.
    """
    from serde.verification.compare_models import compare_models

    check_keywords("compare", other or {}, list_keywords(read_classes(), lambda o: o.is_run))
    options, other = ({n: v for n, v in (each or {}).items() if v is not None}
                      for each in (options, other))  # fmt: skip
    verification = compare_models(
        first, second, params=params, other_params=other_params, inputs=inputs, data=data,
        seed=seed, layers=layers, rtol=rtol, atol=atol, from_format=from_format,
        other_format=other_format, other_inputs=other_inputs, options=options, other=other,
    )  # fmt: skip
    return ComparisonReport(describe_source(first), describe_source(second), verification)
