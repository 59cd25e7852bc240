"""Get the structured answer (meta) out of an agent's text.

Promise: the steps go from strict to lenient, the result names the one that worked (its rung), and
no value is invented.
"""
