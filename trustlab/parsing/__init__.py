"""What a model's reply says, by written rules, all in one place: what they do not read is refused,
and nothing is guessed.

``reply``: groups in square brackets, and the diagnosis among them. ``scores``: numbers in square
brackets, and True or False. ``medconf``: MedConf's JSON. ``agents``: what doctors, reviewers and
patients reply. ``chat``: the same as chat models write it, tried by every reader with
``reading="chat"`` (the default) on what it refuses in the form that was asked for; with "strict"
that form is all. Each file's head states its rules. These hold for every reply:

- Nothing is stripped or set aside first: reasoning between ``<think>`` tags, a quotation and an
  aside count as the reply.
- A reply that ran out of tokens is no answer, whatever stands in it: missing, neither right nor
  wrong. Every reader of a :class:`~trustlab.records.Reply` asks ``whole.no_answer`` first; those
  that take a text are given that of a whole reply.
- Of two answers none is chosen (save the diagnosis: the last counts).
- A number, a name, a criterion or a support level is returned only if the reply spells it out.
"""
