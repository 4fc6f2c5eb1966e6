"""Passes over nodes, cases and operations: observe, decide, plan, perform, report."""
