"""Where Pods are packed: how much a placement splits what is free on a node, and the points it gets for that."""
