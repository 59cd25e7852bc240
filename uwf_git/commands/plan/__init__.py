"""`uwf plan`: the plans of a work directory, and the thread that carries them out.

Promise: the thread is the truth. The state file is believed where to look, and nothing that it says
is done to a thread of another directory.
"""
