"""How far the clocks of others may be from ours. Pure."""

from datetime import timedelta

# A time that lies further ahead was written by a clock that is wrong, and nobody can say how old it is.
AHEAD = timedelta(minutes=5)
