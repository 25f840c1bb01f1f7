"""Rules from the IR to MXNet, by family; importing this package fills ``writes``."""

from . import elementwise, layers, moving, recurrent, reducing, sizes, table

__all__ = ["elementwise", "layers", "moving", "recurrent", "reducing", "sizes", "table"]
