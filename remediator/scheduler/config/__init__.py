"""The configuration of kube-scheduler: written for one that asks us, and checked for what goes wrong without a word."""
