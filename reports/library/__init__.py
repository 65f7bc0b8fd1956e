"""The page of the library: what is known about every entry, and how a better result is handed in."""
