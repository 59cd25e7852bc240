"""git config, programs, identities, shared mode and hook files.

Promise: git reads what this writes, and settings mean here what they mean to git.
"""
