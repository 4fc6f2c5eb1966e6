"""The fork server: one process that forks for each run of a Python program. See server.py."""
