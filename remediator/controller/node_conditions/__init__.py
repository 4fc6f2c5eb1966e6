"""Conditions that the leader writes on nodes, of what no program on the node can see: a module for each."""
