"""Expressions of flows: a strict subset of JavaScript; the answer is node's, or an error.

`parser.parse_expression` checks a text, `evaluator.evaluate` answers it, and fills texts.
Pure functions of their arguments: no clock, no chance, no locale.
FORMAT.md, "Expressions of flows", has the grammar. Their time and memory are bounded
(`values.py`), whatever the text.
"""
