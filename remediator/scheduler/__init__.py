"""What kube-scheduler is told of nodes: which to leave out and which to prefer for a Pod."""
