"""What the command group shares with its commands: the exit codes."""

import re

from serde.cli import commands, context
from testing.onnx_live import DIGITS

CODES = (context.DONE, context.FAILED, context.USAGE, context.UNREADABLE, context.NOT_COMPARED,
         context.SYSTEM, context.INTERRUPTED)  # fmt: skip


def test_the_page_of_errors_has_a_row_for_each_code():
    page = (DIGITS.parents[1] / "docs" / "reference" / "errors.md").read_text()
    assert re.findall(r"^\| (\d+) \|", page, re.MULTILINE) == [str(code) for code in CODES]


def test_the_module_of_the_commands_tells_each():
    told = re.findall(r"(?:Exit codes: |, |\n)(\d+) \w", commands.__doc__ or "")
    assert [*map(int, told)] == [*CODES]
