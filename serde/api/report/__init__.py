"""What a conversion did: the record, and how it is shown as HTML, Markdown and JSON."""

from __future__ import annotations

import os

from serde.api.report.data import ReportData, report_suffix, write_text

__all__ = ["Report"]


class Report(ReportData):
    """The record of one conversion, as ``ReportData`` describes it, and how it is shown."""

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
        write_text(path, render[report_suffix(path)](), self.command)
