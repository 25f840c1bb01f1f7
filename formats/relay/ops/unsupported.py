"""Operators without an equivalent, and why."""

from __future__ import annotations

from functools import partial

from serde.errors import ConversionError

from .. import registry
from ..rules import reads

COMPILED = "it belongs to TVM's compiled form of a model: convert the module before it was lowered"
TRAINING = "it computes a gradient: convert the module before it was differentiated"
BITS_OF_NOISE = "it draws random bits, and ONNX's random numbers have no more than 24"
BITS = "it computes with packed bits, which ONNX has no operators for"
KERNEL = "its weights are transformed for one kernel of TVM's: convert the module before that"
DEVICE = "it is an instruction of an accelerator: convert the module before it was partitioned"
ANNOTATED = "its scales are not chosen yet: convert the module before or after quantisation"

REASONS = {
    COMPILED: "call_lowered memory.alloc_storage memory.alloc_tensor memory.kill vm.invoke_tvm_op "
    "vm.shape_func",
    TRAINING: "nn.avg_pool2d_grad nn.max_pool2d_grad nn.conv2d_backward_weight",
    BITS_OF_NOISE: "random.threefry_generate",
    BITS: "nn.bitpack nn.bitserial_conv2d nn.bitserial_dense",
    KERNEL: "nn.contrib_conv2d_gemm_weight_transform nn.contrib_conv2d_winograd_weight_transform "
    "nn.contrib_conv2d_winograd_nnpack_weight_transform "
    "nn.contrib_conv3d_winograd_weight_transform nn.internal.sparse_dense_padded "
    "auto_scheduler_layout_transform meta_schedule_layout_transform",
    DEVICE: "contrib.ethosu.binary_elementwise contrib.ethosu.conv2d "
    "contrib.ethosu.depthwise_conv2d contrib.ethosu.identity contrib.ethosu.pooling "
    "contrib.ethosu.unary_elementwise",
    ANNOTATED: "relay.op.annotation.simulated_quantize",
    "it runs a function of Python": "torch_op",
    "it is a reference of TVM's parser": "parser.MetaRef",
}


def refuse(reason, g, *operands):
    raise ConversionError(reason)


for _reason, _ops in REASONS.items():
    for _op in _ops.split():
        _key = registry.attrs_key(_op) or ""
        _fields = registry.fields(_key) or {}
        reads(_op, ignore=tuple(_fields))(partial(refuse, _reason))
