"""What releases of MXNet lack of 1.9's: forward operators by the names they are saved under,
attributes, and the values that attributes of a choice take (``double``: numbers of 64 bits).

Written by testing/mxnet/make_releases.py from the registries of:
1.2.1.post1, 1.3.1, 1.4.1, 1.5.1, 1.6.0, 1.7.0.post2, 1.8.0.post0, 1.9.1, 2.0.0b1.
"""

from __future__ import annotations

# What came with a release.
BROUGHT = {
    "1.3": (
        "Embedding.sparse_grad LeakyReLU.act_type=selu Pooling.count_include_pad "
        "Pooling.p_value Pooling.pool_type=lp RNN.lstm_state_clip_max RNN.lstm_state_clip_min "
        "RNN.lstm_state_clip_nan RNN.projection_size _cond _contrib_ROIAlign "
        "_contrib_SparseEmbedding.sparse_grad _contrib_SyncBatchNorm "
        "_contrib_box_nms.valid_thresh _contrib_div_sqrt_dim "
        "_contrib_quantized_pooling.count_include_pad _contrib_quantized_pooling.p_value "
        "_contrib_quantized_pooling.pool_type=lp _foreach _histogram _linalg_gemm.axis "
        "_linalg_gemm2.axis _logical_and _logical_and_scalar _logical_or _logical_or_scalar "
        "_logical_xor _logical_xor_scalar _random_exponential_like _random_gamma_like "
        "_random_generalized_negative_binomial_like _random_negative_binomial_like "
        "_random_normal_like _random_poisson_like _random_uniform_like _ravel_multi_index "
        "_rnn_param_concat _sample_multinomial.dtype=float16 _sample_multinomial.dtype=float32 "
        "_sample_multinomial.dtype=float64 _sample_multinomial.dtype=uint8 "
        "_sample_unique_zipfian _unravel_index _while_loop adam_update.lazy_update "
        "argsort.dtype batch_dot.forward_stype broadcast_like broadcast_logical_and "
        "broadcast_logical_or broadcast_logical_xor depth_to_space diag dot.forward_stype "
        "ftml_update.clip_grad ftml_update.epsilon=double ftml_update.t hard_sigmoid "
        "log_softmax.temperature logical_not mp_sgd_mom_update.lazy_update "
        "mp_sgd_update.lazy_update pick.mode sgd_mom_update.lazy_update sgd_update.lazy_update "
        "shape_array size_array softmax.temperature space_to_depth topk.dtype"
    ),
    "1.4": (
        "BilinearSampler.cudnn_off CTCLoss Pooling.pooling_convention=same "
        "SpatialTransformer.cudnn_off _arange.infer_range _contrib_boolean_mask "
        "_contrib_dgl_adjacency _contrib_dgl_subgraph _contrib_edge_id _contrib_getnnz "
        "_contrib_group_adagrad_update _contrib_index_copy _contrib_quantized_concat "
        "_contrib_quantized_pooling.pooling_convention=same _linalg_trmm.lower "
        "_linalg_trsm.lower _random_randint _slice_assign_scalar.scalar=double "
        "_zeros_without_dtype broadcast_like.lhs_axes broadcast_like.rhs_axes diag.axis1 "
        "diag.axis2 erf softmin"
    ),
    "1.5": (
        "Dropout.cudnn_off LeakyReLU.act_type=gelu Pooling.layout RNN.use_sequence_length "
        "_adamw_update _contrib_BilinearResize2D.mode _contrib_BilinearResize2D.scale_height "
        "_contrib_BilinearResize2D.scale_width _contrib_ROIAlign.position_sensitive "
        "_contrib_box_nms.background_id _contrib_dgl_csr_neighbor_non_uniform_sample "
        "_contrib_dgl_csr_neighbor_uniform_sample _contrib_dgl_graph_compact "
        "_contrib_gradientmultiplier _contrib_hawkesll _contrib_index_array "
        "_contrib_quantize_v2 _contrib_quantized_act _contrib_quantized_elemwise_add "
        "_contrib_quantized_pooling.layout _contrib_requantize.out_type _image_crop "
        "_image_resize _linalg_extractdiag _linalg_extracttrian _linalg_inverse "
        "_linalg_makediag _linalg_maketrian _linspace _mp_adamw_update _split_v2 all_finite "
        "amp_cast amp_multicast erfinv log_softmax.dtype moments mp_nag_mom_update "
        "multi_all_finite multi_mp_sgd_mom_update multi_mp_sgd_update multi_sgd_mom_update "
        "multi_sgd_update nag_mom_update norm.out_dtype softmax.dtype softmin.dtype"
    ),
    "1.6": (
        "BatchNorm.max_calib_range BatchNorm.min_calib_range Cast.dtype=bool GroupNorm "
        "_contrib_RROIAlign _contrib_allclose _contrib_arange_like _contrib_box_decode "
        "_contrib_box_encode _contrib_calibrate_entropy _contrib_interleaved_matmul_encdec_qk "
        "_contrib_interleaved_matmul_encdec_valatt _contrib_interleaved_matmul_selfatt_qk "
        "_contrib_interleaved_matmul_selfatt_valatt _contrib_quantized_batch_norm "
        "_contrib_round_ste _contrib_sign_ste _linalg_det _linalg_slogdet _multi_adamw_update "
        "_multi_mp_adamw_update _np_copy _np_cumsum _np_dot _np_max _np_min _np_moveaxis "
        "_np_prod _np_reshape _np_roll _np_squeeze _np_sum _np_trace _np_transpose "
        "_npi_absolute _npi_add _npi_add_scalar _npi_arange _npi_arccos _npi_arccosh "
        "_npi_arcsin _npi_arcsinh _npi_arctan _npi_arctan2 _npi_arctan2_scalar _npi_arctanh "
        "_npi_argmax _npi_argmin _npi_around _npi_bitwise_xor _npi_bitwise_xor_scalar "
        "_npi_blackman _npi_boolean_mask_assign_scalar _npi_boolean_mask_assign_tensor "
        "_npi_cbrt _npi_ceil _npi_choice _npi_column_stack _npi_concatenate _npi_copysign "
        "_npi_copysign_scalar _npi_cos _npi_cosh _npi_degrees _npi_diff _npi_dstack _npi_einsum "
        "_npi_equal _npi_equal_scalar _npi_exp _npi_expm1 _npi_eye _npi_fix _npi_flip "
        "_npi_floor _npi_greater _npi_greater_equal _npi_greater_equal_scalar "
        "_npi_greater_scalar _npi_hamming _npi_hanning _npi_hsplit _npi_hypot _npi_identity "
        "_npi_indices _npi_lcm _npi_lcm_scalar _npi_ldexp _npi_ldexp_scalar _npi_less "
        "_npi_less_equal _npi_less_equal_scalar _npi_less_scalar _npi_log _npi_log10 _npi_log1p "
        "_npi_log2 _npi_logical_not _npi_logspace _npi_mean _npi_mod _npi_mod_scalar "
        "_npi_multinomial _npi_multiply _npi_multiply_scalar _npi_negative _npi_normal "
        "_npi_not_equal _npi_not_equal_scalar _npi_ones _npi_power _npi_power_scalar "
        "_npi_radians _npi_rarctan2_scalar _npi_rcopysign_scalar _npi_reciprocal _npi_rint "
        "_npi_rldexp_scalar _npi_rmod_scalar _npi_rot90 _npi_rpower_scalar "
        "_npi_rsubtract_scalar _npi_rtrue_divide_scalar _npi_share_memory _npi_sign _npi_sin "
        "_npi_sinh _npi_sqrt _npi_square _npi_stack _npi_std _npi_subtract _npi_subtract_scalar "
        "_npi_svd _npi_tan _npi_tanh _npi_tensordot _npi_tensordot_int_axes _npi_tril "
        "_npi_true_divide _npi_true_divide_scalar _npi_trunc _npi_uniform _npi_unique _npi_var "
        "_npi_vstack _npi_zeros _npx_nonzero _npx_relu _npx_reshape _npx_sigmoid "
        "_ones.dtype=bool _random_pdf_dirichlet _random_pdf_exponential _random_pdf_gamma "
        "_random_pdf_generalized_negative_binomial _random_pdf_negative_binomial "
        "_random_pdf_normal _random_pdf_poisson _random_pdf_uniform _zeros.dtype=bool "
        "amp_multicast.cast_narrow argsort.dtype=int64 lamb_update_phase1 lamb_update_phase2 "
        "log_softmax.use_length mp_lamb_update_phase1 mp_lamb_update_phase2 multi_lars "
        "multi_sum_sq preloaded_multi_mp_sgd_mom_update preloaded_multi_mp_sgd_update "
        "preloaded_multi_sgd_mom_update preloaded_multi_sgd_update reset_arrays "
        "reshape_like.lhs_begin reshape_like.lhs_end reshape_like.rhs_begin "
        "reshape_like.rhs_end softmax.use_length softmin.use_length topk.dtype=int64"
    ),
    "1.7": (
        "Cast.dtype=bfloat16 Embedding.dtype=bfloat16 _CachedOpThreadSafe "
        "_arange.dtype=bfloat16 _contrib_BilinearResize2D.align_corners "
        "_contrib_ModulatedDeformableConvolution _contrib_ROIAlign.aligned "
        "_contrib_SparseEmbedding.dtype=bfloat16 _contrib_gradientmultiplier.is_int "
        "_contrib_gradientmultiplier.scalar=double "
        "_contrib_quantized_elemwise_add.max_calib_range "
        "_contrib_quantized_elemwise_add.min_calib_range _contrib_quantized_elemwise_mul "
        "_contrib_quantized_embedding _div_scalar.is_int _div_scalar.scalar=double "
        "_equal_scalar.is_int _equal_scalar.scalar=double _full.dtype=bfloat16 _full.dtype=bool "
        "_greater_equal_scalar.is_int _greater_equal_scalar.scalar=double "
        "_greater_scalar.is_int _greater_scalar.scalar=double _hypot_scalar.is_int "
        "_hypot_scalar.scalar=double _lesser_equal_scalar.is_int "
        "_lesser_equal_scalar.scalar=double _lesser_scalar.is_int _lesser_scalar.scalar=double "
        "_linspace.dtype=bfloat16 _logical_and_scalar.is_int _logical_and_scalar.scalar=double "
        "_logical_or_scalar.is_int _logical_or_scalar.scalar=double _logical_xor_scalar.is_int "
        "_logical_xor_scalar.scalar=double _maximum_scalar.is_int _maximum_scalar.scalar=double "
        "_minimum_scalar.is_int _minimum_scalar.scalar=double _minus_scalar.is_int "
        "_minus_scalar.scalar=double _mod_scalar.is_int _mod_scalar.scalar=double "
        "_mul_scalar.is_int _mul_scalar.scalar=double _multi_lamb_update _multi_mp_lamb_update "
        "_not_equal_scalar.is_int _not_equal_scalar.scalar=double _np_all _np_any "
        "_np_atleast_1d _np_atleast_2d _np_atleast_3d _np_diag _np_diagflat _np_diagonal "
        "_npi_add_scalar.is_int _npi_add_scalar.scalar=double _npi_arange.dtype=bfloat16 "
        "_npi_arctan2_scalar.is_int _npi_arctan2_scalar.scalar=double _npi_average "
        "_npi_bernoulli _npi_bincount _npi_bitwise_and _npi_bitwise_and_scalar _npi_bitwise_not "
        "_npi_bitwise_or _npi_bitwise_or_scalar _npi_bitwise_xor_scalar.is_int "
        "_npi_bitwise_xor_scalar.scalar=double _npi_blackman.dtype=bfloat16 "
        "_npi_boolean_mask_assign_scalar.start_axis _npi_boolean_mask_assign_tensor.start_axis "
        "_npi_broadcast_to _npi_cholesky _npi_copysign_scalar.is_int "
        "_npi_copysign_scalar.scalar=double _npi_delete _npi_diag_indices_from _npi_dsplit "
        "_npi_ediff1d _npi_eig _npi_eigh _npi_eigvals _npi_eigvalsh _npi_equal_scalar.is_int "
        "_npi_equal_scalar.scalar=double _npi_exponential _npi_eye.dtype=bfloat16 "
        "_npi_full_like _npi_gamma _npi_greater_equal_scalar.is_int "
        "_npi_greater_equal_scalar.scalar=double _npi_greater_scalar.is_int "
        "_npi_greater_scalar.scalar=double _npi_gumbel _npi_hamming.dtype=bfloat16 "
        "_npi_hanning.dtype=bfloat16 _npi_hstack _npi_identity.dtype=bfloat16 "
        "_npi_indices.dtype=bfloat16 _npi_insert_scalar _npi_insert_slice _npi_insert_tensor "
        "_npi_isfinite _npi_isinf _npi_isnan _npi_isneginf _npi_isposinf _npi_lcm_scalar.is_int "
        "_npi_lcm_scalar.scalar=double _npi_ldexp_scalar.is_int _npi_ldexp_scalar.scalar=double "
        "_npi_less_equal_scalar.is_int _npi_less_equal_scalar.scalar=double "
        "_npi_less_scalar.is_int _npi_less_scalar.scalar=double _npi_logistic "
        "_npi_logspace.dtype=bfloat16 _npi_matmul _npi_mod_scalar.is_int "
        "_npi_mod_scalar.scalar=double _npi_multiply_scalar.is_int "
        "_npi_multiply_scalar.scalar=double _npi_nan_to_num _npi_norm _npi_normal_n "
        "_npi_not_equal_scalar.is_int _npi_not_equal_scalar.scalar=double "
        "_npi_ones.dtype=bfloat16 _npi_pad _npi_pareto _npi_percentile _npi_pinv "
        "_npi_pinv_scalar_rcond _npi_polyval _npi_power_scalar.is_int "
        "_npi_power_scalar.scalar=double _npi_powerd _npi_rarctan2_scalar.is_int "
        "_npi_rarctan2_scalar.scalar=double _npi_rayleigh _npi_rcopysign_scalar.is_int "
        "_npi_rcopysign_scalar.scalar=double _npi_rldexp_scalar.is_int "
        "_npi_rldexp_scalar.scalar=double _npi_rmod_scalar.is_int "
        "_npi_rmod_scalar.scalar=double _npi_rpower_scalar.is_int "
        "_npi_rpower_scalar.scalar=double _npi_rsubtract_scalar.is_int "
        "_npi_rsubtract_scalar.scalar=double _npi_rtrue_divide_scalar.is_int "
        "_npi_rtrue_divide_scalar.scalar=double _npi_solve _npi_subtract_scalar.is_int "
        "_npi_subtract_scalar.scalar=double _npi_tensorinv _npi_tensorsolve "
        "_npi_true_divide_scalar.is_int _npi_true_divide_scalar.scalar=double _npi_uniform_n "
        "_npi_weibull _npi_where _npi_where_lscalar _npi_where_rscalar _npi_where_scalar2 "
        "_npi_zeros.dtype=bfloat16 _npx_constraint_check _ones.dtype=bfloat16 "
        "_plus_scalar.is_int _plus_scalar.scalar=double _power_scalar.is_int "
        "_power_scalar.scalar=double _rdiv_scalar.is_int _rdiv_scalar.scalar=double "
        "_rminus_scalar.is_int _rminus_scalar.scalar=double _rmod_scalar.is_int "
        "_rmod_scalar.scalar=double _rpower_scalar.is_int _rpower_scalar.scalar=double "
        "_scatter_minus_scalar.is_int _scatter_minus_scalar.scalar=double "
        "_scatter_plus_scalar.is_int _scatter_plus_scalar.scalar=double _sg_mkldnn_conv "
        "_sg_mkldnn_fully_connected _zeros.dtype=bfloat16 amp_cast.dtype=bfloat16 col2im im2col "
        "one_hot.dtype=bfloat16"
    ),
    "1.8": ("_contrib_BatchNormWithReLU"),
    "1.9": (
        "_contrib_quantize_asym _contrib_quantized_rnn _sg_mkldnn_selfatt_qk "
        "_sg_mkldnn_selfatt_valatt"
    ),
}
# What MXNet 2.0 has no more.
REMOVED = (
    "BatchNorm_v1 Convolution_v1 Pooling_v1 _contrib_SparseEmbedding _contrib_ifft "
    "_contrib_quantize_asym _contrib_quantized_rnn _npi_pad.constant_value "
    "_sample_multinomial.get_prob _scatter_elemwise_div _scatter_minus_scalar "
    "_scatter_plus_scalar rmsprop_update.gamma1 rmspropalex_update.gamma1 "
    "rmspropalex_update.gamma2"
)
# What MXNet 2.0 calls otherwise.
RENAMED = {
    "_contrib_DeformableConvolution": "_npx_deformable_convolution",
    "_contrib_ModulatedDeformableConvolution": "_npx_modulated_deformable_convolution",
    "_np_all": "_npi_all",
    "_np_any": "_npi_any",
    "_np_atleast_1d": "_npi_atleast_1d",
    "_np_atleast_2d": "_npi_atleast_2d",
    "_np_atleast_3d": "_npi_atleast_3d",
    "_np_copy": "_npi_copy",
    "_np_cumsum": "_npi_cumsum",
    "_np_diag": "_npi_diag",
    "_np_diagflat": "_npi_diagflat",
    "_np_diagonal": "_npi_diagonal",
    "_np_dot": "_npi_dot",
    "_np_max": "_npi_max",
    "_np_min": "_npi_min",
    "_np_moveaxis": "_npi_moveaxis",
    "_np_prod": "_npi_prod",
    "_np_roll": "_npi_roll",
    "_np_squeeze": "_npi_squeeze",
    "_np_sum": "_npi_sum",
    "_np_trace": "_npi_trace",
    "_np_transpose": "_npi_transpose",
}
