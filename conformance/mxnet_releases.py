"""What releases of MXNet make of the symbols written for them, and of what they say themselves.

    python -m conformance.mxnet_releases FOLDER …

Each folder is where a release is installed (``pip install --no-deps --target``); the newest is the
one that imports anyway. In each of them run, in a process of its own: the node
tests of onnx and networks, written for that release; and the cases of the reading rules, whose
results are compared with those of the newest. Writes docs/results/mxnet-releases.md.
"""

from __future__ import annotations

import re
import sys
import tempfile
from collections import Counter
from collections.abc import Callable, Iterator, Mapping
from functools import partial
from pathlib import Path
from typing import Any

from serde.errors import Unconvertible
from tests.mxnet.cases import _error, _tolerance, live
from tests.mxnet.rewriting import every_case
from tests.mxnet_live import live_mxnet
from tests.node_cases import all_cases

from .matrix import cell_of
from .record import RANK, WRONG, Outcome
from .worker import Ended, Worker

ROOT = Path(__file__).parents[1]
PAGE = ROOT / "docs" / "results" / "mxnet-releases.md"
NETWORKS = (
    "squeezenet1.0 resnet18_v2 mobilenetv2_0.25 densenet121 inceptionv3 "
    "lstm_states lstm_bidirectional gru_states bert_interleaved_where"
).split()
LIGHT = "light_densenet121 light_inception_v2 light_resnet50 light_shufflenet".split()
SECONDS, NEAR = 240, 1e-4
# Where in the sources of a release an error came from.
PLACE = r"(MXNetError: )?(Error in operator \w+: )?(\w+: )?\[[\d:]+\] \S+:\d+: "
# Results that are left as they are in memory, or depend on the library a wheel was built with.
ITS_OWN = {
    "_while_loop": "behind the last step stands what was in memory",
    "_contrib_quantize": "halves and ends are rounded otherwise",
    "_contrib_quantize_v2": "halves and ends are rounded otherwise",
    "_contrib_dequantize": "int8 goes to 127 or to 128",
}
Results = dict[str, Any]


def attempt(run: Callable[[], Any]) -> Any:
    """What ``run`` gives, or how it fails, as a text."""
    try:
        return run()
    except Exception as error:  # an old release raises what it likes
        if isinstance(error, Unconvertible):
            return "refused: " + "; ".join(p.reason for p in error.problems)
        lines = [s.strip() for s in str(error).splitlines() if "[bt]" not in s and s.strip()]
        told = lines[-1] if lines[:1] and "Traceback" in lines[0] else " ".join(lines[:1])
        return f"{type(error).__name__}: {re.sub(PLACE, '', told)}"


def network(name: str) -> float:
    """The error of a network from ONNX in this release, against ONNX Runtime."""
    import onnx

    import serde
    from tests import networks
    from tests.light_models import feeds, model_path
    from tests.mxnet.round_trips import errors
    from tests.mxnet_live import run_symbol
    from tests.onnx_live import run_model

    with tempfile.TemporaryDirectory() as held:
        folder = Path(held)
        path = folder / "m.onnx"
        if name.startswith("light"):
            path = model_path(name)
            given = feeds(onnx.load(path))
        else:
            size = networks.smallest(name) if name in networks.VISION else None
            made = networks.build(name, size)
            given = networks.feeds(made, 2)
            source, _ = networks.export(made, folder)
            serde.convert(source, path, inputs={n: (a.shape, a.dtype) for n, a in given.items()})
        serde.convert(path, folder / "o-symbol.json", mxnet=live_mxnet().__version__)
        arrays = networks.load_params(folder / "o-0000.params")
        got = run_symbol((folder / "o-symbol.json").read_text(), arrays, given)
        return errors(got, run_model(onnx.load(path), given))


class Release:
    """A release of MXNet in this process: what it makes of networks, node tests and cases."""

    def __init__(self, folder: str) -> None:
        if folder:
            sys.path.insert(0, folder)
        self.version: str = live_mxnet().__version__
        self.nodes = cell_of("onnx-nodes-constant/mxnet")

    def run(self, case: str) -> Any:
        """The result of one of them, called ``KIND NAME``, or the version."""
        kind, _, name = case.partition(" ")
        if kind == "network":
            return attempt(lambda: network(name))
        if kind == "node":
            return self.nodes.run(name)
        return attempt(lambda: live(every_case()[int(name)])) if kind == "case" else self.version


