"""The gap study: how far methods are from what is proved, family by family."""
