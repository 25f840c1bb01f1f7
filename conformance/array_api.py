"""The tests of the Array API standard on traced arrays, beside ndonnx.

``python -m conformance.array_api SUITE [--python PYTHON] [--examples N]``: SUITE is a checkout of
data-apis/array-api-tests with its submodule, PYTHON one that has its requirements, serde, ndonnx
and pytest-json-report. Writes conformance/results/array-api.json; ``python -m conformance.pages``
makes the page of it.

ONNX has no operators on complex numbers, so neither module has their types. The suite, which
expects one of them, gets lines changed in a copy; another change leaves out the search for smaller
examples.
"""

from __future__ import annotations

import argparse
import json
import os
import re
import shutil
import subprocess
import tempfile
from collections import Counter
from collections.abc import Iterator
from pathlib import Path

ROOT = Path(__file__).parents[1]
RECORD = Path(__file__).parent / "results" / "array-api.json"
MODULES = {"serde": "conformance.array_api_eager", "ndonnx": "ndonnx"}
VERSION = "2024.12"
CHANGES = (
    ("array_api_tests/dtype_helpers.py", "key=lambda x: x[1]\n)[0]\n\n\n# float64 if",
     "key=lambda x: x[1], default=(None,)\n)[0]\n\n\n# float64 if"),
    ("array_api_tests/test_signatures.py", "dh.dtype_to_name[dh.widest_complex_dtype]",
     '"complex128"'),
    *(("array_api_tests/test_data_type_functions.py", f'"dtype", {types})',
       f'"dtype", {types}, ids=lambda d: dh.dtype_to_name[d])')
      for types in ("dh.real_float_dtypes + dh.complex_dtypes", "dh.int_dtypes + dh.uint_dtypes")),
    ("conftest.py", "from hypothesis import settings", "from hypothesis import Phase, settings"),
    ("conftest.py", "deadline=deadline,",
     "deadline=deadline, phases=[Phase.explicit, Phase.generate],"),
)  # fmt: skip
MOST_NAMES = 12  # of tests in a row of the page
# Why tests do not pass with serde, by what their names match.
COMPLEX = "ONNX has no operators on complex numbers"
REASONS = {
    r"test_fft.py::|real\(x_i\)|::test_vecdot_conj": COMPLEX,
    r"::test_(eigh|eigvalsh|matrix_rank|pinv|qr|svd|svdvals)$": "ONNX has no decompositions of "
    "matrices; elimination is unrolled",
    r"x_i is -NaN": "the sign of NaN is in its bits, which ONNX reads at opset 26 only",
}


def copy_suite(suite: Path, folder: str) -> Path:
    """A copy of the suite that takes modules without complex numbers."""
    target = Path(folder) / "array-api-tests"
    shutil.copytree(suite, target, ignore=shutil.ignore_patterns(".git"))
    for name, old, new in CHANGES:
        path = target / name
        text = path.read_text()
        if old not in text:
            raise SystemExit(f"{name} is not as expected: look at CHANGES")
        path.write_text(text.replace(old, new))
    return target


def run_suite(suite: Path, python: str, module: str, examples: int) -> dict[str, str]:
    """The outcome of each test for one module, file by file."""
    outcomes: dict[str, str] = {}
    for path in sorted((suite / "array_api_tests").glob("test_*.py")):
        outcomes |= run_file(suite, python, module, examples, path.name)
    return outcomes


def run_file(suite: Path, python: str, module: str, examples: int, name: str) -> dict[str, str]:
    """The outcome of each test of one file."""
    report = suite / f"{module}.{name}.json"
    settings = {"ARRAY_API_TESTS_MODULE": module, "ARRAY_API_TESTS_VERSION": VERSION,
                "ARRAY_API_TESTS_SKIP_DTYPES": "complex64,complex128",
                "PYTHONPATH": str(ROOT)}  # fmt: skip
    subprocess.run(
        [python, "-m", "pytest", "-q", "-p", "no:cacheprovider", f"--max-examples={examples}",
         "--derandomize", "--disable-deadline", "--json-report", f"--json-report-file={report}",
         f"array_api_tests/{name}"],
        cwd=suite, env={**os.environ, **settings}, check=False,
    )  # fmt: skip
    return read_report(report)


def read_report(path: Path) -> dict[str, str]:
    """The outcomes in a report of pytest, by test."""
    tests = json.loads(path.read_text())["tests"]
    return {t["nodeid"].removeprefix("array_api_tests/"): t["outcome"] for t in tests}


