"""PyTorch in a process of its own: a GPU that hangs is killed with it, and this program stays small."""

import importlib.util
import sys
from dataclasses import dataclass

from steward.adapters.process import Completed, run


@dataclass(frozen=True, slots=True)
class TorchDoor:
    """`python` "" is our own interpreter, if it has PyTorch; another one needs Steward's package in its path."""

    python: str = ""

    def is_there(self) -> bool:
        return bool(self.python) or importlib.util.find_spec("torch") is not None

    def run(self, *words: str, timeout_s: float) -> Completed:
        """Raises Failed."""
        argv = [self.python or sys.executable, "-m", "steward.deep.torch_child", *words]
        return run(argv, timeout_s=timeout_s, max_bytes=1 << 20)
