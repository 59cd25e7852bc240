"""Remotes: their settings and URLs, tracking refs, transport, and quarantine of received objects.

Promise: objects of a transfer are in the store all at once or not at all, before any ref.
"""
