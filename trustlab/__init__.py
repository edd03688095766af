"""trustlab asks when a medical language model's answer may be trusted.

Research only. Not for clinical use.
"""

import ast
import importlib
from pathlib import Path

_STUB = ast.parse(Path(__file__).with_suffix(".pyi").read_text(encoding="utf-8"))
_IMPORTS = [node for node in _STUB.body if isinstance(node, ast.ImportFrom)]
_HOMES = {one.name: node.module or one.name for node in _IMPORTS for one in node.names}
__version__, __all__ = "0.2.0", list(_HOMES)


def __dir__() -> list[str]:
    return __all__


def __getattr__(name: str) -> object:
    """A public name, loaded when it is first asked for; ``AttributeError`` names the nearest."""
    if name in _HOMES:
        module = importlib.import_module(f"{__name__}.{_HOMES[name]}")
        return module if _HOMES[name] == name else getattr(module, name)
    import difflib

    near = difflib.get_close_matches(name, __all__, n=1)
    hint = f"; did you mean {near[0]}?" if near else ""
    raise AttributeError(f"trustlab has no {name!r}{hint}", name=name)
