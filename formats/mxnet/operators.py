"""One record of each operator: what is true of it in MXNet, beside what its rule makes of it."""

from __future__ import annotations

from collections.abc import Mapping
from types import MappingProxyType
from typing import NamedTuple

from serde.ir.geometry import Ints
from serde.ir.graph import Shape

NONE, FIRST, ALL, BEHIND = slice(0), slice(1), slice(None), slice(1, None)
PASSES = "passes its operand on"


class Operator(NamedTuple):
    """Places are those of operands. Names of outputs are tested in tests/mxnet/test_op_names.py."""

    shaped: slice = NONE  # operands that have the shape of the first result
    typed: slice = NONE  # operands that have the element type of the first result
    names_type: bool = False  # the attribute ``dtype`` names the type of the result
    parameters: Ints = ()  # where one is bound to no array, it is missing, not an input
    states: Mapping[int, str] = MappingProxyType({})  # statistics that training moves: names
    channels: int | None = None  # the usual axis of data that each parameter is as long as
    has_float32_parameters: bool = False  # where the data are of fewer bits, too
    labels: Ints = ()
    unread: Ints = ()  # read only to train
    inference: str = ""  # what becomes of an operator that only trains
    is_loss: bool = False
    is_copy: bool = False  # through which a label, or a loss, is shown as an output for metrics
    is_fed: bool = False  # all operands are computed, or fed: none is usually a weight
    operands: tuple[Shape, ...] = ()  # shapes of the first, where it takes no others
    usual_rank: int | None = None  # of operands
    suppressed: Ints = ()  # boxes and scores that a suppression chooses from
    outputs: tuple[str, ...] = ()  # that bear names of their own
    is_numbered: bool = False  # outputs are, even where a symbol reads only the first


