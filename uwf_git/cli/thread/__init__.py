"""`uwf thread ...`: one file per verb; `uwf.py` lists them."""
