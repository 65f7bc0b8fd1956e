"""The best homes, with proof: models, bounds, certificates. Imports instances."""
