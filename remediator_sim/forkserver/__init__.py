"""A warm process that forks for each run of a Python program, in place of starting an interpreter. See server.py."""
