"""What keeps a replica running: caches, work queue, leader election."""
