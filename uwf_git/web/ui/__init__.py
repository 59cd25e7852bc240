"""The page of `uwf ui`: a server for one person, on this machine, over the store's own verbs.

It has no state of its own: what it keeps in memory follows from the store. `answers.py` decides who
is answered; `application.py` has the table of what is answered. It alone knows starlette and
uvicorn. Store work is done in threads (`Workers`), never in the event loop.
"""
