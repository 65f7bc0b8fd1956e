"""The subcommands, one module each. What is slow to import is imported inside ``run``."""
