"""Many inputs, one a line: read, answered at the same time, and written in their order."""
