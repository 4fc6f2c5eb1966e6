"""One pass over one Ticket."""
