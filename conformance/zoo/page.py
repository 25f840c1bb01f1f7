"""The page docs/results/zoo.md."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Mapping
from typing import Any

from conformance.litert_networks import CHANGE, SHARE
from conformance.litert_networks import TOLERANCE as LITERT_TOLERANCE
from conformance.record import RANK, Outcome
from conformance.zoo.compare import NUDGE, TOLERANCE

TITLES = {"gluoncv": "GluonCV 0.10.5", "gluonnlp": "GluonNLP 0.10", "gluonts": "GluonTS 0.9"}
HEADER = f"""# Model zoos

Made by `python -m conformance gluoncv/onnx gluonnlp/onnx gluonts/onnx`. Every network is built by
its library with random weights, seeded by its name, and statistics of BatchNorm that keep
activations in bounds; exported by MXNet 1.9.1; converted, with the sizes of one input, and with
names for those that may differ; and run in ONNX Runtime, on one input, or on two of different
sizes. The error is the largest difference from MXNet in terms of the largest number of the output;
a network is right below {TOLERANCE:g}. Detections are compared one to one. Networks of integers are
converted twice: as they are by default, where their integers are those of MXNet; and with
`--integers qdq`, where a number that is rounded the other way than by MXNet spreads from layer to
layer. Those are compared as a whole, by the root of the mean square error in terms of that of the
output, and beside it stands how far MXNet is from itself so when its input is changed by {NUDGE:g}
of its standard deviation; what is nearer is right. Detectors in two stages look at 40 proposals.
Where they have a pyramid of features, MXNet runs the symbol that GluonCV makes for MXNet before
1.6: in the one for 1.9.1, which is converted, MXNet on a CPU leaves numbers unwritten. The outputs
of integer detectors are compared before the non-maximum suppression. Networks that draw random
numbers are compared draw by draw: the conversion makes its draws of noise that is an input, and
MXNet is given these draws; what each sampler reads is compared as well. Beside it stands MXNet's
own exporter on the same files.

`python -m conformance gluoncv/litert gluonnlp/litert gluonts/litert` writes them as files of
TensorFlow Lite for the one size, and runs them in LiteRT with both sets of kernels. There a network
is right within {LITERT_TOLERANCE:g}, and {SHARE} times what a change of the input by {CHANGE:g} of
it does in MXNet; one of integers within {SHARE} times how far MXNet is from itself.
"""
HEAD = (
    "| network | fixed sizes | named sizes | nodes | MXNet's exporter | its nodes | LiteRT "
    "| operators |\n"
    "|---|---|---|--:|---|--:|---|--:|"
)
Row = Mapping[str, Any]


def verdict(row: Row) -> str:
    """``right``, ``wrong``, ``refused``, ``failed`` or ``not run``, with the reason."""
    if "stopped" in row:
        return f"not run: {row['stopped']}"
    if "refused" in row:
        return f"refused: {row['refused']}"
    texts = [of(row[way]) for way in ("static", "named") if way in row]
    texts += [of(row["qdq"], row["own"])] if "qdq" in row else []
    return next((s for s in texts if s != "right"), "right")


def judge_kernels(row: Row) -> dict[str, Outcome]:
    """What became of a file in LiteRT, with each set of kernels."""
    return {k: Outcome.judge_error(e, row["bound"]) for k, e in row["errors"].items()}


def of(outcome: Row, bound: float = TOLERANCE) -> str:
    """What became of one conversion."""
    for end in ("refused", "failed"):
        if end in outcome:
            return f"{end}: {outcome[end]}"
    return "right" if outcome["error"] < bound else f"wrong: {outcome['error']:.0e}"


def page(*known: Mapping[str, Row]) -> Iterator[str]:
    """The lines of the page, from the records of the three libraries: of ONNX, then of LiteRT."""
    yield HEADER
    count = len(TITLES)
    for library, rows, files in zip(TITLES, known[:count], known[count:], strict=True):
        yield f"## {TITLES[library]}\n"
        yield f"{summary(rows)} {summarize_files(files)}\n"
        yield HEAD
        for name, row in rows.items():
            yield f"| {name} | {' | '.join((*cells(row), *file_cells(files.get(name))))} |"
        yield ""
    yield ""


def summary(rows: Mapping[str, Row]) -> str:
    """How many there are of each kind."""
    ours = Counter(verdict(r).partition(":")[0] for r in rows.values())
    theirs = Counter(of(r["theirs"]).partition(":")[0] for r in rows.values() if "theirs" in r)
    texts = (", ".join(f"{n} {what}" for what, n in each.most_common()) for each in (ours, theirs))
    return "Of {} networks: {}. MXNet's own exporter: {}.".format(len(rows), *texts)


def summarize_files(files: Mapping[str, Row]) -> str:
    """How many files of TensorFlow Lite there are of each kind."""
    kinds = Counter(judge_file(row).partition(":")[0] for row in files.values())
    counts = ", ".join(f"{n} {kind}" for kind, n in kinds.most_common())
    return f"In LiteRT, of the {len(files)} that were tried: {counts}."


def judge_file(row: Row) -> str:
    """As ``verdict``, of a file of TensorFlow Lite."""
    if "errors" not in row:
        return verdict(row)
    outcomes = judge_kernels(row).values()
    return str(max(outcomes, key=lambda outcome: RANK[outcome.kind]))


def file_cells(row: Row | None) -> tuple[str, str]:
    """What became of a network in LiteRT, and its operators."""
    if row is None:
        return "not tried", ""
    text = judge_file(row)
    shown = f"{max(row['errors'].values()):.0e}" if text == "right" else f"**{shorten(text)}**"
    return shown, str(row.get("operators", ""))


def cells(row: Row) -> tuple[str, ...]:
    """One network's line."""
    if "stopped" in row:
        return (shorten(row["stopped"]), "", "", "", "")
    static, theirs = row["static"], row["theirs"]
    named = cell(row["named"]) + sizes(row["sizes"]) if "named" in row else "takes one size only"
    nodes = str(static.get("nodes", ""))
    fixed = cell(static)
    if "qdq" in row:
        fixed += f"; QDQ {cell(row['qdq'], row['own'])} / {row['own']:.0e}"
    return fixed, named, nodes, cell(theirs), str(theirs.get("nodes", ""))


def sizes(shapes: Mapping[str, Any]) -> str:
    """The names of the sizes that differed."""
    names = dict.fromkeys(d for s in shapes.values() for d in s if isinstance(d, str))
    return f" ({', '.join(names)})"


def cell(outcome: Row, bound: float = TOLERANCE) -> str:
    """An error, marked where it is not as it should be."""
    text = of(outcome, bound)
    return f"{outcome['error']:.0e}" if text == "right" else f"**{shorten(text)}**"


def shorten(text: str) -> str:
    """The beginning of a text, on one line, as a table takes it."""
    line = " ".join(text.replace("|", "/").split())
    return line if len(line) < 80 else f"{line[:77]}…"
