"""What makes a node that is well now less likely to stay so: failures that it had, and detectors that are silent."""
