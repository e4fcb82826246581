"""A stand-in for Obelix, for agents that were written for it. It has the names of Obelix's guide to hooks, with the same meaning.

hookfabric.Agent runs such an agent, so that hooks of the fabric run beside its own. BaseAgent(provider=...) accepts the same
models as hookfabric.Agent(model=...).

Copy this folder beside hookfabric.py, or add the folder that contains it to PYTHONPATH. If Obelix itself is installed, Python
imports that instead, regardless of the order of sys.path.
"""

import importlib.machinery
import importlib.util
import os
import sys
from typing import NoReturn


def _installed() -> None:
    """Replace this package by the real one, if another folder of sys.path has it.

    The stand-ins for massgen and obelix both have this function, because each folder works alone. A test compares the two.
    """
    here = os.path.dirname(os.path.dirname(os.path.abspath(__file__)))
    spec = importlib.machinery.PathFinder.find_spec(__name__, [p for p in sys.path if os.path.realpath(p) != os.path.realpath(here)])
    if spec is None or spec.loader is None:
        return
    module = importlib.util.module_from_spec(spec)
    sys.modules[__name__] = module
    spec.loader.exec_module(module)


def __getattr__(name: str) -> NoReturn:
    raise AttributeError(f"the stand-in for obelix that comes with hookfabric has no {name!r}; install Obelix to use it")


_installed()
