"""The models of the simulation before a real control plane, many times faster than time."""
