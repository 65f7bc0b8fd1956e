"""The excess study: how far methods are above the proven optimum or the certified bound, family by family."""
