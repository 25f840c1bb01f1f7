"""What signals wait for, see also ``test_signals``."""

from __future__ import annotations

from serde.io.atomic_write import Replacing, _replace_together
from serde.io.finish_first import FINISHED_FIRST, finish_first
from serde.io.temporary_folder import TemporaryFolder, _remove


def test_what_puts_files_in_place_or_removes_them_is_finished_first() -> None:
    for function in (TemporaryFolder.cleanup, _remove, Replacing._clean_up, _replace_together):
        assert function.__code__ in FINISHED_FIRST


def test_a_function_stays_what_it_is() -> None:
    def function() -> int:
        return 1

    assert finish_first(function) is function and function() == 1
    FINISHED_FIRST.remove(function.__code__)
