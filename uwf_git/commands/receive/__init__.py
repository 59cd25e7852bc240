"""What a hub accepts: the pre-receive and post-receive hooks.

Promise: a push that would damage a thread, or cannot be judged, is refused as a whole; nothing is
written before. Refs that are not uwf's pass.
"""
