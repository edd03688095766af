"""trustlab: when may a medical language model's answer be trusted, and how sure is it really?

Research only. Not for clinical use.
"""

import lazy_loader

_public, __dir__, __all__ = lazy_loader.attach_stub(__name__, __file__)
__version__ = "0.2.0"


def __getattr__(name: str) -> object:
    """A public name, loaded when it is first asked for; ``AttributeError`` names the nearest."""
    if name in __all__:
        return _public(name)
    import difflib

    near = difflib.get_close_matches(name, __all__, n=1)
    hint = f"; did you mean {near[0]}?" if near else ""
    raise AttributeError(f"trustlab has no {name!r}{hint}", name=name)
