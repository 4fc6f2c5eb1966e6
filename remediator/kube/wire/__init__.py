"""HTTP and bytes: what leaves and enters this process."""
