"""Commands: one file per verb; each loads, decides, acts and records."""
