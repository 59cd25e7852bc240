"""Steer a thread: pause, resume, retry, patch, amend, append, poke, kill, answer.

Promise: each is one commit by compare-and-swap that says who and why.
"""
