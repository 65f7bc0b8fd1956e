"""Generators and named families of instances."""
