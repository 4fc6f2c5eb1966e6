"""The HTTP server of a replica."""
