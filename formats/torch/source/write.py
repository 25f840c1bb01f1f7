"""A graph of PyTorch expressions as the source of classes, and the arrays of its ``state_dict``."""

from __future__ import annotations

import ast
from collections.abc import Mapping
from dataclasses import dataclass

from serde.ir.graph import Graph, Node, Value

from ..modules.classes import Classes, Definition, Form, construct, shorten
from ..modules.exported_constants import list_remarks
from ..modules.members import Holder, Members
from ..modules.placement import place
from ..modules.plan import Placement
from ..modules.scopes import find_class
from ..target import Module
from . import names as naming
from .body import Body
from .printer import BODY, INDENT, print_block, print_signature
from .trees import return_last, spell_name
from .variables import NAMES, Variables


@dataclass
class Written:
    """What becomes of a model.

    ``state`` maps the keys of the ``state_dict`` to arrays, ``origins`` to those of the source;
    ``constants`` are arrays that are no part of it, ``remarks`` what people should know of both.
    """

    class_name: str
    lines: list[str]
    state: Mapping[str, Value]
    origins: Mapping[str, tuple[str, ...]]
    constants: list[str]
    remarks: list[str]


def write_class(
    graph: Graph, class_name: str | None, usual_name: str, is_short: bool = True,
    is_nested: bool = True, inference: bool = False,
) -> Written:  # fmt: skip
    """The class of a model, and those of modules in it.

    Without ``class_name`` it is called as in the source, or ``usual_name``.
    """
    return _Writer(graph, class_name, usual_name, is_short, is_nested, inference).write()


class _Writer:
    def __init__(
        self, graph: Graph, class_name: str | None, usual_name: str, is_short: bool,
        is_nested: bool, inference: bool,
    ) -> None:  # fmt: skip
        self.graph = graph
        info = graph.source_info if isinstance(graph.source_info, Placement) else Placement()
        options = is_nested, is_short, inference
        plan = info.find_plan(graph.nodes, *options)
        self.plan = place(graph, info.origins, *options) if plan is None else plan
        self.members = Members(self.plan)
        class_path = self.plan.classes.get((), "").rpartition(".")[2]
        self.name = class_name or (naming.to_class_name(class_path) if class_path else usual_name)

    def write(self) -> Written:
        members = self.members
        scope = naming.Scope(naming.GLOBALS)
        inputs = {v: scope.claim(naming.to_identifier(v.name)) for v in self.graph.inputs}
        classes = Classes(naming.Scope((*naming.GLOBALS, self.name)))
        levels: dict[int, list[Holder]] = {}
        for holder in members.root.list_holders():
            levels.setdefault(_height(holder), []).append(holder)
        for _, holders in sorted(levels.items()):
            holders = [h for h in holders if h.kind == "class"]
            forms = [(h, self.make_form(h, inputs, len(holders) == 1)) for h in holders]
            classes.define([form for _, form in forms])
            for holder, form in forms:
                holder.constructor = form.constructor
        lines = [line for d in classes.definitions for line in (*_print_class(d), "", "")]
        return Written(self.name, lines[:-2], members.state, members.origins, members.constants,
                       list_remarks(self.plan))  # fmt: skip

    def make_form(self, holder: Holder, inputs: Mapping[Value, str], is_short: bool) -> Form:
        """The source of a module's class; one that ``is_short`` is like no other."""
        init: list[ast.stmt] = []
        for name, member in holder.members.items():
            call = self.make_constructor(member, is_short)
            if not name.isidentifier():
                add = spell_name("self.add_module")
                init.append(ast.Expr(ast.Call(add, [ast.Constant(name), call], [])))
            else:
                init.append(ast.Assign([ast.Attribute(ast.Name("self"), name)], call))
        init += holder.arrays + holder.after
        block = self.members.real_paths.get(holder.path)
        name = find_class(holder.path, self.plan.classes) if holder.path else ""
        name = naming.to_class_name(name) if holder.path else self.name
        if block is None:
            return Form(name, init, [], None, is_short=is_short)
        names = inputs if block.path == () else dict(zip(block.graph.inputs, NAMES, strict=False))
        body = Body(self.members, block, Variables(names, tuple(naming.GLOBALS)))
        statements = [*body.statements(), body.results()]
        lines = return_last(statements)
        return Form(name, init, list(names.values()), lines, is_model=not holder.path,
                    is_short=is_short)  # fmt: skip

    def make_constructor(self, member: Node | Holder, is_short: bool) -> ast.Call:
        if isinstance(member, Holder):
            if member.kind == "class":
                assert member.constructor is not None
                return shorten(member.constructor, {}) if is_short else member.constructor
            numbers = sorted(map(int, member.members))
            parts: list[ast.expr] = [
                self.make_constructor(member.members[str(at)], is_short) if at in numbers
                else ast.Call(spell_name("nn.Identity"), [], [])
                for at in range(numbers[-1] + 1)
            ]  # fmt: skip
            is_list = member.kind == "ModuleList"
            args: list[ast.expr] = [ast.List(parts)] if is_list else parts
            return ast.Call(spell_name(f"nn.{member.kind}"), args, [])
        module = member.attrs["module"]
        assert isinstance(module, Module)
        constructor = construct(member.op, module.args, module.options, is_short)
        if not module.wrapper:
            return constructor
        return ast.Call(spell_name(module.wrapper), [constructor], [])


def _height(holder: Holder) -> int:
    below = [_height(m) for m in holder.members.values() if isinstance(m, Holder)]
    return 1 + max(below, default=0)


def _print_class(definition: Definition) -> list[str]:
    arguments = [n if v is None else f"{n}={v!r}" for n, v in definition.arguments]
    lines = [f"class {definition.name}(nn.Module):"]
    lines += [
        *print_signature("__init__", ["self", *arguments], INDENT, " -> None"),
        f"{BODY}super().__init__()",
    ]
    lines += print_block(definition.init, BODY)
    if definition.body is not None:
        lines += ["", *print_signature("forward", ["self", *definition.inputs], INDENT)]
        lines += print_block(definition.body, BODY)
    return lines
