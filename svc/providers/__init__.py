"""Model providers: which there are, how an id finds one, and one bounded HTTP call to it."""
