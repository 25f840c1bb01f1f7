"""Operators of MXNet's registry that no rule reads, and the reason in the user's words."""

from __future__ import annotations

TRAINING = "a step of training: it changes weights, and no output of a model depends on it"
BY_REASON = {
    TRAINING: (
        "_adamw_update _mp_adamw_update _multi_adamw_update _multi_lamb_update "
        "_multi_mp_adamw_update _multi_mp_lamb_update _sparse_adagrad_update "
        "_contrib_group_adagrad_update adam_update ftml_update ftrl_update lamb_update_phase1 "
        "lamb_update_phase2 mp_lamb_update_phase1 mp_lamb_update_phase2 mp_nag_mom_update "
        "mp_sgd_mom_update mp_sgd_update multi_lars multi_mp_sgd_mom_update multi_mp_sgd_update "
        "multi_sgd_mom_update multi_sgd_update nag_mom_update "
        "preloaded_multi_mp_sgd_mom_update preloaded_multi_mp_sgd_update "
        "preloaded_multi_sgd_mom_update preloaded_multi_sgd_update rmsprop_update "
        "rmspropalex_update sgd_mom_update sgd_update signsgd_update signum_update reset_arrays "
        "_adabelief_update _mp_adabelief_update _multi_adabelief_update "
        "_multi_mp_adabelief_update _multi_lans_update _multi_mp_lans_update"
    ),
    "reads or decodes an image file: feed the model the pixels instead": (
        "_cvimdecode _cvimread _imdecode"
    ),
    "samples or cuts a graph held as a sparse matrix, which ONNX has not: do it before the model": (
        "_contrib_dgl_adjacency _contrib_dgl_csr_neighbor_non_uniform_sample "
        "_contrib_dgl_csr_neighbor_uniform_sample _contrib_dgl_graph_compact "
        "_contrib_dgl_subgraph _contrib_edge_id"
    ),
    "calls back into the program that built the model: the symbol does not hold what it computes": (
        "_CustomFunction _NDArray _Native _NoGradient"
    ),
    "made only while a model is run by several threads: no symbol holds it": "_CachedOpThreadSafe",
    "changes images at random, for training: leave it out of the model": (
        "_image_random_brightness _image_random_color_jitter _image_random_contrast "
        "_image_random_flip_left_right _image_random_flip_top_bottom _image_random_hue "
        "_image_random_lighting _image_random_saturation _image_random_crop "
        "_image_random_resized_crop"
    ),
    "draws until it has enough different numbers: how many, nothing tells beforehand": (
        "_sample_unique_zipfian"
    ),
    (
        "needs eigenvalues or singular values: ONNX has no operator that finds them, and no number "
        "of steps that is known beforehand does"
    ): (
        "_linalg_syevd _npi_eig _npi_eigh _npi_eigvals _npi_eigvalsh _npi_pinv "
        "_npi_pinv_scalar_rcond _npi_svd _npi_lstsq _npi_matrix_rank _npi_matrix_rank_none_tol"
    ),
    "makes the targets a detector is trained with: cut the model before it": (
        "_contrib_MultiBoxTarget"
    ),
    "takes sparse tensors only, which ONNX has not": "_contrib_getnnz _sparse_retain _square_sum",
    "made only while a model is bound to several devices: no symbol holds it": "_CrossDeviceCopy",
    "finds the thresholds of a quantised model, before there is one": (
        "_contrib_calibrate_entropy"
    ),
    (
        "is a custom operator; its code is not in the file. Give a rule for it (rules=), or keep "
        "it with --custom-domain"
    ): "Custom",
    "works on a tensor in place, imperatively: no symbol can hold it": (
        "_onehot_encode _scatter_set_nd _set_value fill_element_0index _npi_fill_diagonal"
    ),
    "MXNet 2.0 writes it without its attributes, and cannot load it: leave npx's loops out": (
        "_npx_cond _npx_foreach _npx_while_loop"
    ),
    (
        "is fused for oneDNN, in a layout of MXNet 2.0's own: convert the model as it was before "
        "it was optimized"
    ): "_sg_onednn_batch_dot _sg_onednn_selfatt_qk _sg_onednn_selfatt_valatt",
    "needs a QR factorization, for which ONNX has no operator": "_npi_qr",
    "needs the order of weights that intgemm chooses for a processor: convert the floats": (
        "_contrib_intgemm_fully_connected _contrib_intgemm_maxabsolute "
        "_contrib_intgemm_prepare_data _contrib_intgemm_prepare_weight "
        "_contrib_intgemm_take_weight"
    ),
    "MXNet 2.0 cannot run it as part of a symbol: shift by a tensor": (
        "_npi_bitwise_left_shift_scalar _npi_bitwise_right_shift_scalar"
    ),
    "draws random numbers of a distribution that no rule makes: feed the model the numbers": (
        "_npi_laplace _random_binomial _sample_binomial"
    ),
    "asks whether MXNet keeps two tensors in one place: no model's numbers depend on that": (
        "_npi_share_memory"
    ),
    (
        "MXNet 1.9.1 makes of it something else than an LSTM, or an error, as the processor is: "
        "convert the model as it was before it was quantised"
    ): "_contrib_quantized_rnn",
}
REFUSED = {op: reason for reason, ops in BY_REASON.items() for op in ops.split()}
