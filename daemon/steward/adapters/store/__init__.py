"""StorePort on SQL: `engine.open_engine(url)` opens a database, `sql.SqlStore` keeps memory in it."""
