"""What a replica serves over HTTP."""
