"""Names under which MXNet registers an operator a second time.

Written by testing/mxnet/make_registry.py.
"""

from __future__ import annotations

# Names that have a prefix in place of another one: both, and what follows them.
FAMILIES = {
    ("_sparse_", ""): (
        "Embedding FullyConnected LinearRegressionOutput LogisticRegressionOutput "
        "MAERegressionOutput _contrib_round_ste _contrib_sign_ste abs adam_update add_n arccos "
        "arccosh arcsin arcsinh arctan arctanh broadcast_add broadcast_div broadcast_mul "
        "broadcast_sub cast_storage cbrt ceil clip cos cosh degrees dot elemwise_add elemwise_div "
        "elemwise_mul elemwise_sub exp expm1 fix floor ftrl_update gamma gammaln log log10 log1p "
        "log2 make_loss mean negative norm radians relu rint round rsqrt sgd_mom_update sgd_update "
        "sigmoid sign sin sinh slice sqrt square sum tan tanh trunc where zeros_like"
    ),
    ("_npx_", ""): (
        "_image_adjust_lighting _image_crop _image_flip_left_right _image_flip_top_bottom "
        "_image_normalize _image_random_brightness _image_random_color_jitter "
        "_image_random_contrast _image_random_flip_left_right _image_random_flip_top_bottom "
        "_image_random_hue _image_random_lighting _image_random_saturation _image_resize "
        "_image_to_tensor batch_dot erf erfinv gamma gammaln gather_nd log_softmax one_hot pick "
        "reshape_like shape_array slice smooth_l1 softmax topk"
    ),
    ("_npi_", ""): "Custom argsort clip expand_dims gather_nd slice sort take tile",
    ("_npi_", "_"): (
        "copyto cvimdecode cvimread cvimresize full histogram hypot_scalar linspace maximum_scalar "
        "minimum_scalar random_randint rnn_param_concat scatter_set_nd shuffle slice_assign "
        "slice_assign_scalar"
    ),
    ("", "_"): (
        "linalg_det linalg_extractdiag linalg_extracttrian linalg_gelqf linalg_gemm linalg_gemm2 "
        "linalg_inverse linalg_makediag linalg_maketrian linalg_potrf linalg_potri linalg_slogdet "
        "linalg_sumlogdiag linalg_syrk linalg_trmm linalg_trsm random_exponential random_gamma "
        "random_generalized_negative_binomial random_negative_binomial random_normal "
        "random_pdf_dirichlet random_pdf_exponential random_pdf_gamma "
        "random_pdf_generalized_negative_binomial random_pdf_negative_binomial random_pdf_normal "
        "random_pdf_poisson random_pdf_uniform random_poisson random_randint random_uniform "
        "ravel_multi_index sample_exponential sample_gamma sample_generalized_negative_binomial "
        "sample_multinomial sample_negative_binomial sample_normal sample_poisson sample_uniform "
        "shuffle unravel_index"
    ),
}
# Operators whose name is there in title case as well: ``_Greater_Equal``.
TITLED = (
    "_equal _greater _greater_equal _hypot _lesser _lesser_equal _logical_and _logical_or "
    "_logical_xor _maximum _minimum _mod _not_equal _power"
)
# The same without underscores between the words: ``_GreaterEqualScalar``.
JOINED = (
    "_div_scalar _equal_scalar _greater_equal_scalar _greater_scalar _hypot_scalar "
    "_lesser_equal_scalar _lesser_scalar _logical_and_scalar _logical_or_scalar "
    "_logical_xor_scalar _maximum_scalar _minimum_scalar _minus_scalar _mod_scalar _mul_scalar "
    "_not_equal_scalar _plus_scalar _power_scalar"
)
OTHERS = {  # the name rules are registered under: its other names
    "Activation": "_npx_activation",
    "BatchNorm": "_npx_batch_norm",
    "BlockGrad": "_sparse_stop_gradient stop_gradient",
    "CTCLoss": "_contrib_CTCLoss _contrib_ctc_loss ctc_loss",
    "Cast": "_npi_cast _npx_cast cast",
    "Concat": "_sparse_concat concat",
    "Convolution": "_npx_convolution",
    "Deconvolution": "_npx_deconvolution",
    "Dropout": "_npx_dropout",
    "Embedding": "_npx_embedding",
    "Flatten": "_npx_batch_flatten flatten",
    "FullyConnected": "_npx_fully_connected",
    "LayerNorm": "_npx_layer_norm",
    "LeakyReLU": "_npx_leaky_relu",
    "Pad": "pad",
    "Pooling": "_npx_pooling",
    "RNN": "_npx_rnn",
    "ROIPooling": "_npx_roi_pooling",
    "Reshape": "reshape",
    "SequenceMask": "_npx_sequence_mask",
    "SliceChannel": "split",
    "SoftmaxOutput": "Softmax",
    "SwapAxis": "_npi_swapaxes swapaxes",
    "_contrib_MultiBoxDetection": "_npx_multibox_detection",
    "_contrib_MultiBoxPrior": "_npx_multibox_prior",
    "_contrib_MultiBoxTarget": "_npx_multibox_target",
    "_contrib_arange_like": "_npx_arange_like",
    "_contrib_boolean_mask": "_npi_boolean_mask",
    "_contrib_box_nms": "_contrib_box_non_maximum_suppression",
    "_copy": "identity",
    "_linalg_det": "_npi_det",
    "_linalg_inverse": "_npi_inv",
    "_linalg_slogdet": "_npi_slogdet",
    "_np_any": "_np_sometrue",
    "_np_cumsum": "cumsum",
    "_np_max": "_np_amax",
    "_np_min": "_np_amin",
    "_np_prod": "_np_product",
    "_npi_absolute": "_npi_abs",
    "_npx_nonzero": "_npi_nonzero",
    "_npx_reshape": "_npi_reshape",
    "_random_normal": "normal",
    "_random_uniform": "uniform",
    "_rdiv_scalar": "_RDivScalar",
    "_rminus_scalar": "_RMinusScalar",
    "_rmod_scalar": "_RModScalar",
    "_rpower_scalar": "_RPowerScalar",
    "_slice_assign": "_crop_assign",
    "_slice_assign_scalar": "_crop_assign_scalar",
    "_split_v2": "_npi_split",
    "add_n": "ElementWiseSum _sparse_ElementWiseSum",
    "broadcast_add": "_sparse_broadcast_plus broadcast_plus",
    "broadcast_axis": "broadcast_axes",
    "broadcast_maximum": "_npi_maximum",
    "broadcast_minimum": "_npi_minimum",
    "broadcast_sub": "_sparse_broadcast_minus broadcast_minus",
    "elemwise_add": "_Plus _add _plus",
    "elemwise_div": "_Div _div",
    "elemwise_mul": "_Mul _mul",
    "elemwise_sub": "_Minus _minus _sub",
    "max": "max_axis",
    "min": "min_axis",
    "pick": "choose_element_0index",
    "repeat": "_np_repeat",
    "reverse": "flip",
    "slice": "crop",
    "sum": "sum_axis",
}
