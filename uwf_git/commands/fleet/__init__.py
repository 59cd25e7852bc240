"""Many machines: who runs a thread of a hub, what of it can go on, and one run of one thread.

`uwf drive`, `uwf work`, `uwf thread run --claim`. The hub's refs are the only truth.
"""
