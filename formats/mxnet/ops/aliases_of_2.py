"""Names of MXNet 2.0's operators, where they are others than MXNet 1.9.1's.

Written by testing/mxnet/make_registry.py.
"""

from __future__ import annotations

# Names that MXNet 1.9.1 has for an operator that another of 2.0 is not.
SECOND_OWN = ["_npi_full", "_npi_linspace"]
# Names that have a prefix in place of another one: both, and what follows them.
SECOND_FAMILIES = {
    ("_sparse_", ""): "digamma log_sigmoid mish",
    ("_npx_", ""): (
        "_image_random_crop _image_random_resized_crop add_n broadcast_greater broadcast_like "
        "digamma masked_log_softmax masked_softmax norm slice_like softsign"
    ),
    ("_npx_", "_contrib_"): (
        "bipartite_matching box_decode box_encode box_iou box_nms interleaved_matmul_encdec_qk "
        "interleaved_matmul_encdec_valatt interleaved_matmul_selfatt_qk "
        "interleaved_matmul_selfatt_valatt intgemm_fully_connected intgemm_maxabsolute "
        "intgemm_prepare_data intgemm_prepare_weight intgemm_take_weight quantized_act "
        "quantized_conv quantized_elemwise_add quantized_elemwise_mul quantized_embedding "
        "quantized_flatten quantized_fully_connected quantized_pooling requantize round_ste "
        "sign_ste sldwin_atten_context sldwin_atten_mask_like sldwin_atten_score"
    ),
    ("_npx_", "_"): "contrib_calibrate_entropy contrib_quantize contrib_quantize_v2",
    ("_npi_", ""): "all_finite amp_cast amp_multicast multi_all_finite repeat stack",
    ("", "_"): "random_binomial sample_binomial sample_categorical",
}
SECOND_OTHERS = {  # the name rules are registered under: its other names
    "BlockGrad": "_npx_stop_gradient",
    "CTCLoss": "_npx_ctc_loss",
    "Concat": "_npi_concatenate",
    "GroupNorm": "_npx_group_norm",
    "InstanceNorm": "_npx_instance_norm",
    "Pad": "_npx_pad",
    "SequenceLast": "_npx_sequence_last",
    "SequenceReverse": "_npx_sequence_reverse",
    "SliceChannel": "_npx_slice_channel",
    "_contrib_BatchNormWithReLU": "_npx_batch_norm_with_relu",
    "_contrib_SyncBatchNorm": "_npx_sync_batch_norm",
    "_contrib_quantized_reshape": "quantized_reshape",
    "_contrib_quantized_transpose": "quantized_transpose",
    "_npi_any": "_np_sometrue",
    "_npi_cumsum": "cumsum",
    "_npi_max": "_npi_amax",
    "_npi_min": "_npi_amin",
    "_npi_prod": "_np_product",
    "_random_poisson": "_npx_scalar_poisson",
    "_sample_categorical": "_npx__random_categorical",
    "_sample_multinomial": "_npx__random_multinomial",
    "_sample_poisson": "_npx_tensor_poisson",
    "_sg_onednn_conv": "_sg_mkldnn_conv",
    "_sg_onednn_fully_connected": "_sg_mkldnn_fully_connected",
    "_sg_onednn_selfatt_qk": "_sg_mkldnn_selfatt_qk",
    "_sg_onednn_selfatt_valatt": "_sg_mkldnn_selfatt_valatt",
    "_split_v2": "_npi_array_split",
    "_unravel_index": "_npi_unravel_index",
}
