"""`uwf remote ...`: one file per verb; `uwf.py` lists them."""
