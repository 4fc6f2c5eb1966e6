"""CRDs, and the check of manifests."""