def find_versions(suite: Path, python: str) -> dict[str, str]:
    """The versions of what is run: distributions, and the commit of the suite."""
    code = "import sys, importlib.metadata as m; print(*map(m.version, sys.argv[1:]))"
    names = ("ndonnx", "onnxruntime", "numpy")
    versions = subprocess.check_output([python, "-c", code, *names], text=True).split()
    commit = subprocess.check_output(["git", "-C", suite, "rev-parse", "--short=9", "HEAD"],
                                     text=True).strip()  # fmt: skip
    return {**dict(zip(names, versions, strict=True)), "array-api-tests": commit}


def write_record(table: dict[str, dict[str, str]], examples: int, versions: dict[str, str]) -> None:
    """Write the record: the tests that not both pass, and how many do in each file."""
    names = sorted(set().union(*table.values()))
    rows = {n: [table[m].get(n, "not run") for m in MODULES] for n in names}
    both = Counter(n.partition("::")[0] for n in names if rows[n] == ["passed", "passed"])
    record = {
        "examples": examples,
        "version": VERSION,
        "versions": versions,
        "both pass": dict(sorted(both.items())),
        "others": {n: row for n, row in rows.items() if row != ["passed", "passed"]},
    }
    RECORD.write_text(json.dumps(record, indent=1) + "\n")


def page() -> Iterator[str]:
    """The lines of docs/results/array-api.md."""
    record = json.loads(RECORD.read_text())
    others: dict[str, list[str]] = record["others"]
    versions = record["versions"]
    yield from (
        "# The Array API standard",
        "",
        "`python -m conformance.array_api SUITE` runs the standard's own tests "
        f"(data-apis/array-api-tests at {versions['array-api-tests']},",
        f"version {record['version']} of the standard, {record['examples']} examples a test) on "
        "`conformance/array_api_eager.py`, which traces each call",
        f"and runs it in ONNX Runtime {versions['onnxruntime']} (NumPy {versions['numpy']}), and "
        f"on ndonnx {versions['ndonnx']}. Neither has complex numbers.",
        "`python -m conformance.pages` makes this page of the record. Tests that both skip are "
        "not counted.",
        "",
        "| file | tests | serde passes | ndonnx passes |",
        "|---|---|---|---|",
    )
    files = sorted({*record["both pass"], *(n.partition("::")[0] for n in others)})
    totals = [0, 0, 0]
    for name in files:
        rows = [row for n, row in others.items() if n.partition("::")[0] == name]
        rows = [row for row in rows if row != ["skipped", "skipped"]]
        both = record["both pass"].get(name, 0)
        counts = [both + len(rows), *(both + sum(r[i] == "passed" for r in rows) for i in (0, 1))]
        totals = [a + b for a, b in zip(totals, counts, strict=True)]
        yield (
            f"| {name.removeprefix('test_').removesuffix('.py')} | "
            + " | ".join(map(str, counts))
            + " |"
        )
    yield "| **all** | " + " | ".join(map(str, totals)) + " |"
    yield from _failures(others)


def _failures(others: dict[str, list[str]]) -> Iterator[str]:
    better = [n for n, row in others.items() if row[1] == "passed" and row[0] != "passed"]
    yield from (
        "",
        f"Tests that ndonnx passes and serde does not: {len(better)}.",
        "",
        "## Tests that do not pass with serde",
        "",
        "| tests | ndonnx | why |",
        "|---|---|---|",
    )
    groups: dict[tuple[str, str], list[str]] = {}
    for name, (own, other) in others.items():
        if own not in ("passed", "skipped"):
            groups.setdefault((reason_of(name), other), []).append(name)
    for (reason, other), names in groups.items():
        listed = ", ".join(f"`{n}`" for n in names[:MOST_NAMES])
        more = f" and {len(names) - MOST_NAMES} more" if len(names) > MOST_NAMES else ""
        yield f"| {listed}{more} | {other} | {reason} |"
    yield ""


def reason_of(name: str) -> str:
    """Why a test does not pass."""
    return next((why for pattern, why in REASONS.items() if re.search(pattern, name)), "")


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("suite", type=Path)
    parser.add_argument("--python", default="python")
    parser.add_argument("--examples", type=int, default=3)
    args = parser.parse_args()
    with tempfile.TemporaryDirectory() as folder:
        suite = copy_suite(args.suite, folder)
        table = {n: run_suite(suite, args.python, m, args.examples) for n, m in MODULES.items()}
    write_record(table, args.examples, find_versions(args.suite, args.python))


if __name__ == "__main__":
    main()
