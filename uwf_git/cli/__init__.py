"""The command line: the only click, the only print, the only environment."""

import gc

# A process lives for one command: collecting what the imports leave costs 5 to 9 ms of a start, and
# almost nothing of it is garbage.
gc.set_threshold(100_000, 50, 50)
