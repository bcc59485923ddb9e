"""Work on many rows, outside of the request that brought them.

There is no face, because the workers of Ray and Spark import a part of it, and not the engine.
"""
