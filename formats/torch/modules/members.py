"""The members of modules, and the keys of the ``state_dict`` that their arrays have."""

from __future__ import annotations

import ast
import keyword
import re
from collections.abc import Hashable, Iterator
from dataclasses import dataclass, field
from typing import Any

import numpy as np

from serde.ir.graph import Node, Value
from serde.spec.weight_origins import names_in, origins_of

from ..source import names as naming
from ..target import Module
from .declarations import register_buffer, set_parameter, shorten_tie
from .functions import operands_of, parameters_of
from .nest import CALL, Block, Nesting, are_places
from .plan import Plan
from .scopes import Path


@dataclass
class Holder:
    """A module that has members: modules by name, and arrays, which statements make."""

    path: Path
    kind: str = "class"
    members: dict[str, Node | Holder] = field(default_factory=dict)
    scope: naming.Scope = field(default_factory=lambda: naming.Scope(naming.RESERVED))
    arrays: list[ast.stmt] = field(default_factory=list)
    after: list[ast.stmt] = field(default_factory=list)
    constructor: ast.Call | None = None

    def list_holders(self) -> Iterator[Holder]:
        """It and all in it."""
        yield self
        for member in self.members.values():
            if isinstance(member, Holder):
                yield from member.list_holders()


class Members:
    """The members of a model, which its blocks read.

    ``state`` maps the keys of the ``state_dict`` to arrays, ``origins`` to those of the source;
    ``constants`` are arrays that are no part of it.
    """

    def __init__(self, plan: Plan) -> None:
        self.source = plan.origins
        self.plan = plan
        self.nesting = Nesting(plan)
        self.blocks = self.nesting.blocks
        self.known_paths: dict[Path, Path] = {}  # of identifiers
        self.real_paths = {self.real(path): block for path, block in self.blocks.items()}
        self.root = Holder(())
        self.state: dict[str, Value] = {}
        self.origins: dict[str, tuple[str, ...]] = {}
        self.constants: list[str] = []
        self.arrays: dict[tuple[Value, Path], Path] = {}  # members by value and block
        self.modules: dict[Node, Path] = {}
        self.shared: dict[Any, tuple[Path, tuple[Value, ...]]] = {}
        self.planned = {self.real(plan.members[node]): (node, block.path)
                        for block in self.blocks.values() for node in block.graph.all_nodes()
                        if plan.is_checkpoint and node in plan.members}  # fmt: skip
        self.weights: dict[Hashable, tuple[Value, Path]] = {}  # and where they are first
        self.enter_block(self.blocks[()])
        if plan.is_checkpoint:
            self.enter_missing()
            for path, value in plan.unread.items():
                self.enter_unread(self.real(path), value)

    def enter_block(self, block: Block) -> None:
        """Make the members that the expressions of a block read."""
        for number, node in (block.sequence or {}).items():
            if node not in self.plan.members and node.op != CALL:
                self.find_holder((*self.real(block.path), "")).members[str(number)] = node
        for node in block.graph.all_nodes():
            if node.op == CALL:
                self.find_holder((*self.real(node.attrs["path"]), ""))  # type: ignore[arg-type]
                self.enter_block(self.blocks[node.attrs["path"]])  # type: ignore[index]
            elif "module" in node.attrs:
                self.modules[node] = self.construct(node, block.path)
            for value in operands_of(node):
                is_member = value is not None and value.tensor is not None
                if is_member and value not in block.graph.inputs:
                    self.enter_array(value, block.path)  # type: ignore[arg-type]

    def real(self, path: Path) -> Path:
        """A path of identifiers, without modules that are none: names begin with theirs."""
        known = self.known_paths.get(path)
        if known is None:
            known = self.known_paths[path] = self._make_real(path)
        return known

    def _make_real(self, path: Path) -> Path:
        if self.plan.is_checkpoint:
            return tuple(map(_to_member, path))
        parts: list[str] = []
        pending: list[str] = []
        for end, part in enumerate(path, 1):
            pending.append(part)
            if path[:end] in self.blocks or end == len(path):
                parts.append(_to_member("_".join(pending)))
                pending.clear()
        return tuple(parts)

    def find_holder(self, path: Path) -> Holder:
        """The module that a member of this path is in."""
        holder = self.root
        for end in range(1, len(path)):
            name = path[end - 1]
            member = holder.members.get(name)
            if not isinstance(member, Holder):
                holder.scope.claim(name)
                member = Holder(path[:end])
                block = self.real_paths.get(path[:end])
                if block is not None and block.sequence:
                    member.kind = "Sequential"
                elif block is None and path[:end] in self.nesting.numbered:
                    member.kind = "ModuleList"
                holder.members[name] = member
            holder = member
        return holder

    def claim(self, holder: Holder, name: str) -> str:
        """The name of a new member; a number stays one."""
        if not name.isidentifier() and name not in holder.members:
            return name
        # Names of a checkpoint may begin with "_", and are identifiers by now.
        is_final = self.plan.is_checkpoint and name.isidentifier()
        return holder.scope.claim(name if is_final else naming.to_identifier(name, "layer"))

    def construct(self, node: Node, block: Path) -> Path:
        """The member that a module is; one for all calls that share its arrays."""
        module = node.attrs["module"]
        assert isinstance(module, Module)
        path = self.real(self.plan.members[node])
        parameters = parameters_of(node)
        arrays = tuple(parameters.values())
        key: Any = (node.op, module.args, tuple(module.options.items()), arrays)
        if self.plan.is_checkpoint:  # a second call has a number behind the name
            key = (*key[:-1], (*path[:-1], re.sub(r"_\d+$", "", path[-1])))
        known = self.shared.get(key)
        start = self.real(block)
        if (
            known is not None
            and known[0][: len(start)] == start
            and all(
                a is b or np.array_equal(a.array(), b.array())
                for a, b in zip(arrays, known[1], strict=True)
            )
        ):
            return known[0]
        holder = self.find_holder(path)
        present = holder.members.get(path[-1])
        if not arrays and isinstance(present, Node) and self.is_alike(node, present):
            return path
        name = self.claim(holder, path[-1])
        if holder.kind != "class" and not are_places({name}):
            path = (*path[:-2], "_".join(path[-2:]))  # a list has numbers only
            holder = self.find_holder(path)
            name = self.claim(holder, path[-1])
        member = (*path[:-1], name)
        holder.members[name] = node
        tokens = self.find_tokens(node)
        for parameter, array in parameters.items():
            weight = (*member, parameter)
            if twin := self.find_twin(array, weight, tokens.get(parameter)):
                array, first = twin  # two layers train one array
                self.tie(weight, first)
            self.enter(weight, array)
            is_scale = parameter == "weight" and node.op.startswith("nn.BatchNorm")
            if is_scale and not origins_of(array):  # nothing that the source trains
                owner = self.find_owner(weight)
                fixed = ast.Attribute(self.spell(owner.path, weight), "requires_grad_")
                owner.after.append(ast.Expr(ast.Call(fixed, [ast.Constant(False)], [])))
        if arrays:
            self.shared.setdefault(key, (member, arrays))
        return member

    def is_alike(self, node: Node, other: Node) -> bool:
        """Whether two modules, that have no arrays, are one that is called again."""
        return node.op == other.op and node.attrs["module"] == other.attrs.get("module")

    def find_tokens(self, node: Node) -> dict[str, str]:
        """What the source calls the arrays of a module, if it tells which are the same."""
        scope = self.plan.scopes.get(node)
        if scope is None:
            return {}
        names = list(parameters_of(node))
        if len(scope.parameters) != len(names):
            return {}
        return dict(zip(names, scope.parameters, strict=True))

    def enter_missing(self) -> None:
        """Members for arrays that the source names at a place too where nothing reads them."""
        for node, path in list(self.modules.items()):
            for parameter, array in parameters_of(node).items():
                keys = names_in(origins_of(array), 0, array.tensor.size) if array.tensor else ()
                for key in keys:
                    parts = self.real(tuple(key.split(".")))
                    is_new = ".".join(parts) not in self.state
                    if is_new and len(parts) > 1 and parts[-1] == parameter:
                        self.enter_again(node, path, parts[:-1])
            for parameter, token in self.find_tokens(node).items():
                other = self.plan.find_module(token, parameter, path)
                if other is not None and ".".join((*other, parameter)) not in self.state:
                    self.enter_again(node, path, other)

    def enter_again(self, node: Node, first: Path, path: Path) -> None:
        """Make a module that trains the arrays of another one."""
        holder = self.find_holder(path)
        members = holder.members
        if path[-1] in members or holder.kind == "Sequential":  # which calls all that is in it
            return
        if holder.kind == "ModuleList" and not are_places({*members, path[-1]}):
            return
        members[path[-1]] = node
        for parameter, array in parameters_of(node).items():
            self.tie((*path, parameter), (*first, parameter))
            self.enter((*path, parameter), array)

    def enter_unread(self, path: Path, value: Value) -> None:
        """A member for an array of the checkpoint that nothing reads."""
        member: Node | Holder | None = self.root
        for name in path[:-1]:
            member = member.members.get(name) if isinstance(member, Holder) else member
        if ".".join(path) in self.state or isinstance(member, Node):  # which has no such array
            return
        where = value.tensor.where if value.tensor is not None else None
        twins = (key for key, other in self.state.items()
                 if where is not None and key not in self.constants
                 and other.tensor is not None and other.tensor.where == where)  # fmt: skip
        holder, first = self.find_holder(path), next(twins, None)
        holder.scope.claim(path[-1])
        if value in self.plan.buffers:
            holder.arrays.append(register_buffer(path[-1], value, False))
        elif first is None:
            holder.arrays.append(set_parameter(path[-1], value))
        else:
            self.tie(path, tuple(first.split(".")))
            value = self.state[first]
        self.enter(path, value)

    def find_twin(
        self, value: Value, member: Path, token: str | None = None
    ) -> tuple[Value, Path] | None:
        """The same weight in a member before this one, and that member."""
        origins = origins_of(value)
        if not origins or (self.plan.is_checkpoint and token is None):
            return None
        runs = token if self.plan.is_checkpoint else tuple([run[:2] for run in origins])
        key = runs, value.dtype, value.shape
        first = self.weights.setdefault(key, (value, member))
        is_same = first[1] != member and np.array_equal(first[0].array(), value.array())
        return first if is_same else None

    def tie(self, member: Path, first: Path) -> None:
        """Let a member be the array of another, in the module that both are in."""
        shared = [a for a, b in zip(member[:-1], first[:-1], strict=False) if a == b]
        count = next((at for at, (a, b) in enumerate(zip(member, first, strict=False)) if a != b),
                     len(shared))  # fmt: skip
        owner = self.find_owner((*member[:count], ""))
        owner.after += shorten_tie(*(self.spell(owner.path, p) for p in (member, first)))

    def find_owner(self, path: Path) -> Holder:
        """The innermost module around a member that has a class of its own."""
        holders = [self.root]
        for end in range(1, len(path)):
            member = holders[-1].members.get(path[end - 1])
            if not isinstance(member, Holder):
                break
            holders.append(member)
        return next(h for h in reversed(holders) if h.kind == "class")

    def spell(self, block: Path, path: Path) -> ast.expr:
        """A member as a module whose path is ``block`` reads it."""
        tree: ast.expr = ast.Name("self")
        holder: Holder | None = self.root
        for at, name in enumerate(path):
            inside = holder.members.get(name) if holder is not None else None
            if at >= len(block):
                if holder is not None and holder.kind != "class":
                    tree = ast.Subscript(tree, ast.Constant(int(name)))
                elif not name.isidentifier():
                    tree = ast.Call(ast.Name("getattr"), [tree, ast.Constant(name)], [])
                else:
                    tree = ast.Attribute(tree, name)
            holder = inside if isinstance(inside, Holder) else None
        return tree

    def enter(self, path: Path, array: Value) -> None:
        """Enter an array under its key in the ``state_dict``."""
        key = ".".join(path)
        self.state[key] = array
        names = names_in(origins_of(array), 0, array.tensor.size) if array.tensor else ()
        self.origins[key] = names or (self.source.get(array, array).name,)

    def enter_array(self, value: Value, block: Path) -> None:
        """Make a constant a member: a parameter or a buffer."""
        if (value, block) in self.arrays:
            return
        assert value.tensor is not None
        place = self.plan.arrays.get(value)
        start = self.real(block)
        name = naming.to_identifier(_to_member(value.name), "array")
        path = self.real(place) if place else (*start, name)
        if not place and path in self.plan.unread:  # whose name it has
            path = (*start, f"{name}_")
        known = self.arrays.get((value, path[:-1]))
        if known is not None:
            self.arrays[value, block] = known
            return
        owner = self.planned.get(path[:-1]) if place else None
        if owner is not None:  # a module that the array is of
            self.construct(*owner)
        same = self.state.get(".".join(path)) if place else None
        if same is not None and np.array_equal(same.array(), value.array()):
            self.arrays[value, block] = path
            return
        path = path if owner is None else (*path[:-2], "_".join(path[-2:]))
        holder = self.find_holder(path)
        name = holder.scope.claim(path[-1])
        path = (*path[:-1], name)
        self.arrays[value, block] = self.arrays[value, path[:-1]] = path
        twin = self.find_twin(value, path)
        if twin is not None and twin[1][: len(start)] == start:
            self.arrays[value, block] = twin[1]
            return
        is_buffer = place is None or value in self.plan.buffers
        is_constant = self.plan.is_checkpoint and is_buffer and not self.plan.buffers.get(value)
        self.enter(path, value)
        is_trained = bool(origins_of(value)) and value.type.kind == "f"
        if is_trained and not (is_buffer and self.plan.is_checkpoint):
            holder.arrays.append(set_parameter(name, value))
            if twin is not None:
                self.tie(path, twin[1])
            return
        if is_constant:
            self.constants.append(".".join(path))
        holder.arrays.append(register_buffer(name, value, is_constant))


def _to_member(name: str) -> str:
    """What a module's member is called: an identifier that hides nothing, or its number."""
    is_name = re.fullmatch(r"[A-Za-z0-9_-]{1,60}", name) is not None and not name.startswith("__")
    text = name if is_name and not keyword.iskeyword(name) else naming.to_identifier(name, "layer")
    return f"{text}_" if text in naming.RESERVED else text
