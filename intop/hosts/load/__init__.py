"""Load generators: the one that is there, its load, its command line and its output.

Two tools run the request scripts of `lua/`: `engine`, our own, and `wrk2`. Nothing here does input
or output, except that `script_fingerprint` reads the scripts.
"""
