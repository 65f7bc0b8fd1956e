"""The paper's evaluation, repeated: its figures and studies with the optimum beside them, and a verdict on each claim.

``evaluation`` runs the methods, ``measures`` measures each assignment, ``claims`` tests the claims, ``maps`` and
``curves`` draw the plots, and ``page`` assembles the page.
"""
