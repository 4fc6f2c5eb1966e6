"""Remediator: finds sick GPU nodes, repairs them where that is safe, and hands the case to a person where it is not."""
