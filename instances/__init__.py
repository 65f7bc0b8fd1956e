"""The problem: data model, delay model, generators, families, files. Imports no other room."""
