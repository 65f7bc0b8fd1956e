"""A good home for every client, fast. Imports instances."""
