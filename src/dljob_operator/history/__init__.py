"""The history of jobs in a database, which is off by default: docs/history.md.

`record` reads a job, `pending` keeps what waits for the database, `recorder` is the thread that writes, `store` writes,
`queries` reads, `database` connects, `tables` has the tables and `migrations` their revisions. The modules that import
SQLAlchemy are imported only where a history is kept. `queries` and what it imports are also part of the package for
laptops, so they import nothing else of the operator.
"""
