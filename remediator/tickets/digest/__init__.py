"""The weekly digest: one issue about what happened to the fleet."""
