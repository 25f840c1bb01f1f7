"""The modules whose ``forward`` the expressions of a model are in."""

from __future__ import annotations

from serde.ir.graph import Value

from .functions import operands_of, parameters_of
from .plan import Plan
from .scopes import Path


def find_homes(plan: Plan) -> None:
    """Tell the module whose ``forward`` has each node, and which modules have one."""
    scopes = plan.scopes
    owned = {(*path, name) for n, path in plan.members.items() for name in parameters_of(n)}
    modules = {*plan.members.values()}
    for value, path in list(plan.arrays.items()):  # constants are nowhere in a checkpoint
        if path[:-1] in modules and path not in owned and plan.buffers.get(value) is False:
            del plan.arrays[value]
    apart = [p for p in plan.arrays.values() if p not in owned]
    holders = {p[:end] for p in (*plan.members.values(), *apart)
               for end in range(1, len(p))}  # fmt: skip
    plan.members = {n: (*p[:-1], f"{p[-1]}_{n.op[3:].lower()}") if p in holders else p
                    for n, p in plan.members.items()}  # fmt: skip
    reached = {m for scope in scopes.values() for m in scope.modules}
    plan.called = holders & reached
    readers: dict[Value, list[Path]] = {}
    for node in reversed(plan.graph.nodes):
        scope = scopes.get(node)
        home: Path
        if scope is not None:
            member = plan.members.get(node)
            chain = [m for m in scope.modules if m in plan.called]
            if member is not None:
                chain = [m for m in chain if len(m) < len(member) and member[: len(m)] == m]
            home = chain[-1] if chain else ()
        else:
            homes = [home for v in node.outputs for home in readers.get(v, ())]
            home = _common(homes)
        plan.homes[node] = home
        for operand in operands_of(node):
            if operand is not None and operand.tensor is None:
                readers.setdefault(operand, []).append(home)


def _common(paths: list[Path]) -> Path:
    """The path that all begin with."""
    if not paths:
        return ()
    first, last = min(paths), max(paths)
    count = next((at for at, (a, b) in enumerate(zip(first, last, strict=False)) if a != b),
                 min(len(first), len(last)))  # fmt: skip
    return first[:count]
