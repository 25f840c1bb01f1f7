"""Where the tests of a module are: in the same folder of ``tests``, under its name."""

from __future__ import annotations

import ast
from collections.abc import Iterator
from pathlib import Path

from tests.architecture.test_architecture import ROOT

HUB, TESTS = ROOT / "serde", ROOT / "tests"

# Modules that are tested together with others: the file that does, and why there is no other. What
# ends with a slash is a folder. A new module gets a file of its own.
CONFORMED = (
    "each is run at all opsets on the node tests of onnx, and compared with onnx's own values"
)
WHOLE = "it has no behaviour apart from the whole that this tests"
WITH = {
    "decompositions/": ("tests/version_converter/test_rules_run.py", CONFORMED),
    "decompositions/random_source.py": ("tests/mxnet/test_random.py", "MXNet tells what it means"),
    "decompositions/reshape_codes.py": ("tests/mxnet/test_reshape_codes.py", "the codes are MXNet's"),
    "legalize/": ("tests/version_converter/test_versions.py", CONFORMED),
    "rewrite/": ("tests/rewrite/test_rules.py", "one engine"),
    "spec/composites.py": ("tests/decompositions/test_composites.py", WHOLE),
    "spec/onnx_builder.py": ("tests/spec/test_simplify.py", WHOLE),
    "spec/required_sizes.py": ("tests/passes/test_fixed_sizes.py", WHOLE),
    "spec/sample_axes/": ("tests/spec/test_sample_axes.py", "one table, compared with random calls"),
    "spec/shape_functions.py": ("tests/spec/test_inference.py", WHOLE),
    "spec/source_checks.py": ("tests/test_process_wide.py", WHOLE),
    "version_converter/adapters/": ("tests/version_converter/test_versions.py", CONFORMED),
    "version_converter/element_types.py": ("tests/legalize/test_emulate_types.py", WHOLE),
}  # fmt: skip


def modules() -> Iterator[str]:
    """The modules of the hub that do something: more than to give names of others."""
    for path in sorted(HUB.rglob("*.py")):
        if path.is_relative_to(HUB) and any(map(does_something, ast.parse(path.read_text()).body)):
            yield str(path.relative_to(HUB))


def does_something(statement: ast.stmt) -> bool:
    """Whether a statement is no docstring, import or ``__all__``."""
    if isinstance(statement, ast.Assign):
        return ast.unparse(statement.targets[0]) != "__all__"
    is_docstring = isinstance(statement, ast.Expr) and isinstance(statement.value, ast.Constant)
    return not is_docstring and not isinstance(statement, (ast.Import, ast.ImportFrom))


def has_own_tests(module: str) -> bool:
    """Whether there is a file of its name, in the same folder or one above."""
    parts = [*Path(module).with_suffix("").parts]
    parts = parts[:-1] if parts[-1] == "__init__" else parts
    if not parts:
        return (TESTS / "test_api.py").exists()
    stem, around = f"test_{parts[-1].strip('_')}.py", parts[:-1]
    places = [TESTS.joinpath(*parts)]
    for start in range(len(around) + 1):
        places += [
            TESTS.joinpath(*around[:start], *around[end:]) for end in range(start, len(around) + 1)
        ]
    return any((place / stem).exists() for place in places)


def find_entry(module: str) -> str | None:
    """The entry of a module: its own, or that of the folder it is in."""
    folders = [f"{folder}/" for folder in Path(module).parents]
    return next((name for name in (module, *folders) if name in WITH), None)


def test_every_module_of_the_hub_has_tests_under_its_name():
    alone = [m for m in modules() if not has_own_tests(m) and find_entry(m) is None]
    assert alone == []


def test_exceptions_are_needed_and_named():
    used = {find_entry(m) for m in modules() if not has_own_tests(m)}
    assert set(WITH) - used == set(), "these have their own tests by now"
    assert [place for place, _ in WITH.values() if not (ROOT / place).is_file()] == []
    assert all(len(reason) > 5 for _, reason in WITH.values())


def test_the_number_of_exceptions_does_not_grow():
    """A new module in a folder that has an entry needs a file of its own all the same."""
    without = [m for m in modules() if not has_own_tests(m)]
    assert len(without) <= MOST_WITHOUT, without


MOST_WITHOUT = 61  # fewer is better
