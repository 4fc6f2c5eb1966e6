"""HTTP and bytes: what this process sends and receives."""
