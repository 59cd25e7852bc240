"""A workflow file: its text, includes and parts, checked and built into nodes.

Promise: every problem of a file is reported at once, with its line.
"""
