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
# Why tests do not pass with serde, by the beginning of their names.
REASONS: dict[str, str] = {}


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
    found: dict[str, str] = {}
    for path in sorted((suite / "array_api_tests").glob("test_*.py")):
        found |= run_file(suite, python, module, examples, path.name)
    return found


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


def write_record(found: dict[str, dict[str, str]], examples: int) -> None:
    """Write the record: the tests that not both pass, and how many do in each file."""
    names = sorted(set().union(*found.values()))
    rows = {n: [found[m].get(n, "not run") for m in MODULES] for n in names}
    both = Counter(n.partition("::")[0] for n in names if rows[n] == ["passed", "passed"])
    record = {
        "examples": examples,
        "version": VERSION,
        "both pass": dict(sorted(both.items())),
        "others": {n: row for n, row in rows.items() if row != ["passed", "passed"]},
    }
    RECORD.write_text(json.dumps(record, indent=1) + "\n")


def page() -> Iterator[str]:
    """The lines of docs/results/array-api.md."""
    record = json.loads(RECORD.read_text())
    others: dict[str, list[str]] = record["others"]
    yield from (
        "# The Array API standard",
        "",
        "`python -m conformance.array_api SUITE` runs the standard's own tests "
        f"(data-apis/array-api-tests, version {record['version']}, {record['examples']} examples a "
        "test)",
        "on `conformance/array_api_eager.py`, which traces each call and runs it in ONNX Runtime,",
        "and on ndonnx 0.23.",
        "`python -m conformance.pages` makes this page of the record.",
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
    yield from (
        "",
        "## Tests that do not pass with serde",
        "",
        "| test | ndonnx | why |",
        "|---|---|---|",
    )
    for name, (own, other) in others.items():
        if own not in ("passed", "skipped"):
            reason = next(
                (r for n, r in REASONS.items() if name.partition("::")[2].startswith(n)), ""
            )
            yield f"| `{name}` | {other} | {reason} |"
    yield ""


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("suite", type=Path)
    parser.add_argument("--python", default="python")
    parser.add_argument("--examples", type=int, default=3)
    given = parser.parse_args()
    with tempfile.TemporaryDirectory() as folder:
        suite = copy_suite(given.suite, folder)
        found = {n: run_suite(suite, given.python, m, given.examples) for n, m in MODULES.items()}
    write_record(found, given.examples)


if __name__ == "__main__":
    main()
