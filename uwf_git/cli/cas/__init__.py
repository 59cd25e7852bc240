"""`json-cas …`: one module a verb; `json_cas.py` has the table that names them."""
