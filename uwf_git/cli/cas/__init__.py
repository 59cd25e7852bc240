"""`json-cas ...`: one file per verb; `json_cas.py` lists them."""
