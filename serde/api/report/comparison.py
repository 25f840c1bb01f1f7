"""How compared outputs and layers are shown on a page."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

from serde.api.report.page import make_list, make_table, show_number
from serde.ir.markup import escape
from serde.verification.compare_outputs import HIGHEST, LOWEST, OutputComparison

if TYPE_CHECKING:
    from serde.verification.compare_layers import LayersComparison
    from serde.verification.compare_results import Verification

MOST_LAYERS = 2000  # rows
COLUMNS = ("Result", "Type", "Max abs", "Max rel", "Cosine", "Tolerance")
BAR, BAR_HEIGHT = 9, 46  # of a histogram, in pixels


def show_outputs(comparison: Verification) -> str:
    """What was compared, each output with the histogram of its errors."""
    if not comparison.done:
        return f'<p class="callout calm">{escape(comparison.statement)}</p>'
    rows = [
        [f"<code>{escape(o.name)}</code>", *_show_outcome(o), draw_histogram(o.histogram)]
        for o in comparison.outputs
    ]
    ways = f"; run {', '.join(comparison.settings)}" if len(comparison.settings) > 1 else ""
    sets = f" ({', '.join(comparison.sets)})" if len(comparison.sets) > 1 else ""
    return (
        f"<p>Against {escape(comparison.source)}, {escape(comparison.inputs + sets + ways)}.</p>"
        + make_table(("Output", *COLUMNS, "Errors"), rows, numbers=(3, 4, 5, 6))
        + make_list(f"not compared: {line}" for line in comparison.not_compared)
    )


def show_layers(comparison: LayersComparison | None) -> str:
    """The layers that both models have, and the first that differs."""
    if comparison is None:
        return ""
    if comparison.statement:
        return f'<p class="callout calm">{escape(comparison.statement)}</p>'
    rows = []
    for layer in comparison.layers[:MOST_LAYERS]:
        names = layer.value if layer.value == layer.other else f"{layer.value} / {layer.other}"
        rows.append(
            [escape(layer.op), f"<code>{escape(names)}</code>", *_show_outcome(layer.outcome)]
        )
    first = f'<p class="callout">{escape(str(comparison))}</p>' if comparison.first else ""
    more = len(comparison.layers) - len(rows)
    rest = f"<p>and {more:,} more, which <code>report.json</code> lists</p>" if more else ""
    return first + make_table(("Operator", "Value", *COLUMNS), rows, numbers=(4, 5, 6, 7)) + rest


def _show_outcome(o: OutputComparison) -> list[str]:
    name, verdict = ("good", "pass") if o.passed else ("bad", "FAIL")
    reason = f" <small>{escape(o.reason)}</small>" if o.reason else ""
    worst = f"<br><small>{escape(str(o.worst))}</small>" if o.worst and not o.passed else ""
    shape = ",".join(map(str, o.shape))
    return [
        f'<b class="{name}">{verdict}</b>{reason}{worst}', f"{escape(o.dtype)}[{shape}]",
        show_number(o.max_abs), show_number(o.max_rel),
        "–" if o.cosine != o.cosine else f"{o.cosine:.8f}", show_number(o.tolerance),
    ]  # fmt: skip


def draw_histogram(counts: Sequence[int]) -> str:
    """The errors of one output: how many elements, by their share of the tolerance."""
    if not counts:
        return ""
    total, width = sum(counts), BAR * len(counts) + 4
    bars = []
    for at, count in enumerate(counts):
        height = BAR_HEIGHT * (count / max(counts)) ** 0.5 if count else 0
        height = max(height, 2) if count else 0
        name = "equal" if at == 0 else "over" if _lower_bound(at) >= 0 else ""
        bars.append(
            f'<rect class="{name}" x="{2 + BAR * at}" y="{BAR_HEIGHT - height:.1f}" '
            f'width="{BAR - 1}" height="{height:.1f}"><title>{_name_bin(at, len(counts))}: '
            f"{count:,} of {total:,}</title></rect>"
        )
    limit = 2 + BAR * (1 - LOWEST + 1) - 0.5
    return (
        f'<svg class="histogram" width="{width}" height="{BAR_HEIGHT + 12}" role="img" '
        f'aria-label="errors">{"".join(bars)}<line x1="{limit}" y1="0" x2="{limit}" '
        f'y2="{BAR_HEIGHT}"/><text x="2" y="{BAR_HEIGHT + 10}">equal</text>'
        f'<text x="{limit}" y="{BAR_HEIGHT + 10}" text-anchor="middle">tolerance</text></svg>'
    )


def _lower_bound(at: int) -> int:
    """The power of two of the tolerance at which a bin begins; the first two begin at 0."""
    return at - 2 + LOWEST if at > 1 else LOWEST - 1


def _name_bin(at: int, bins: int) -> str:
    if at == 0:
        return "equal"
    if at == 1:
        return f"less than 2^{LOWEST} of the tolerance"
    if at == bins - 1:
        return f"2^{HIGHEST} of the tolerance and more"
    return f"2^{_lower_bound(at)} to 2^{_lower_bound(at) + 1} of the tolerance"
