"""Convert every module of a Relay corpus and compare with what TVM computed.

``python conformance/relay_corpus.py FOLDER [--only TEXT] [--opsets 11,13,17,21] [--report FILE]``.
FOLDER has a folder for each module: ``module.json`` (or ``.json.gz``), ``params.bin`` and
``io.npz`` as the issue on Relay describes them, and beside it ``corpus.py`` that reads them.
"""

from __future__ import annotations

import argparse
import importlib.util
import multiprocessing
import sys
import tempfile
import warnings
from collections import Counter, defaultdict
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np

OPSETS = (11, 13, 17, 21)
TOLERANCE = 1e-4
RIGHT, WRONG, REFUSED, FAILED, CONVERTED = "right", "wrong", "refused", "failed", "converted"
Result = tuple[str, str]  # an outcome, and what there is to say of it


def reader(folder: Path) -> Any:
    """The corpus's own reader."""
    path = next(p for p in (folder / "corpus.py", folder.parent / "corpus.py") if p.is_file())
    spec = importlib.util.spec_from_file_location("relay_corpus_reader", path)
    assert spec is not None and spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    sys.modules[spec.name] = module  # dataclasses look their module up
    spec.loader.exec_module(module)
    return module


def difference(found: Any, wanted: Any, limit: float) -> str:
    """What is wrong with ``found``, empty where it is within ``limit`` of scale."""
    found, wanted = np.asarray(found), np.asarray(wanted)
    if wanted.dtype.kind in "fc":
        same_type = found.dtype == wanted.dtype
    else:
        same_type = found.dtype.kind == wanted.dtype.kind or "b" in (
            found.dtype.kind, wanted.dtype.kind,
        )  # fmt: skip
    if not same_type:
        return f"{found.dtype} for {wanted.dtype}"
    if found.shape != wanted.shape:
        return f"shape {found.shape} for {wanted.shape}"
    if wanted.dtype.kind not in "f":
        count = int((found != wanted).sum())
        return f"{count} of {wanted.size} integers differ" if count else ""
    a, b = found.astype(np.float64), wanted.astype(np.float64)
    special = ~np.isfinite(a) | ~np.isfinite(b)
    if not np.array_equal(a[special], b[special], equal_nan=True):
        return "infinite or no numbers differ"
    scale = max(float(np.abs(b[~special]).max(initial=0)), 1e-6)
    worst = float(np.abs(a[~special] - b[~special]).max(initial=0)) / scale
    return f"off by {worst:.1e} of scale" if worst > limit else ""


def outcomes(folder: Path, opsets: tuple[int, ...]) -> dict[int, Result]:
    """What becomes of one module at each opset."""
    warnings.simplefilter("ignore")
    from serde.errors import SerdeError
    from serde.formats.relay.io.params import read_params
    from serde.formats.relay.json.reader import parse_json
    from serde.formats.relay.to_ir import module_graph, to_ir
    from serde.ir.graph import Tensor
    from serde.passes import tidy

    case = reader(folder.parent).load(folder)
    try:
        module = parse_json(case.json, folder.name)
        params = {n: Tensor.of(np.asarray(a)) for n, a in case.weights.items()}
        if case.params_file is not None:
            params |= read_params(case.params_file)
        graph = tidy(to_ir(module_graph(module, params, folder.name)))
    except SerdeError as error:
        return dict.fromkeys(opsets, (REFUSED, reason(error)))
    except Exception as error:
        return dict.fromkeys(opsets, (FAILED, f"{type(error).__name__}: {error}"[:300]))
    return {opset: outcome(graph, opset, case) for opset in opsets}


def reason(error: Exception) -> str:
    """A refusal in one line."""
    problems = getattr(error, "problems", ())
    return "; ".join(dict.fromkeys(f"{p.op}: {p.reason}" for p in problems)) or str(error)


def outcome(graph: Any, opset: int, case: Any) -> Result:
    """Write at one opset, run, compare."""
    import onnxruntime

    from serde import save
    from serde.errors import SerdeError

    with tempfile.TemporaryDirectory() as place:
        path = Path(place) / "m.onnx"
        try:
            save(graph, path, opset=opset, format="onnx")
        except SerdeError as error:
            return REFUSED, reason(error)
        except Exception as error:
            return FAILED, f"{type(error).__name__}: {error}"[:300]
        if not case.outputs or case.name in INCOMPLETE:
            return CONVERTED, "nothing to compare with"
        try:
            settings = onnxruntime.SessionOptions()
            settings.log_severity_level = 4
            session = onnxruntime.InferenceSession(
                str(path), settings, providers=["CPUExecutionProvider"]
            )
            names = [i.name for i in session.get_inputs()]
            found = session.run(None, dict(zip(names, fed(names, case), strict=True)))
        except Exception as error:
            return FAILED, str(error)[:300]
    return compared(found, case)


