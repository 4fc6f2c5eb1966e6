"""What Alertmanagers list as firing decides which alerts Tickets hold: the webhook is a hint."""
