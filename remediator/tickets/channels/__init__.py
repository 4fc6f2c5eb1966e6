"""What carries a ticket to people."""
