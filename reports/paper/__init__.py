"""The paper's evaluation, redone: its figures and studies, with the optimum beside them, and its claims, judged.

``evaluation`` runs the methods, ``measures`` says what is known of each assignment, ``claims`` judges, ``maps`` and
``curves`` draw, ``page`` puts it together.
"""
