"""The subcommands of ``relocbench spark``, one module for each."""
