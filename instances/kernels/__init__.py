"""Foundations of compiled code: compilation, its cache, random numbers, ragged arrays, delays."""
