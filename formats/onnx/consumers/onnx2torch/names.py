"""Names and outputs as onnx2torch needs them: nodes become attributes of a module."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import replace
from keyword import kwlist

from serde.ir.builder import Names
from serde.ir.graph import Graph, Node, Value
from serde.ir.replace_uses import replace_inputs

from ..used_names import used_names

# What a torch.nn.Module has, and what onnx2torch adds to it; PyTorch 2.13 writes keywords as names.
RESERVED = frozenset(kwlist) | frozenset(
    """
    T_destination add_module apply bfloat16 buffers call_super_init children code compile cpu cuda
    double dump_patches eval extra_repr float forward get_buffer get_extra_state get_parameter
    get_submodule graph half initializers ipu load_state_dict modules mtia named_buffers
    named_children named_modules named_parameters parameters print_readable recompile
    register_backward_hook register_buffer register_forward_hook register_forward_pre_hook
    register_full_backward_hook register_full_backward_pre_hook register_load_state_dict_post_hook
    register_load_state_dict_pre_hook register_module register_parameter
    register_state_dict_post_hook register_state_dict_pre_hook requires_grad_ set_extra_state
    set_submodule share_memory state_dict to to_empty to_folder train training type xpu zero_grad
    """.split()
)


# Operators of which onnx2torch looks up the rank of the data, which it knows of no constant.
RANKED = frozenset(
    "AveragePool BatchNormalization GlobalAveragePool InstanceNormalization LayerNormalization "
    "MaxPool".split()
)


def prepare(graph: Graph) -> Graph:
    """Return a lowered graph whose nodes onnx2torch can name, and whose outputs it keeps apart."""
    names = used_names(graph)
    nodes = [new_node for node in graph.nodes for new_node in _copy_constant_data(node, names)]
    nodes = _separate_outputs(nodes, graph.outputs, names)
    return replace(graph, nodes=tuple(map(_rename, nodes)))


def _copy_constant_data(node: Node, names: Names) -> Iterator[Node]:
    x = node.inputs[0] if node.op in RANKED and not node.domain else None
    if x is not None and x.tensor is not None:
        copy = replace(x, name=names.fresh(f"{x.name}/Identity"), tensor=None)
        yield Node("Identity", (x,), (copy,), {}, "", copy.name, node.sources)
        node = replace(node, inputs=(copy, *node.inputs[1:]))
    yield node


def _rename(node: Node) -> Node:
    name = node.name or node.op
    is_reserved = name in RESERVED or name.lower() in RESERVED or name.startswith("__")
    return replace(node, name=f"{name}_") if is_reserved else node


def _separate_outputs(nodes: list[Node], outputs: Iterable[Value], names: Names) -> list[Node]:
    """Copy outputs of nodes with several results, which onnx2torch returns as one."""
    output_set, apart = set(outputs), []
    instead: dict[Value, Value] = {}
    for node in nodes:
        if len(node.outputs) > 1:
            mine = [v for v in node.outputs if v in output_set]
            instead |= {v: replace(v, name=names.fresh(f"{v.name}/{node.op}")) for v in mine}
        apart.append(replace(node, outputs=tuple(instead.get(v, v) for v in node.outputs)))
    if not instead:
        return nodes
    copies = [Node("Identity", (own,), (v,), {}, "", v.name) for v, own in instead.items()]
    return [*(replace_inputs(node, instead) for node in apart), *copies]
