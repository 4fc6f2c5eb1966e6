"""Alertmanager's payload → Ticket."""
