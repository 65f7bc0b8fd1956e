"""What compiled code stands on: the compiler, random numbers, ragged arrays."""
