"""What each account may do on a real API server, and what whoever holds its credentials may not."""