def of_release(folder: str) -> Results:
    """All results of a release; a case that ends the process has None."""
    worker = Worker(partial(Release, folder), SECONDS, {"MXNET_SUBGRAPH_VERBOSE": "0"})

    def result(case: str) -> Any:
        try:
            return worker.run(case)
        except Ended:
            return None

    nodes = {c.name: result(f"node {c.name}") or "wrong: it crashed" for c in all_cases()}
    found = {
        "version": worker.run("version"),
        "network": {n: result(f"network {n}") or "crashed" for n in (*NETWORKS, *LIGHT)},
        "node": {n: Outcome.parse(row) for n, row in nodes.items()},
        "case": {at: result(f"case {at}") for at in range(len(every_case()))},
    }
    worker.end()
    return found


def told(got: Any, wanted: Any) -> str:
    """How the results of a case compare with those of the newest release."""
    if got is None:
        return "ends the process"
    if isinstance(got, str):
        unknown = ("not registered", "Cannot find argument", "Invalid Input", "numpy.bool", "stod")
        return "lacks" if any(u in got for u in unknown) else f"cannot run: {got[:90]}"
    for a, b in zip(got, wanted, strict=True):
        if a.dtype != b.dtype:
            return f"gives {a.dtype}, not {b.dtype}"
        if a.shape != b.shape:
            return "gives other shapes"
        if _error(a, b) > max(_tolerance(b), 1e-5 * (b.dtype.kind == "f")):
            return "gives other numbers"
    return "same"


def page(releases: Mapping[str, Results]) -> Iterator[str]:
    """The lines of the page."""
    newest = list(releases.values())[-1]
    known = {at: y for at, y in newest["case"].items() if not isinstance(y, str)}
    how = {
        v: {at: told(r["case"].get(at), y) for at, y in known.items()} for v, r in releases.items()
    }
    yield "# Releases of MXNet\n"
    yield "Made by `python -m conformance.mxnet_releases`, which has each release run on a CPU"
    yield "what is written for it with `--mxnet RELEASE`. *Not run* are 3-D convolutions that it"
    yield "computes on GPUs only. In 1.5 reductions over infinities or NaN give what its way to sum"
    yield "makes of them.\n"
    yield "| release | " + " | ".join(releases) + " |"
    yield "|---|" + "---:|" * len(releases)
    for kind in RANK:
        counts = (Counter(k for k, _ in r["node"].values())[kind] for r in releases.values())
        yield f"| node tests of ONNX {kind} | " + " | ".join(map(str, counts)) + " |"
    for name in (*NETWORKS, *LIGHT):
        cells = (shown(r["network"][name]) for r in releases.values())
        yield f"| {name} | " + " | ".join(cells) + " |"
    for kind, title in (("same", "as in the newest"), ("lacks", "of what it lacks")):
        counts = (Counter(found.values())[kind] for found in how.values())
        yield f"| cases of reading rules {title} | " + " | ".join(map(str, counts)) + " |"
    yield "\n## What a release refuses that the newest has\n"
    yield "| release | tests | reason |\n|---|---:|---|"
    for version, results in releases.items():
        why = Counter(
            w for n, (k, w) in results["node"].items() if k != newest["node"][n][0] != "refused"
        )
        for reason, count in why.most_common():
            yield f"| {version} | {count} | {' '.join(reason.split())[:160].replace('|', '/')} |"
    yield from otherwise(how)


def otherwise(how: Mapping[str, Mapping[int, str]]) -> Iterator[str]:
    """The lines on operators whose results are others, or that do not run."""
    every = every_case()
    yield "\n## Operators that behave otherwise than in the newest\n"
    yield "A symbol that such a release saved is read as that release computes `clip` of integers;"
    yield "what else differs is read as the newest computes it.\n"
    yield "| release | what | cases | of |\n|---|---|---:|---|"
    for version, found in how.items():
        by: dict[str, Counter[str]] = {}
        for at, what in found.items():
            if what not in ("same", "lacks"):
                op = every[at].op
                by.setdefault(ITS_OWN.get(op, what), Counter())[op] += 1
        for what, ops in by.items():
            listed = ", ".join(sorted(ops))
            yield f"| {version} | {what.replace('|', '/')} | {ops.total()} | {listed} |"
    yield ""


def shown(found: Any) -> str:
    """The error of a network, or why there is none."""
    if isinstance(found, str):
        return found[:80].replace("|", "/")
    return "right" if found < NEAR else f"off by {found:.1g}"


def main(arguments: list[str]) -> int:
    """Run all releases and write the page."""
    found = [of_release(folder) for folder in (*arguments, "")]
    found.sort(key=lambda r: [int(n) for n in r["version"].split(".")])
    PAGE.write_text("\n".join(page({r["version"]: r for r in found})))
    wrong = sum(kind == WRONG for r in found for kind, _ in r["node"].values())
    return 1 if wrong else 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
