"""What may happen to a fleet: each kind of step, how its words are drawn, and how it is carried out."""
