"""Remediator finds unhealthy GPU nodes, repairs them where that is safe, and gives the case to a person otherwise."""
