"""Sign commits, and check ssh, gpg and x509 signatures with the programs that git uses.

Promise: only a signature that ssh-keygen, gpg or gpgsm has verified is called good.
"""
