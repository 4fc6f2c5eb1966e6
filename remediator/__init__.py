"""Remediator: finds sick GPU nodes, repairs them where that is safe, and calls a person where it is not."""
