"""Labels, and the outputs that are computed for training alone.

In inference an output layer does not read its label. Variables that only labels are computed from
leave the graph before their shapes are asked for, and so do the operators on the way.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterable, Iterator
from dataclasses import replace

from serde.ir.graph import Graph, Node, Value
from serde.passes.cut_inputs import LABEL
from serde.passes.dce import drop_dead

from ..bind.declared import is_parameter_name, list_parameters
from ..operators import describe
from .custom_ops import CUSTOM, kind_of

MOST = 1 << 12  # variables that are no parameters; of more, outputs are not looked at
PARAMETER = 1  # the bit that stands for all parameters
Bits = dict[Value, int]


def drop_labels(
    graph: Graph, keep_outputs: bool = False, rules: Collection[str] = ()
) -> Graph:  # fmt: skip
    """``graph`` as it infers: without labels, and the outputs and nodes that only they need.

    Outputs that depend on a label are left out where others do not, unless ``keep_outputs``. The
    operators named in ``rules`` are read by a caller's rule: they keep their operands, and custom
    operators among them are no losses.
    """
    nodes = tuple(n if n.op in rules else _drop_unread(n) for n in graph.nodes)
    inference = replace(graph, nodes=nodes)
    training, losses = (set(), []) if keep_outputs else _training_outputs(graph, inference, rules)
    outputs = tuple(v for v in graph.outputs if v not in training)
    done = drop_dead(replace(inference, outputs=outputs))
    read = done.uses()
    inputs = tuple(v for v in graph.inputs if v in read)
    dropped = [v for v in graph.inputs if v not in read]
    left_out = [v for v in graph.outputs if v in training]
    notes = (*graph.notes, *_notes(left_out, dropped), *_describe_losses(losses))
    return replace(done, inputs=inputs, notes=notes)


def drop_unread_labels(graph: Graph) -> Graph:
    """An IR graph without inputs that are labels by name and that no rule read."""
    labels = [v for v in graph.inputs if v.name.endswith(LABEL)]
    if not labels:
        return graph
    read = graph.uses()
    unread = [v for v in labels if v not in read]
    inputs = tuple(v for v in graph.inputs if v not in unread)
    return replace(graph, inputs=inputs, notes=(*graph.notes, *_notes([], unread)))


def _drop_unread(node: Node) -> Node:
    unread = describe(node.op).unread
    if not unread:
        return node
    inputs = tuple(None if at in unread else v for at, v in enumerate(node.inputs))
    return replace(node, inputs=inputs)


def _training_outputs(
    graph: Graph, inference: Graph, rules: Collection[str]
) -> tuple[set[Value], list[Value]]:
    """The outputs that need labels, and the losses that need more inputs than other outputs."""
    outputs = dict.fromkeys(graph.outputs)
    if len(outputs) < 2 or len(data := _data_variables(graph)) > MOST:
        return set(), []
    bits = {**dict.fromkeys(graph.inputs, PARAMETER), **{v: 2 << i for i, v in enumerate(data)}}
    named = _union_bits(bits[v] for v in data if v.name.endswith(LABEL))
    needs = _collect_needs(inference, bits, _operands)
    unlabelled = _collect_needs(inference, bits, _other_operands)
    sources = _collect_needs(inference, bits, _label_sources)
    labelled = 0
    for node in graph.nodes:
        for value in _labels(node):
            labelled |= sources.get(value, PARAMETER) & ~PARAMETER
    copied = _find_copies(inference)
    copies = {v for v in outputs if v in copied and not needs[v] & ~labelled}
    if len(copies) == len(outputs):
        copies = set()
    own_label = _outputs_of_own_label(graph, needs, sources, outputs)
    read = _union_bits(unlabelled[v] for v in outputs if v not in copies and v not in own_label)
    labels = _union_bits(bits.values()) & ~read & ~PARAMETER
    results = {v for v in outputs if needs[v] & labels}
    if len(results) == len(outputs):
        results = set()
    rest = {v: needs[v] & ~PARAMETER for v in outputs if v not in results}
    makers = {v: node for node in graph.nodes for v in node.outputs}
    losses = set()
    for value, needed in rest.items():
        shown = _find_output_node(value, makers)
        if shown is not None and _is_loss(shown, bool(needed & labelled), rules):
            losses.add(value)
    more = _find_needs_of_losses(losses, rest)
    labels = labelled | named
    kept = [v for v, needed in more.items() if not needed & labels]
    return results | {v for v, needed in more.items() if needed & labels}, kept


def _outputs_of_own_label(
    graph: Graph, needs: Bits, sources: Bits, outputs: Iterable[Value]
) -> set[Value]:
    """The outputs of layers whose data depend on the label too, as with a margin for its class."""
    makers = {v: node for node in graph.nodes for v in node.outputs}
    results = set()
    for value in outputs:
        shown = _find_output_node(value, makers)
        if shown is None or not describe(shown.op).unread or shown.inputs[0] is None:
            continue
        label = _union_bits(sources.get(v, PARAMETER) for v in _labels(shown))
        if label & needs.get(shown.inputs[0], PARAMETER) & ~PARAMETER:
            results.add(value)
    return results


def _find_needs_of_losses(losses: set[Value], needs: Bits) -> Bits:
    """What losses read beside what another output reads, of those that read both."""
    if len(losses) == len(needs):
        kinds = set(needs.values())
        fewest = {v for v in losses if not any(_is_within(kind, needs[v]) for kind in kinds)}
        losses = losses - fewest
    read = _union_bits(bits for v, bits in needs.items() if v not in losses)
    return {v: needs[v] & ~read for v in needs if v in losses and needs[v] & read & ~PARAMETER
            and needs[v] & ~read}  # fmt: skip


def _is_within(some: int, others: int) -> bool:
    return some != others and not some & ~others and some != 0


def _find_output_node(value: Value, makers: dict[Value, Node]) -> Node | None:
    """The node whose result an output is, behind what copies it: of losses, the loss."""
    while (node := makers.get(value)) is not None and node.inputs and node.inputs[0] is not None:
        is_shown = node.op == "MakeLoss" and _is_zero(str(node.attrs.get("grad_scale", "1")))
        about = describe(node.op)
        if not is_shown and (about.is_loss or not about.is_copy):
            break
        value = node.inputs[0]
    return node


def _is_loss(node: Node, reads_labels: bool, rules: Collection[str]) -> bool:
    """Whether a model is trained to make the result of ``node`` small.

    A custom operator that reads the label of a layer is a loss, unless there is a rule for it.
    """
    is_own = node.op == CUSTOM and reads_labels and not {CUSTOM, kind_of(node)} & {*rules}
    return describe(node.op).is_loss or is_own


def _is_zero(text: str) -> bool:
    try:
        return float(text) == 0
    except ValueError:
        return False  # the operator's rule will say so


def _data_variables(graph: Graph) -> list[Value]:
    """The inputs that are no parameters."""
    parameters = list_parameters(graph)
    return [v for v in graph.inputs if v.name not in parameters and not is_parameter_name(v.name)]


def _collect_needs(graph: Graph, bits: Bits, operands: Callable[[Node], Iterator[Value]]) -> Bits:
    """The bits of the variables that each value is computed from, by way of some operands."""
    needs = dict(bits)
    for node in graph.nodes:
        needed = _union_bits(needs.get(v, PARAMETER) for v in operands(node))
        needs.update((v, needed) for v in node.outputs)
    needs.update((v, PARAMETER) for v in graph.outputs if v not in needs)
    return needs


def _find_copies(graph: Graph) -> set[Value]:
    """Inputs, and what is only arranged anew of them."""
    copies = set(graph.inputs)
    for node in graph.nodes:
        if describe(node.op).is_copy and node.inputs and copies.issuperset(_operands(node)):
            copies.update(node.outputs)
    return copies


def _union_bits(bits: Iterable[int]) -> int:
    union = 0
    for some in bits:
        union |= some
    return union


def _operands(node: Node) -> Iterator[Value]:
    return (v for v in node.inputs if v is not None)


def _other_operands(node: Node) -> Iterator[Value]:
    """The operands that are no labels that the result depends on."""
    about = describe(node.op)
    labels = () if about.unread else about.labels
    return (v for at, v in enumerate(node.inputs) if v is not None and at not in labels)


def _label_sources(node: Node) -> Iterator[Value]:
    """What a label would be computed from: of targets, the labels among the operands."""
    about = describe(node.op)
    return _labels(node) if about.labels and not about.unread else _operands(node)


def _labels(node: Node) -> Iterator[Value]:
    labels = describe(node.op).labels
    return (v for i, v in enumerate(node.inputs) if v is not None and i in labels)


def _notes(outputs: list[Value], inputs: list[Value]) -> Iterator[str]:
    if outputs:
        yield (
            f"left out: output {_quote(outputs)}, computed only to train; to keep it, name each "
            "output that is wanted with --outputs"
        )
    if inputs:
        yield f"left out: input {_quote(inputs)}, read only to train"


def _describe_losses(outputs: list[Value]) -> Iterator[str]:
    if outputs:
        yield (
            f"output {_quote(outputs)} is a loss that reads inputs of its own: to leave both out, "
            "name each output that is wanted with --outputs, or outputs=[…]"
        )


def _quote(values: list[Value]) -> str:
    return ", ".join(repr(v.name) for v in values)
