"""`json-cas ...`; `json_cas.py` lists them."""
