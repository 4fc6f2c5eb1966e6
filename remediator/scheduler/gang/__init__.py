"""Pods that need each other keep together: of nodes that are equally healthy, those near their siblings come first."""
