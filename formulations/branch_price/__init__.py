"""Branch and price: a column is the set of clients whose home is one server."""
