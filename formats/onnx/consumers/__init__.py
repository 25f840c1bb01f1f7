"""Consumers of ONNX files, one a folder: what each accepts, and how graphs are made to fit.

A folder's ``__init__`` declares its ``CONSUMER``, whose name is that of the folder.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from importlib import import_module
from pkgutil import iter_modules

from serde.errors import UsageError
from serde.plugins import get_target, target_names
from serde.plugins.consumer import Consumer


class Consumers(Mapping[str, Consumer]):
    """The consumers by name: those beside this file, and those that plug-ins declare."""

    def __init__(self) -> None:
        folders = (module.name for module in iter_modules(__path__) if module.ispkg)
        self.built_in = {name.replace("_", "-"): name for name in folders}

    def __getitem__(self, name: str) -> Consumer:
        if name not in self.built_in and name in target_names():
            return Consumer.of(get_target(name), name)
        consumer: Consumer = import_module(f"{__name__}.{self.built_in[name]}").CONSUMER
        if name in target_names():
            raise UsageError(
                f"a plug-in's target is called {name!r}, as a profile of serde's own: rename its "
                "entry point in the group serde.targets, or uninstall it"
            )
        return consumer

    def __iter__(self) -> Iterator[str]:
        return iter(
            [*self.built_in, *(name for name in target_names() if name not in self.built_in)]
        )

    def __len__(self) -> int:
        return sum(1 for _ in self)


CONSUMERS = Consumers()
