"""Operators that pass their input on, as it is or in another element type."""

from __future__ import annotations

from serde.decompositions.composites import emit_stop_gradient
from serde.errors import require
from serde.ir.graph import DType, Value
from serde.spec.schema import ELEMENT_TYPES
from serde.version_converter.adapters.normalization import inference_or_training

from ..rules import dtype_of, reads
from ..target import TYPES, legalizations, storage_type_name, writes

FLOATS = (DType.FLOAT16, DType.BFLOAT16, DType.FLOAT32, DType.FLOAT64)  # narrow to wide


@reads(
    "_copy", "_copyto", "_np_copy", "_npi_copy", "_contrib_gradientmultiplier",
    "MakeLoss", "make_loss",
    ignore=("scalar", "is_int", "grad_scale", "valid_thresh", "normalization"),
)  # fmt: skip
@reads("cast_storage", ignore=("stype",))  # sparse tensors are the dense ones they stand for
def read_copy(g, x):
    return x


@reads("BlockGrad")
def read_stop_gradient(g, x):
    return emit_stop_gradient(g, x)


@reads("Dropout", ignore=("axes", "cudnn_off"), only={"mode": ("training",)})
def read_dropout(g, x, *, p=0.5):
    return g.Dropout(x, g.const(p, DType.FLOAT32)) if g.for_training else x


@reads("IdentityAttachKLSparseReg", ignore=("sparseness_target", "penalty", "momentum"))
def read_regularized(g, x, average=None):
    return x


reads("_identity_with_attr_like_rhs")(lambda g, x, like: x)


@reads("Cast")
def read_cast(g, x, *, dtype: str):
    return g.cast(x, dtype_of(dtype))


@reads("amp_cast")
def read_amp_cast(g, x, *, dtype: str):
    """Only floats are cast."""
    return g.cast(x, dtype_of(dtype)) if x.type in FLOATS else x


@reads("amp_multicast", ignore=("num_outputs",))
def read_amp_multicast(g, *xs, cast_narrow=False):
    """All in the widest of their float types, or with ``cast_narrow`` the narrowest."""
    kinds = sorted((x.type for x in xs if x.type in FLOATS), key=FLOATS.index)
    if not kinds:
        return xs
    expected = kinds[0 if cast_narrow else -1]
    return tuple(g.cast(x, expected) if x.type in FLOATS else x for x in xs)


@writes("Cast", ignore=("saturate", "round_mode"))
def write_cast(s, x, *, to: int):
    dtype = ELEMENT_TYPES[to]
    if dtype is DType.BOOL:
        answer = s["_not_equal_scalar"](x, scalar=0.0)
        return answer if storage_type_name(x.type) == "float32" else s.Cast(answer, dtype="float32")
    require(dtype in TYPES, f"MXNet has no {dtype.value} tensors")
    return s.Cast(x, dtype=dtype.value)


@legalizations("Dropout")
def legalize_dropout(
    g, x: Value, ratio=None, mode=None, *, seed: int | None = None, outputs: int = 1
):
    results = inference_or_training(g, x, ratio, mode, seed)
    return results[:outputs]
