"""Branches of a thread: the commits that split it, begin its branches, and join them.

Promise: these commits are derived. They follow from the commits before them, byte for byte and
without a clock, a person or a signature, so two who make one make the same, and any reader can
make it again and compare. Nothing here moves a ref.
"""
