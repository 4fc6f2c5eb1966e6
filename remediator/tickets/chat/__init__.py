"""Rooms of a chat hear of issues: one thread for each, kept up to date in place."""
