"""The product in virtual time: one seed gives one fleet, its faults and its users, and one story that is judged."""
