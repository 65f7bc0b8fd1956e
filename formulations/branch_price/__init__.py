"""Branch and price: columns are the contents of one server."""
