"""The reading core timed against named peers and floors, all in one run. Never a test.

This folder may import `client` and, in `peers.py` and `readers.py`, the peers; nothing imports this folder.
"""
