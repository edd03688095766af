"""trustlab: when may a medical language model's answer be trusted, and how sure is it really?

Research only. Not for clinical use.
"""

import lazy_loader

__getattr__, __dir__, __all__ = lazy_loader.attach_stub(__name__, __file__)
__version__ = "0.2.0"
