"""What detectors of others write on nodes, and what the policies of deploy/foreign make of it."""
