"""The embedded database: the one place that holds SQL and knows `sqlite3`.

`database.py` is the door: `Database` opens the file, writes through one thread (`writer.py`) and
reads from a small pool (`readers.py`). Each further file keeps one kind of record on top of it.
"""
