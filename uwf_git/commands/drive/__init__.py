"""Step after step: `uwf run`, `uwf thread run`, background drives, waiting.

One driver per thread; it stops at END, a person's turn, a pause, a failure or a limit.
"""
