"""Tables of rules from the IR to a format."""

from __future__ import annotations

from collections.abc import Collection, Mapping

from serde.errors import ConversionError
from serde.ir.graph import EMPTY, Node
from serde.rewrite import custom_ops
from serde.rewrite.rules import RuleTable
from serde.spec import schema


class WriterTable(RuleTable):
    """Rules from the IR to a format that has no operators of other domains than ``domains``.

    ``title`` is what messages call the format; ``reasons`` are those of ``RuleTable``.
    """

    def __init__(
        self, name: str, title: str, domains: Collection[str] = ("",),
        reasons: Mapping[str, str] = EMPTY,
    ) -> None:  # fmt: skip
        super().__init__(name, defaults=schema.defaults_of, reasons=reasons)
        self._title, self._domains = title, domains

    def list_standard(self) -> list[str]:
        """The operators of the standard that it has rules for, without those of other domains."""
        return [op for op in self.rules if schema.find(op) is not None]

    def diagnostic(self, node: Node) -> ConversionError | None:
        """Why a node is refused, whatever its rule: what was found about it, or its domain."""
        known = super().diagnostic(node)
        if known is None and node.domain not in self._domains:
            return custom_ops.refuse(node, self._title)
        return known
