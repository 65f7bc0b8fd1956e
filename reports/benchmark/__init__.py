"""The solver benchmark: a page and a table that compare the runs of methods under equal limits."""
