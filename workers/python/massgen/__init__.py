"""A stand-in for MassGen: massgen.mcp_tools.hooks, for programs that were written for MassGen.

Add the folder that contains this one to PYTHONPATH. If MassGen itself is installed, Python imports that instead, regardless
of the order of sys.path. Processes that run hooks for the fabric do not need the folder: the worker sends them the same module.
"""

import importlib.machinery
import importlib.util
import os
import sys


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


_installed()
