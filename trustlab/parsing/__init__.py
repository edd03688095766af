"""Reads replies by written rules; what they do not read is refused.

Each file's head states its rules. Every reader with ``reading="chat"`` (the default) tries ``chat``
on what it refuses in the form that was asked for; with "strict" that form is all. For every reply:

- Nothing is set aside first: a quotation and an aside count as the reply.
- A reply that ran out of tokens is no answer: missing, neither right nor wrong. Readers of a
  :class:`~trustlab.records.Reply` ask ``no_answer`` first; the others are given whole texts.
- Of two answers none is chosen (save the diagnosis: the last counts).
"""
