"""The words of the command line, a module each; whatever is slow to import is imported inside ``run``."""
