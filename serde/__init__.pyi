"""The public names and where they are defined, for type checkers; a test compares them."""

from serde.api import check as check
from serde.api import convert as convert
from serde.api.composition import append_argmax as append_argmax
from serde.api.composition import append_nms as append_nms
from serde.api.composition import compose as compose
from serde.api.composition import rename as rename
from serde.api.composition import select as select
from serde.api.live_objects import export as export
from serde.api.live_objects import import_ as import_
from serde.api.report import Report as Report
from serde.backends.partition import partition as partition
from serde.backends.runner import run as run
from serde.errors import ConversionError as ConversionError
from serde.errors import InvalidGraph as InvalidGraph
from serde.errors import MalformedFile as MalformedFile
from serde.errors import MissingDependency as MissingDependency
from serde.errors import Problem as Problem
from serde.errors import SerdeError as SerdeError
from serde.errors import TargetRefused as TargetRefused
from serde.errors import Unconvertible as Unconvertible
from serde.errors import UnknownFormat as UnknownFormat
from serde.errors import UnsupportedAttribute as UnsupportedAttribute
from serde.errors import UnsupportedOp as UnsupportedOp
from serde.errors import UsageError as UsageError
from serde.frontends.control_flow import cond as cond
from serde.frontends.control_flow import scan as scan
from serde.frontends.control_flow import while_loop as while_loop
from serde.frontends.numpy import TraceError as TraceError
from serde.frontends.numpy import trace as trace
from serde.frontends.wrap import wrap as wrap
from serde.ir.graph import DType as DType
from serde.ir.graph import FileSlice as FileSlice
from serde.ir.graph import Graph as Graph
from serde.ir.graph import Node as Node
from serde.ir.graph import Source as Source
from serde.ir.graph import Tensor as Tensor
from serde.ir.graph import Value as Value
from serde.pipeline import load as load
from serde.pipeline import save as save
from serde.verification import verify as verify

__version__: str
