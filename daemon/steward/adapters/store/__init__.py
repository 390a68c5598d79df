"""StorePort on SQL: `engine.open_engine(url)` opens and migrates a database, `sql.SqlStore` keeps memory in it."""
