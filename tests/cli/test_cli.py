"""The package of the command: it is this one's own."""

import importlib
import sys
from types import ModuleType

import pytest

import serde
from serde import cli


def test_files_that_another_package_has_replaced_are_told(monkeypatch):
    other = ModuleType("serde")
    other.__path__ = serde.__path__
    monkeypatch.setitem(sys.modules, "serde", other)
    with pytest.raises(SystemExit, match="another package has replaced files of serde: pip "):
        importlib.reload(cli)
    monkeypatch.undo()
    assert importlib.reload(cli) is cli
