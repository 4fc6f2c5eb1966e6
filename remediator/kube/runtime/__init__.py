"""The runtime of a replica: watches and caches, work queues, leader election, sweeps."""
