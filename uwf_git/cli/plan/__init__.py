"""`uwf plan`: the plans of a directory, one file per verb."""
