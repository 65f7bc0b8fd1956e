"""The solver benchmark: what runs of methods under equal limits say of each other, as a page and a table."""
