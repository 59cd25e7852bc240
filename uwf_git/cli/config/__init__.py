"""`uwf config ...`: one file per verb; `uwf.py` lists them."""
