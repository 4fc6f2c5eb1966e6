"""The page of the fleet: read-only, for people in a browser, and the same views as JSON."""
