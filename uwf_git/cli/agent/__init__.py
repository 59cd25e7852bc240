"""`uwf agent ...`: one file per verb; `uwf.py` lists them."""
