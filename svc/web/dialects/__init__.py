"""`POST /v1/decisions` in the words of the clients that people already have."""
