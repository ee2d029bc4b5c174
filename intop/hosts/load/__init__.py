"""Load generators: which one is there, what it is asked to send, its command line, what it printed.

Two tools run the request scripts of `lua/`: `engine`, our own, and `wrk2`. Nothing here does input
or output, except that `script_fingerprint` reads the scripts.
"""
