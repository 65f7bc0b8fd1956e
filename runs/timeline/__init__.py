"""Policies for timelines: when homes are computed again, how, and what that costs."""
