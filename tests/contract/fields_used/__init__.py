"""Each field of the spec of what drives a repair: what the product decodes it into, and which test fails without it."""
