"""The problem: data model, evaluators, generators, families, files and library. Imports no other part of relocbench."""
