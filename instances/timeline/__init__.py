"""Timelines: the same servers over time, with clients and topics that come, move and go."""
