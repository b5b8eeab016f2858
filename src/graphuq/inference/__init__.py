"""Floor 4: ways to explore a posterior, one file each."""

from graphuq.inference.base import Info, Kernel, State
from graphuq.inference.pcn import PCN

__all__ = ["PCN", "Info", "Kernel", "State"]
