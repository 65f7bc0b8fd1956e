"""Certificates: files that prove a lower bound, and a verifier that shares no code with the solvers."""
