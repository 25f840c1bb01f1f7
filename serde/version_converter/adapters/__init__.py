"""What each opset changed, by operator family, in both directions.

``downgrades[v]`` rewrites an operator of opset ``v`` into operators of ``v - 1``; ``upgrades[v]``
the other way. A rule that declares the attribute ``outputs`` gets the number of outputs in use;
one that ends in ``**rest`` is handed the attributes it does not name.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import wraps
from typing import Any

from serde.ir.graph import IR_OPSET
from serde.rewrite.rules import RuleTable

downgrades = {v: RuleTable(f"opset {v} → {v - 1}") for v in range(2, IR_OPSET + 1)}
upgrades = {v: RuleTable(f"opset {v - 1} → {v}") for v in range(2, IR_OPSET + 1)}

Rule = Callable[..., Any]


def decomposition(version: int, *ops: str) -> Callable[[Rule], Rule]:
    """Register the decorated rule as what becomes of ``ops`` below ``version``.

    It is written in the IR's operators, whatever the opset it is asked at.
    """

    def register(rule: Rule) -> Rule:
        @wraps(rule)
        def emit_at_ir_opset(g: Any, *inputs: Any, **attrs: Any) -> Any:
            with g.at_opset(IR_OPSET):
                return rule(g, *inputs, **attrs)

        downgrades[version](*ops)(emit_at_ir_opset)
        return rule

    return register
