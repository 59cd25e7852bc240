"""`uwf workflow ...`: one file per verb; `uwf.py` lists them."""
