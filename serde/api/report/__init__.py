"""What a conversion did: the record, and how it is shown as HTML, Markdown and JSON."""

from __future__ import annotations

import os

from serde.api.report.data import ReportData, report_suffix, save_report
from serde.errors import escape_controls, show_problems
from serde.ir.weights import show_size

__all__ = ["Report"]


class Report(ReportData):
    """The record of one conversion, as ``ReportData`` describes it, and how it is shown."""

    def __repr__(self) -> str:
        return f"<Report {describe(self)}>"

    def __str__(self) -> str:
        lines = [describe(self), *(f"  refused: {line}" for line in show_problems(self.problems))]
        lines += [f"  note: {note}" for note in self.notes]
        text = "\n".join(map(escape_controls, lines))
        return text if self.verification is None else f"{text}\n  {self.verification}"

    def to_markdown(self) -> str:
        """The report as Markdown."""
        from serde.api.report.markdown import render

        return render(self)

    def to_html(self) -> str:
        """The report as a page of its own, which loads nothing."""
        from serde.api.report.html import render

        return render(self)

    def _repr_html_(self) -> str:
        """The page in a frame, as a notebook shows it."""
        from serde.api.report.html import render_in_frame

        return render_in_frame(self)

    def save(self, path: str | os.PathLike[str]) -> None:
        """Write the report: as HTML, Markdown or JSON, by the suffix of ``path``.

        Raises:
            UsageError: for another suffix, and a file of the model.
        """
        render = {"html": self.to_html, "md": self.to_markdown, "json": self.to_json}
        save_report(path, render[report_suffix(path)](), self.command)


def describe(report: ReportData) -> str:
    """A report in a line: what became of what."""
    target = report.target or report.target_format
    refused = sum(p.count for p in report.problems)
    verdict = "ok" if report.ok else "outputs differ"
    verdict = f"{refused} node(s) refused" if refused else verdict
    text = f"{report.source} ({report.source_format}) → {target}: {verdict}"
    if not refused:
        nodes = sum(report.operators.values())
        text += f", {nodes} nodes, {show_size(report.weight_bytes)} of weights"
    return escape_controls(text)
