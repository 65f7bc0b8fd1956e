"""Generators of instances and the named families that use them."""
