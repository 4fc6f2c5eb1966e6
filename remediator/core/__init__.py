"""Pure: nouns and decisions. Arguments in, value out; no clock, chance, log, loop or client."""
