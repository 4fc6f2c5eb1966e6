"""GPU Pods ask for GPUs by attributes: what their annotations require and prefer, and what labels of nodes say."""
