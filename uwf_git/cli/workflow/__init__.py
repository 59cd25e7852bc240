"""`uwf workflow ...`; `uwf.py` lists them."""
