"""Files that survive a crash: atomic writes, flock, git-compatible `<file>.lock`, slots.

Promise: the lock of a dead process blocks no other; a reused pid is never taken for its holder.
"""
