"""The answers to kube-scheduler: which nodes to leave out for a Pod and which to prefer."""
