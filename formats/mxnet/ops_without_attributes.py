"""Operators without parameters in MXNet's code: it loads them with any attribute, and ignores it.

MXNet refuses an attribute it does not know of every other operator.
Written by testing/mxnet/make_registry.py.
"""

from __future__ import annotations

LENIENT = frozenset(
    """
    BlockGrad Flatten LinearRegressionOutput LogisticRegressionOutput MAERegressionOutput
    _CrossDeviceCopy _CustomFunction _NoGradient _contrib_box_encode _contrib_dgl_adjacency
    _contrib_div_sqrt_dim _contrib_edge_id _contrib_hawkesll _contrib_index_copy
    _contrib_quantized_flatten _contrib_round_ste _contrib_sign_ste _copy _copyto _equal _greater
    _greater_equal _hypot _identity_with_attr_like_rhs _image_flip_left_right
    _image_flip_top_bottom _image_random_flip_left_right _image_random_flip_top_bottom
    _image_to_tensor _imdecode _lesser _lesser_equal _linalg_det _linalg_gelqf _linalg_inverse
    _linalg_slogdet _linalg_sumlogdiag _linalg_syevd _logical_and _logical_or _logical_xor _maximum
    _minimum _mod _not_equal _np_copy _np_dot _npi_absolute _npi_add _npi_arccos _npi_arccosh
    _npi_arcsin _npi_arcsinh _npi_arctan _npi_arctan2 _npi_arctanh _npi_bitwise_and
    _npi_bitwise_not _npi_bitwise_or _npi_bitwise_xor _npi_boolean_mask_assign_scalar
    _npi_boolean_mask_assign_tensor _npi_cbrt _npi_ceil _npi_copysign _npi_cos _npi_cosh
    _npi_degrees _npi_diag_indices_from _npi_eig _npi_eigvals _npi_equal _npi_exp _npi_expm1
    _npi_fix _npi_floor _npi_greater _npi_greater_equal _npi_hypot _npi_isfinite _npi_isinf
    _npi_isnan _npi_isneginf _npi_isposinf _npi_lcm _npi_ldexp _npi_less _npi_less_equal _npi_log
    _npi_log10 _npi_log1p _npi_log2 _npi_logical_not _npi_matmul _npi_mod _npi_multiply
    _npi_negative _npi_not_equal _npi_polyval _npi_power _npi_radians _npi_reciprocal _npi_rint
    _npi_share_memory _npi_sign _npi_sin _npi_sinh _npi_solve _npi_sqrt _npi_square _npi_subtract
    _npi_svd _npi_tan _npi_tanh _npi_true_divide _npi_trunc _npi_where _npx_nonzero _npx_relu
    _npx_sigmoid _onehot_encode _power _scatter_elemwise_div _set_value _shuffle _sparse_retain abs
    arccos arccosh arcsin arcsinh arctan arctanh argmax_channel batch_take broadcast_add
    broadcast_div broadcast_equal broadcast_greater broadcast_greater_equal broadcast_hypot
    broadcast_lesser broadcast_lesser_equal broadcast_logical_and broadcast_logical_or
    broadcast_logical_xor broadcast_maximum broadcast_minimum broadcast_mod broadcast_mul
    broadcast_not_equal broadcast_power broadcast_sub cbrt ceil cos cosh degrees elemwise_add
    elemwise_div elemwise_mul elemwise_sub erf erfinv exp expm1 fill_element_0index fix floor gamma
    gammaln gather_nd log log10 log1p log2 logical_not make_loss negative ones_like radians rcbrt
    reciprocal relu rint round rsqrt shape_array sigmoid sign sin sinh size_array
    softmax_cross_entropy softsign sqrt square tan tanh trunc where zeros_like
    """.split()
)
