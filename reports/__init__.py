"""Reports: the excess study, the solver benchmark, the paper's evaluation, the gate and the maps.

This room imports every other room except the command.
"""
