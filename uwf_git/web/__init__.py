"""HTML: what people open in a browser, made of the documents of `commands`.

Foreign text passes `entries.py` and nothing else: there it is escaped, and its
controls and marks of direction are spelled out. What is made here loads nothing and runs nothing.
"""
