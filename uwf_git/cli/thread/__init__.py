"""`uwf thread ...`; `uwf.py` lists them."""
