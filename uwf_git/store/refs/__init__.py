"""Refs by compare-and-swap, and packed-refs.

Promise: a killed writer leaves nothing that blocks the next one.
"""
