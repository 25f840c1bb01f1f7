"""The report of ``serde compare``."""

from __future__ import annotations

import json
import os
from dataclasses import dataclass
from typing import TYPE_CHECKING

from serde.api.report.data import MARKDOWN_START, SCHEMA, report_suffix, save_report, to_json

if TYPE_CHECKING:
    from serde.verification.compare_layers import LayersComparison
    from serde.verification.compare_outputs import OutputComparison
    from serde.verification.compare_results import Verification


@dataclass
class ComparisonReport:
    """Two models, and how far their outputs and layers are from each other."""

    first: str
    second: str
    verification: Verification

    @property
    def ok(self) -> bool:
        """Whether no output differs; look at ``done`` for whether any was compared."""
        return self.verification.ok

    @property
    def done(self) -> bool:
        """Whether outputs were compared."""
        return self.verification.done

    @property
    def outputs(self) -> list[OutputComparison]:
        """The outputs, compared."""
        return self.verification.outputs

    @property
    def layers(self) -> LayersComparison | None:
        """The layers that both models have, compared, if they were asked for."""
        return self.verification.layers

    def __str__(self) -> str:
        return f"{self.first} and {self.second}\n{self.verification}"

    def _repr_html_(self) -> str:
        """The page in a frame, as a notebook shows it."""
        from serde.api.report.page import render_frame

        return render_frame(self.to_html())

    def to_json(self) -> str:
        """The comparison as JSON text, ``verification`` as in the report of a conversion."""
        fields = {"schema": SCHEMA, "first": self.first, "second": self.second}
        members = {**fields, "ok": self.verification.ok, "verification": self.verification}
        return json.dumps(to_json(members), indent=2)

    def to_markdown(self) -> str:
        """The comparison as Markdown."""
        from serde.api.report.markdown import escape_marks, show_verification

        title = f"# {escape_marks(self.first)} and {escape_marks(self.second)}"
        lines = [title, *show_verification(self.verification)]
        return MARKDOWN_START + "\n".join(lines) + "\n"

    def to_html(self) -> str:
        """The comparison as a page of its own."""
        from serde.api.report.comparison import show_layers, show_outputs
        from serde.api.report.page import Section, render_page

        verification = self.verification
        verdict = ("good", "same") if verification.ok else ("bad", "different")
        sections = [
            Section("outputs", "Outputs", show_outputs(verification)),
            Section("layers", "Layers", show_layers(verification.layers)),
        ]
        title = f"{self.first} and {self.second}"
        return render_page(
            title, f"{len(verification.outputs)} outputs compared",
            verdict if verification.done else ("warn", "not compared"), sections,
        )  # fmt: skip

    def save(self, path: str | os.PathLike[str]) -> None:
        """Write it as HTML, Markdown or JSON, by the suffix of ``path``."""
        render = {"html": self.to_html, "md": self.to_markdown, "json": self.to_json}
        save_report(path, render[report_suffix(path)]())
