"""`uwf agent ...`; `uwf.py` lists them."""
