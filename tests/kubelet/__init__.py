"""What is shipped, on real nodes: kubelet and containerd, each node in namespaces of its own on this machine."""
