"""What releases of MXNet make of the symbols written for them, and of what they say themselves.

    python -m conformance.mxnet_releases FOLDER …

Each folder is where a release is installed (``pip install --no-deps --target``); the newest is the
one that imports anyway. In each of them run, in a process of its own: the node
tests of onnx and networks, written for that release; and the cases of the reading rules, whose
results are compared with those of the newest. Writes docs/results/mxnet-releases.md.
"""

from __future__ import annotations

import os
import pickle
import re
import subprocess
import sys
import tempfile
from collections import Counter
from collections.abc import Callable, Iterator, Mapping
from pathlib import Path
from typing import Any

import numpy as np

from serde.errors import Unconvertible
from tests.mxnet.cases import _error, _tolerance, live
from tests.mxnet.rewriting import every_case
from tests.mxnet_live import live_mxnet

ROOT = Path(__file__).parents[1]
PAGE = ROOT / "docs" / "results" / "mxnet-releases.md"
NETWORKS = (
    "squeezenet1.0 resnet18_v2 mobilenetv2_0.25 densenet121 inceptionv3 "
    "lstm_states lstm_bidirectional gru_states bert_interleaved_where"
).split()
LIGHT = "light_densenet121 light_inception_v2 light_resnet50 light_shufflenet".split()
NEAR = 1e-4
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


def everything(file: Path, start: int) -> None:
    """Write results to ``file`` one after the other, so that those before a crash are there."""
    from conformance.node_tests import Worker, all_cases

    with file.open("ab") as out:

        def tell(*thing: Any) -> None:
            pickle.dump(thing, out)
            out.flush()

        if start < 0:
            tell("version", live_mxnet().__version__)
            for name in (*NETWORKS, *LIGHT):
                tell("network", name, attempt(lambda name=name: network(name)))
            worker = Worker("mxnet", "ours")
            for test in all_cases():
                tell("node", test.name, *worker.outcome(test.name))
            worker.end()
        for at, case in enumerate(every_case()):
            if at >= start:
                tell("begin", at)
                tell("case", at, attempt(lambda case=case: live(case)))


def of_release(folder: str | None) -> Results:
    """All results of a release; begins anew behind a case that ends the process."""
    environment = {**os.environ, "MXNET_SUBGRAPH_VERBOSE": "0"}
    environment["PYTHONPATH"] = os.pathsep.join([*([folder] if folder else []), str(ROOT)])
    found: Results = {"network": {}, "node": {}, "case": {}, "begin": 0}
    start = -1
    while True:
        with tempfile.TemporaryDirectory() as held:
            file = Path(held) / "results"
            call = [sys.executable, "-m", "conformance.mxnet_releases", "--here", file, str(start)]
            done = subprocess.run(call, env=environment, capture_output=True, check=False)
            read(file, found)
        if done.returncode == 0:
            return found
        if "version" not in found:
            raise SystemExit(done.stderr.decode())
        start = found["begin"] + 1


def read(file: Path, found: Results) -> None:
    """Add what a process told before it ended."""
    with file.open("rb") as stream:
        while True:
            try:
                kind, *rest = pickle.load(stream)
            except EOFError:
                return
            if len(rest) == 1:
                found[kind] = rest[0]
            else:
                found[kind][rest[0]] = rest[1] if len(rest) == 2 else rest[1:]


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
    yield "Made by `python -m conformance.mxnet_releases`, which has each release run on a"
    yield "processor what is written for it with `--mxnet RELEASE`. *Not run* are 3-D convolutions"
    yield "that it computes on GPUs only. In 1.5 reductions over infinities or NaN give what its way"
    yield "to sum makes of them.\n"
    yield "| release | " + " | ".join(releases) + " |"
    yield "|---|" + "---:|" * len(releases)
    for kind in ("right", "refused", "not run", "wrong", "crashed"):
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
    yield "A symbol that such a release saved is read as the newest computes it.\n"
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
    """Run all releases and write the page; with ``--here`` run this one."""
    if arguments[:1] == ["--here"]:
        np.seterr(all="ignore")
        everything(Path(arguments[1]), int(arguments[2]))
        return 0
    found = [of_release(folder) for folder in (*arguments, None)]
    found.sort(key=lambda r: [int(n) for n in r["version"].split(".")])
    PAGE.write_text("\n".join(page({r["version"]: r for r in found})))
    wrong = sum(kind in ("wrong", "crashed") for r in found for kind, _ in r["node"].values())
    return 1 if wrong else 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
