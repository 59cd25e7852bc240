"""Pictures of workflows and threads: what they show, where it stands, and as which text.

Promise: pure and deterministic. Foreign text is spelled out and masked in plan.py, once; no text
lies on another, on a foreign box or outside the picture, whatever the font.
"""
