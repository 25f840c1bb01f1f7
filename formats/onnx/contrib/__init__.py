"""Operators that ONNX Runtime defines beside the standard's, read as operators of the IR.

Its optimizer and its quantizer write them: most in the domain ``com.microsoft``, a few in the
default one. What they compute follows the kernels of ONNX Runtime's CPU provider.
"""

from __future__ import annotations

from collections.abc import Mapping
from types import MappingProxyType

from serde.rewrite.families import import_families
from serde.rewrite.rules import RuleTable

from .default_domain import OPSETS, SYNONYMS
from .dequantized import reads_as_floats
from .table import DOMAIN, reads, reads_default

MACHINE = (
    "the layout of this operator's tensors is that of one processor: ONNX Runtime saved the model "
    "after its last optimizations. Save it again with graph_optimization_level = "
    "ORT_ENABLE_EXTENDED or lower"
)
TABLES: Mapping[str, RuleTable] = MappingProxyType({DOMAIN: reads, "": reads_default})
REFUSALS: Mapping[str, str] = MappingProxyType(
    {"com.microsoft.nchwc": MACHINE, "com.ms.internal.nhwc": MACHINE}
)

import_families(__name__, __path__)

# With operators that round as they run, for models that are to be of floats.
FLOAT_TABLES: Mapping[str, RuleTable] = MappingProxyType(
    {**TABLES, DOMAIN: reads.merge(reads_as_floats.rules)}
)

__all__ = [
    "DOMAIN",
    "FLOAT_TABLES",
    "OPSETS",
    "REFUSALS",
    "SYNONYMS",
    "TABLES",
    "reads",
    "reads_default",
]
