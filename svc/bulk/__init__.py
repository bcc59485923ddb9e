"""Work on many rows, outside of the request that brought them."""
