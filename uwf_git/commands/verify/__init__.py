"""Check a store: for `uwf verify`, fetch and the pre-receive hook.

Promise: every finding names its object; all is read again and no cache is trusted; nothing is
written, and damage is a finding, not an exception. What an event may do: model/event_rules.py.
"""
