"""Exact methods for timelines: the schedule of least cost, by enumeration and by a mixed-integer linear model."""
