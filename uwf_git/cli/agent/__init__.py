"""`uwf agent …`: one module a verb; `uwf.py` has the table that names them."""
