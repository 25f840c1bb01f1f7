"""What a shell, ``print`` and a notebook show of a verification."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import TYPE_CHECKING

from serde.errors import escape_controls
from serde.ir.markup import escape

if TYPE_CHECKING:
    from serde.verification.compare_layers import LayersComparison
    from serde.verification.compare_outputs import OutputComparison

MOST_SHOWN = 20  # outputs


class ShownVerification:
    """How a verification is shown: in a line, as text, and as a table in a notebook."""

    done: bool
    source: str
    inputs: str
    statement: str
    outputs: list[OutputComparison]
    not_compared: list[str]
    layers: LayersComparison | None

    def __repr__(self) -> str:
        return f"<Verification {self._judge()}>"

    def __str__(self) -> str:
        lines = [self._judge(), *(f"  {line}" for line in self._list_outputs())]
        lines += [] if self.layers is None else [f"  layers: {self.layers}"]
        lines += [f"  not compared: {line}" for line in self.not_compared]
        return "\n".join(map(escape_controls, lines))

    def _repr_html_(self) -> str:
        """The outputs as a table."""
        rows = "".join(
            f"<tr><td>{escape(o.name)}</td><td>{'pass' if o.passed else '<b>FAIL</b>'}</td>"
            f"<td>{o.max_abs:.3g}</td><td>{o.max_rel:.3g}</td><td>{o.tolerance:.3g}</td>"
            f"<td>{escape(o.reason)}</td></tr>"
            for o in self.outputs
        )
        head = "".join(
            f"<th>{t}</th>" for t in ("output", "", "max abs", "max rel", "tolerance", "")
        )
        table = f"<table><tr>{head}</tr>{rows}</table>" if rows else ""
        return f"<p>{escape(self._judge())}</p>{table}"

    def _judge(self) -> str:
        """The result in a line."""
        if not self.done:
            return escape_controls(self.statement or "not compared")
        wrong = [o.name for o in self.outputs if not o.passed]
        where = f"against {self.source}, {self.inputs}"
        if not wrong:
            return escape_controls(f"pass: {_count(self.outputs)} right, {where}")
        names = ", ".join(map(repr, wrong[:MOST_SHOWN]))
        return escape_controls(f"FAIL: {names} of {_count(self.outputs)} wrong, {where}")

    def _list_outputs(self) -> Iterator[str]:
        yield from map(str, self.outputs[:MOST_SHOWN])
        if len(self.outputs) > MOST_SHOWN:
            yield f"and {len(self.outputs) - MOST_SHOWN} more"


def _count(outputs: Sequence[object]) -> str:
    return f"{len(outputs)} output{'' if len(outputs) == 1 else 's'}"
