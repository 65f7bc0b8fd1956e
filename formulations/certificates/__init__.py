"""Certificates: files that prove how good an assignment is, and the verifier that shares nothing with the solvers."""
