"""Where the tests of a module are: in the same folder of ``tests``, under its name."""

from __future__ import annotations

import ast
from collections.abc import Iterator
from pathlib import Path

from tests.architecture.test_architecture import ROOT

HUB, TESTS = ROOT / "serde", ROOT / "tests"

# Modules that are tested together with others: the file that does, and why there is no other. What
# ends with a slash is a folder. A new module gets a file of its own.
WHOLE = "it has no behaviour apart from the whole that this tests"
WITH = {
    "__main__.py": ("tests/test_packaging.py", "it starts the command"),
    "api/composition.py": ("tests/passes/test_join_graphs.py", WHOLE),
    "api/live_objects.py": ("tests/test_api.py", WHOLE),
    "api/migrate/": ("tests/test_migrate.py", "its parts are processes of one command"),
    "api/report/": ("tests/test_report_page.py", "one page, looked at in a browser too"),
    "cli/": ("tests/cli/test_cli.py", "the commands, as they are typed"),
    "cli/completion.py": ("tests/cli/test_terminal.py", WHOLE),
    "cli/operator_table.py": ("tests/cli/test_docs.py", "it makes a page"),
    "cli/progress.py": ("tests/cli/test_terminal.py", "it is seen on a terminal only"),
    "cli/reference.py": ("tests/cli/test_docs.py", "it makes a page"),
    "cli/sandbox.py": ("tests/cli/test_isolation.py", WHOLE),
    "io/signals.py": ("tests/cli/test_isolation.py", "signals end the command"),
    "io/weights_hash.py": ("tests/onnx/test_security.py", WHOLE),
    "ir/budget.py": ("tests/onnx/test_security.py", "it bounds what files may take"),
    "ir/picture/": ("tests/test_report_page.py", "one picture, looked at in a browser too"),
    "passes/": ("tests/passes/test_passes.py", "all passes on the same graphs, against ONNX Runtime"),
    "pipeline.py": ("tests/test_api.py", "the functions that users call"),
    "verification/": ("tests/verification/test_compare_runtimes.py", "a verification is one run"),
}  # fmt: skip


def modules() -> Iterator[str]:
    """The modules of the hub that do something."""
    for path in sorted(HUB.rglob("*.py")):
        if path.is_relative_to(HUB) and len(ast.parse(path.read_text()).body) > 1:
            yield str(path.relative_to(HUB))


def has_own_tests(module: str) -> bool:
    """Whether there is a file of its name, in the same folder or one above."""
    parts = [*Path(module).with_suffix("").parts]
    parts = parts[:-1] if parts[-1] == "__init__" else parts
    if not parts:
        return (TESTS / "test_api.py").exists()
    stem, around = f"test_{parts[-1]}.py", parts[:-1]
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


MOST_WITHOUT = 49  # fewer is better