IMAGE, BOXES, CUBE = (None,) * 4, (None, 5), (None,) * 3
PROPOSAL = Operator(operands=(IMAGE, IMAGE, (None, 3)), is_fed=True, outputs=("output", "score"))
KEEPS, KEEPS_TYPE = Operator(FIRST, FIRST), Operator(typed=FIRST)
UNLABELLED = KEEPS._replace(labels=(1,), unread=(1,), inference=f"{PASSES}, without the label")
SOFTMAX = UNLABELLED._replace(inference="becomes the softmax of its operand, without the label")
SIGMOID = UNLABELLED._replace(inference="becomes the sigmoid of its operand, without the label")
BATCH_NORM = KEEPS._replace(
    parameters=(1, 2, 3, 4), states={3: "moving_mean", 4: "moving_var"}, channels=1,
    has_float32_parameters=True, outputs=("output", "mean", "var"),
)  # fmt: skip
MOVES, JOINS = Operator(typed=FIRST, is_copy=True), Operator(typed=ALL)
TARGETS = Operator(labels=(1,), outputs=("loc_target", "loc_mask", "cls_target"))
WITHOUT_PENALTY = KEEPS._replace(
    states={1: "moving_avg"}, unread=(1,), inference=f"{PASSES}, without the penalty"
)
# Whose operands and result all have one shape.
ALIKE = (
    "elemwise_add elemwise_sub elemwise_mul elemwise_div add_n _grad_add _maximum _minimum _power "
    "_mod _hypot _equal _not_equal _greater _greater_equal _lesser _lesser_equal"
)
BY_NAMES = {
    "Activation L2Normalization SoftmaxActivation _contrib_div_sqrt_dim abs arccos arccosh arcsin "
    "arcsinh arctan arctanh cbrt ceil clip cos cosh degrees erf erfinv exp expm1 fix floor gamma "
    "gammaln hard_sigmoid log log10 log1p log2 log_softmax logical_not negative ones_like radians "
    "rcbrt reciprocal relu reverse rint round rsqrt sigmoid sign sin sinh smooth_l1 softmax "
    "softmin softsign sqrt square tan tanh trunc zeros_like": KEEPS,
    ALIKE: Operator(ALL, ALL),
    "Pooling Pooling_v1 repeat slice_like Pad": KEEPS_TYPE,
    "Flatten Reshape SwapAxis expand_dims slice slice_axis squeeze transpose": MOVES,
    "Cast amp_cast": Operator(FIRST, names_type=True, is_copy=True),
    "BatchNorm BatchNorm_v1 CuDNNBatchNorm": BATCH_NORM,
    "_contrib_BatchNormWithReLU _contrib_SyncBatchNorm": KEEPS._replace(channels=1),
    "Convolution Convolution_v1 Deconvolution FullyConnected": JOINS._replace(parameters=(1, 2)),
    "LinearRegressionOutput MAERegressionOutput SVMOutput": UNLABELLED,
    "SoftmaxOutput WarpCTC": SOFTMAX,
    "SequenceMask SequenceReverse": KEEPS._replace(is_fed=True),
    "Correlation GridGenerator SequenceLast SpatialTransformer": Operator(is_fed=True),
    "ROIPooling _contrib_PSROIPooling _contrib_ROIAlign": Operator(
        operands=(IMAGE, BOXES), is_fed=True
    ),
    "_contrib_MultiProposal _contrib_Proposal": PROPOSAL,
    "_contrib_interleaved_matmul_encdec_qk _contrib_interleaved_matmul_encdec_valatt "
    "_contrib_interleaved_matmul_selfatt_valatt": Operator(operands=(CUBE, CUBE)),
    "_npi_concatenate _npi_dstack _npi_hstack _npi_matmul": Operator(outputs=("out",)),
    "_contrib_quantize _contrib_quantize_v2 _contrib_requantize": Operator(FIRST, is_numbered=True),
    "sort moments _histogram _contrib_box_encode _contrib_bipartite_matching "
    "_contrib_dgl_csr_neighbor_uniform_sample "
    "_contrib_dgl_csr_neighbor_non_uniform_sample _linalg_det _linalg_slogdet _linalg_gelqf "
    "_linalg_syevd _npi_average _npi_eig _npi_eigh _npi_exponential _npi_gumbel _npi_logistic "
    "_npi_norm _npi_normal _npi_normal_n _npi_pareto _npi_rayleigh _npi_svd "
    "_npi_weibull": Operator(is_numbered=True),
    "BilinearSampler": Operator(operands=(IMAGE, IMAGE), is_fed=True),
    "BlockGrad": KEEPS._replace(inference=PASSES, is_copy=True),
    "CTCLoss": Operator(labels=(1, 2, 3), is_loss=True, is_numbered=True),
    "Concat": JOINS._replace(is_copy=True),
    "Crop": KEEPS_TYPE._replace(is_fed=True),
    "Dropout": KEEPS._replace(inference=PASSES),
    "Embedding": Operator(names_type=True, parameters=(1,)),
    "GroupNorm": KEEPS._replace(parameters=(1, 2), outputs=("output", "mean", "std")),
    "IdentityAttachKLSparseReg": WITHOUT_PENALTY,
    "InstanceNorm": KEEPS._replace(parameters=(1, 2), channels=1),
    "LRN": KEEPS._replace(operands=(IMAGE,)),
    "LayerNorm": KEEPS._replace(parameters=(1, 2), channels=-1, outputs=("output", "mean", "std")),
    "LeakyReLU": KEEPS._replace(parameters=(1,)),
    "LogisticRegressionOutput": SIGMOID,
    "MakeLoss": KEEPS._replace(inference=PASSES, is_loss=True, is_copy=True),
    "RNN": JOINS._replace(parameters=(1,), outputs=("output", "state_output", "statecell_output")),
    "SliceChannel": MOVES._replace(is_numbered=True),
    "UpSampling": KEEPS_TYPE._replace(operands=(IMAGE,)),
    "_contrib_MultiBoxDetection": Operator(suppressed=(0, 1, 2)),
    "_contrib_MultiBoxTarget": TARGETS,
    "_contrib_box_nms": Operator(suppressed=(0,), is_numbered=True),
    "_contrib_dequantize": Operator(FIRST),
    "_contrib_quantized_act": Operator(FIRST, outputs=("output", "min_output", "max_output")),
    "_contrib_calibrate_entropy": Operator(outputs=("threshold", "divergence")),
    "_contrib_gradientmultiplier": Operator(inference=PASSES),
    "_contrib_hawkesll": Operator(outputs=("output", "out_state")),
    "_contrib_interleaved_matmul_selfatt_qk": Operator(operands=(CUBE,)),
    "_contrib_mrcnn_mask_target": Operator(labels=(1, 2, 3)),
    "_contrib_quantize_asym": Operator(outputs=("output", "scale", "shift")),
    "_copy": KEEPS._replace(is_copy=True),
    "_linalg_gemm2": Operator(usual_rank=3),
    "_npi_std": Operator(outputs=("std", "mean", "var")),
    "_npi_var": Operator(outputs=("var", "mean")),
    "batch_dot": JOINS._replace(usual_rank=3),
    "dot": JOINS._replace(usual_rank=2),
    "make_loss": KEEPS._replace(inference=PASSES, is_loss=True, outputs=("loss",)),
    "one_hot": Operator(is_copy=True),
    "softmax_cross_entropy": Operator(labels=(1,), is_loss=True, usual_rank=2),
    "stack": JOINS,
    "where": Operator(BEHIND, BEHIND),
}
# The records of families, by the beginning of their names.
FAMILIES = {
    "broadcast_": JOINS,
    "_contrib_quantized_": Operator(outputs=("output", "min_output", "max_output")),
    "_sg_mkldnn_": Operator(outputs=("output", "output_min", "output_max")),
}


class Records(dict[str, Operator]):
    """The record of each operator; that of one which is not listed says nothing."""

    def __missing__(self, op: str) -> Operator:
        if op.endswith("_scalar"):
            return KEEPS
        return next((r for stem, r in FAMILIES.items() if op.startswith(stem)), Operator())


OPERATORS = Records({op: record for names, record in BY_NAMES.items() for op in names.split()})
describe = OPERATORS.__getitem__
