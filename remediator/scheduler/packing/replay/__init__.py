"""Plays a list of Pods against a list of nodes, without a cluster: the scores of the extender and others."""