def fed(names: list[str], case: Any) -> list[Any]:
    """The corpus's inputs: by name, or by that of the parameter where two had the same."""
    params = [n for n, _ in case.meta.get("main_params") or () if n in case.feeds]
    return [case.feeds[n] if n in case.feeds else case.feeds[params[at]]
            for at, n in enumerate(names)]  # fmt: skip


# Modules whose output TVM leaves undefined behind so many leading rows.
DEFINED = {"op-all_class_nms": 4, "dyn-unique": 4}
# Modules whose numbers TVM computes in halves: on this one it is off by 5.1e-4 of scale from what
# the network computes in float32, ONNX Runtime by 2.3e-4 to 2.8e-4; the two differ by 2.4e-4.
LESS_EXACT = {"pass-ToMixedPrecision-fp16": 5e-4}
# Modules with two parameters of one name, of which the corpus holds one input only.
INCOMPLETE = {"name-duplicate", "name-duplicate-clash"}


def compared(found: list[Any], case: Any) -> Result:
    wanted = case.outputs
    if len(found) != len(wanted):
        return WRONG, f"{len(found)} outputs for {len(wanted)}"
    limit = LESS_EXACT.get(case.name, TOLERANCE)
    for at, (a, b) in enumerate(zip(found, wanted, strict=True)):
        rows = DEFINED.get(case.name, len(b) if b.ndim else 0) if at == 0 else None
        a, b = (a, b) if rows is None or not b.ndim else (a[:rows], b[:rows])
        if text := difference(a, b, limit):
            return WRONG, f"output {at}: {text}"
    return RIGHT, ""


def report(results: dict[str, dict[int, Result]], opsets: tuple[int, ...]) -> str:
    """``docs/results/relay-corpus.md``."""
    lines = ["# The Relay corpus", "", "Made by `conformance/relay_corpus.py`.", ""]
    lines += [f"{len(results)} modules that TVM 0.17 wrote, with the outputs it computed for them.",
              ""]  # fmt: skip
    kinds = (RIGHT, CONVERTED, REFUSED, WRONG, FAILED)
    lines += ["| opset | " + " | ".join(kinds) + " |", "|---|" + "---|" * len(kinds)]
    for opset in opsets:
        count = Counter(r[opset][0] for r in results.values())
        lines.append(f"| {opset} | " + " | ".join(str(count[k]) for k in kinds) + " |")
    lines += ["", "*Converted* are modules without outputs to compare with: TVM could not run "
              "them, or an input is not in the corpus.", "",
              f"Right is within {TOLERANCE:g} of the largest number of the output. One module is "
              "allowed 5e-4: `pass-ToMixedPrecision-fp16` computes in float16, where TVM is off by "
              "5.1e-4 from what the network computes in float32 (`pass-00-base`), ONNX Runtime by "
              "2.8e-4.", ""]  # fmt: skip
    for kind in (WRONG, FAILED, REFUSED):
        lines += [f"## {kind.capitalize()}", ""]
        grouped: dict[str, dict[str, list[int]]] = defaultdict(lambda: defaultdict(list))
        for name, by_opset in sorted(results.items()):
            for opset, (what, text) in by_opset.items():
                if what == kind:
                    grouped[text][name].append(opset)
        for text, names in sorted(grouped.items(), key=lambda item: -len(item[1])):
            shown = ", ".join(
                f"`{n}`" + ("" if len(v) == len(opsets) else f" ({', '.join(map(str, v))})")
                for n, v in names.items()
            )
            flat = " ".join(text.split())
            lines.append(f"* {flat}: {shown}")
        lines.append("" if grouped else "None.\n")
    return "\n".join(lines).rstrip() + "\n"


def main() -> int:
    """Run the sweep; the exit code is 1 where anything is wrong."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("folder", type=Path)
    parser.add_argument("--only", default="", help="modules whose names hold this text")
    parser.add_argument("--opsets", default=",".join(map(str, OPSETS)))
    parser.add_argument("--report", type=Path)
    parser.add_argument("--jobs", type=int, default=2)
    args = parser.parse_args()
    opsets = tuple(int(o) for o in args.opsets.split(","))
    folders = [p for p in sorted(args.folder.iterdir()) if p.is_dir() and args.only in p.name]
    with multiprocessing.Pool(args.jobs, maxtasksperchild=40) as pool:
        found = pool.imap(partial(outcomes, opsets=opsets), folders, chunksize=4)
        results = {f.name: r for f, r in zip(folders, found, strict=True)}
    text = report(results, opsets)
    if args.report:
        args.report.write_text(text, encoding="utf-8")
    print(text)
    return int(any(r[0] in (WRONG, FAILED) for v in results.values() for r in v.values()))


if __name__ == "__main__":
    sys.exit(main())
