"""Turn documents into JSON or text for a terminal.

Promise: text from agents cannot move the cursor or colour the terminal.
"""
