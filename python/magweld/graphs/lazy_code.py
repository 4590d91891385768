"""Owns graphs whose Python code is generated when they first run."""

from __future__ import annotations

from typing import Any

from torch.fx._lazy_graph_module import _LazyGraphModule


class LazyGraphModule(_LazyGraphModule):
    """A graph whose Python code is generated when it runs, or when somebody asks.

    To generate and compile it takes long, and a graph that no call runs through torch
    needs none.
    """

    def _lazy_forward(self, *args: Any, **kwargs: Any) -> Any:
        # Who holds this method calls it for good. It is not torch's, which calls the
        # module: hooks that all modules of the process have would run.
        cls = type(self)
        if cls.forward is cls._lazy_forward:
            self._real_recompile()
        return cls.forward(self, *args, **kwargs)

    forward = _lazy_forward
