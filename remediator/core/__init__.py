"""Pure nouns and decisions: arguments in, value out. No clock, no random numbers, no log, no event loop, no client."""
