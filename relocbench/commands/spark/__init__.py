"""``relocbench spark``: one module for each word behind it."""
