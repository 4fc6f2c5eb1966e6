"""One pass over a node, a case or an operation: observe, decide, plan, perform, report."""
