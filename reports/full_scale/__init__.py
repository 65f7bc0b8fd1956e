"""The report of a study at full scale: its tables and its page."""
