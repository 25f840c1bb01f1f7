"""What the commands print of models, reports and comparisons."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from serde.api.report.data import describe_model
from serde.cli.context import DONE, SYSTEM
from serde.cli.printing import print_line, style
from serde.ir.weights import show_sizes
from serde.plugins.targets import describe_next_step

if TYPE_CHECKING:
    from serde.api.report import Report
    from serde.verification.compare_outputs import OutputComparison

SHOWN_LAYERS = 4  # that differ
PREFIX = "not compared: "
COMPARING = frozenset({"run", "verify", "layers"})  # the stages of verification


def save_report(report: Any, path: str | None, done: str) -> int:
    """Write the report that is asked for, if any; return the exit code of that.

    Where the system refuses, it is told with what is ``done`` all the same.
    """
    if path is None:
        return DONE
    try:
        report.save(path)
    except OSError as error:
        reason = f"serde: {path}: {error.strerror or error}"
        print_line(
            f"{reason}. The report is not written; {done}. Run the command again with a --report "
            "in another place",
            err=True,
        )
        return SYSTEM
    return DONE


def show_conversion(report: Report) -> None:
    """Print what a conversion did."""
    compared = sum(s for stage, s in report.seconds.items() if stage in COMPARING)
    seconds = sum(report.seconds.values()) - compared
    was_compared = report.verification is not None and report.verification.done
    more = f", run and compared in {compared:.2f} s" if was_compared else ""
    print_line(
        f"{report.source} ({report.source_format}) → {report.target} in {seconds:.2f} s{more}"
    )
    show_model(report)
    if report.source_bytes and report.result_bytes:
        print_line(f"  files  {show_sizes(report.source_bytes, report.result_bytes)}")
    show_notes(report)


def show_next_step(report: Report) -> None:
    """Print how the result is run by its consumer."""
    step = describe_next_step(report.target_format, report.target, report.options)
    if step:
        print_line(style("next", "cyan"), f": {step}")


def show_notes(report: Any) -> None:
    """Print what was decided."""
    for note in report.notes:
        print_line(style("note", "yellow"), f": {note}")


def show_model(report: Any) -> None:
    """Print inputs, outputs, operators and weights."""
    for line in describe_model(report):
        print_line(line)


def show_verification(verification: Any, err: bool = False) -> None:
    """Print each output that was compared."""
    if not verification.done:
        return
    print_line(f"verification against {verification.source}, {verification.inputs}:", err=err)
    if len(verification.sets) > 1:
        print_line(f"  inputs: {', '.join(verification.sets)}", err=err)
    if len(verification.settings) > 1:
        print_line(f"  result run {', '.join(verification.settings)}", err=err)
    for o in verification.outputs:
        print_line("  ", *_describe(o), err=err)
    if verification.layers is not None:
        show_layers(verification.layers, err)


def _describe(o: OutputComparison) -> tuple[str, ...]:
    """The parts of the line of an output."""
    numbers, verdict, reason = o.describe()
    return numbers, style(verdict, "green" if o.passed else "red"), reason


def show_layers(comparison: Any, err: bool = False) -> None:
    """Print the first layer that differs, and some of the others."""
    print_line(f"layers: {str(comparison).removeprefix(PREFIX)}", err=err)
    differing = [x for x in comparison.layers if not x.outcome.passed]
    for layer in differing[:SHOWN_LAYERS]:
        print_line(f"  {layer.op} ", *_describe(layer.outcome), err=err)
    if len(differing) > SHOWN_LAYERS:
        print_line(f"  and {len(differing) - SHOWN_LAYERS} more; --report lists all", err=err)
    for line in comparison.not_compared[:SHOWN_LAYERS]:
        print_line(f"  not compared: {line}", err=err)


def show_not_compared(verification: Any, shown: bool) -> None:
    """Say on the standard error output what was left out: always where nothing was compared."""
    lines = verification.not_compared if verification.done else [verification.statement]
    for line in lines if shown or not verification.done else []:
        text = f"verification: not compared: {line.removeprefix(PREFIX)}"
        print_line(style(text, "yellow"), err=True)
