"""Take one step: lock, read, decide, play, record, unlock.

Promise: before the ref moves nothing has happened; after it everything has.
"""
