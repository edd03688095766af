"""The guard: every table of every notebook, made again without a model, is what it was.

``keep`` runs the notebooks on a finished run's caches, packs the replies, vectors and judgements
that they read into ``data/replies/``, runs them again on nothing but that, and writes down every
table. ``check`` runs them so once more and lists what differs. See ``python -m same --help``.
"""
