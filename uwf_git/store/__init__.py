"""The store: the only place that knows git. FORMAT.md beside this file is its contract.

Objects are written first, then the ref moves by compare-and-swap. Everything below
`<git dir>/uwf/` can be deleted while nothing runs.
"""
