"""Events: `uwf events`, `uwf.onEvent`, and the journal that orders them.

Promise: each transition is reported once, in the order in which this machine first saw it.
"""
