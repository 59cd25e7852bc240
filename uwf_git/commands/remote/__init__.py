"""Share a store: remotes, push, fetch, clone, and what happens when two stores meet.

Promise: a ref only moves to a descendant; diverged threads are named, never overwritten.
"""
