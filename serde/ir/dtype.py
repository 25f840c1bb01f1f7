"""Element types."""

from __future__ import annotations

import enum
import re
from functools import cached_property
from typing import Any

import numpy as np

from serde.errors import ConversionError

NAME = re.compile(r"[<>=|]?[A-Za-z?][A-Za-z_\d]{,31}", re.ASCII)  # NumPy parses others as Python


class DType(enum.Enum):
    """Element types, by numpy (or ml_dtypes) name.

    ``bits`` is the size of an element as stored in files, 0 for strings; ``kind`` is ``f`` float,
    ``i`` signed, ``u`` unsigned, ``b`` bool, ``c`` complex, ``S`` string.
    """

    FLOAT16 = "float16"
    FLOAT32 = "float32"
    FLOAT64 = "float64"
    BFLOAT16 = "bfloat16"
    INT2 = "int2"
    INT4 = "int4"
    INT8 = "int8"
    INT16 = "int16"
    INT32 = "int32"
    INT64 = "int64"
    UINT2 = "uint2"
    UINT4 = "uint4"
    UINT8 = "uint8"
    UINT16 = "uint16"
    UINT32 = "uint32"
    UINT64 = "uint64"
    BOOL = "bool"
    COMPLEX64 = "complex64"
    COMPLEX128 = "complex128"
    STRING = "object"
    FLOAT8E4M3FN = "float8_e4m3fn"
    FLOAT8E4M3FNUZ = "float8_e4m3fnuz"
    FLOAT8E5M2 = "float8_e5m2"
    FLOAT8E5M2FNUZ = "float8_e5m2fnuz"
    FLOAT8E8M0 = "float8_e8m0fnu"
    FLOAT4E2M1 = "float4_e2m1fn"

    __hash__ = object.__hash__  # members are singletons; Enum's own hash is slow

    def __init__(self, name: str) -> None:
        digits = re.search(r"\d+", name)
        self.bits = int(digits[0]) if digits else {"bool": 8}.get(name, 0)
        self.kind = {"bfloat16": "f", "object": "S"}.get(name, name[0])

    @classmethod
    def _missing_(cls, value: object) -> DType | None:
        return cls.STRING if value == "string" else None

    @property
    def title(self) -> str:
        """What users call it: ``string`` is an object in NumPy only."""
        return "string" if self is DType.STRING else self.value

    @cached_property
    def numpy(self) -> np.dtype[Any]:
        """The NumPy dtype; strings are object arrays, 2- and 4-bit types take a byte each."""
        try:
            return np.dtype(self.value)
        except TypeError:
            import ml_dtypes  # registers bfloat16, float8 and the narrow integers

            return np.dtype(getattr(ml_dtypes, self.value))  # type: ignore[no-any-return]

    @classmethod
    def of(cls, dtype: Any) -> DType:
        """The member for anything ``np.dtype`` accepts; byte order and string width are dropped."""
        if isinstance(dtype, DType):
            return dtype
        if isinstance(dtype, np.dtype) and (known := BY_DTYPE.get(dtype)) is not None:
            return known
        if isinstance(dtype, str) and not NAME.fullmatch(dtype):
            raise ConversionError(f"no element type is called {dtype[:80]!r}")
        try:
            np_dtype = np.dtype(dtype)
            return cls.STRING if np_dtype.kind in "USO" else cls(np_dtype.name)
        except (TypeError, ValueError):
            pass
        try:
            return cls(str(dtype))
        except ValueError:
            raise ConversionError(f"no element type is called {dtype!r}") from None


BYTES = frozenset((DType.INT8, DType.UINT8))
# By those of NumPy itself, which makes the name of a dtype anew each time that it is asked for.
BY_DTYPE = {np.dtype(d.value): d for d in DType if d.kind != "S" and d.value in np.sctypeDict}
