"""Exact methods, lower bounds and certificates: optimal homes with a proof. Imports only instances."""
