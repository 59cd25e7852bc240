"""Pack objects and refs, and remove files that killed processes left.

Promise: a loose object is removed only after a pack that was read back holds it, or when no ref
reaches it and it is old; nothing that a living process may need is removed.
"""
