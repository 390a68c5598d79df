-- The database is made here, not by slurmdbd: MariaDB's client library of 11.8.9 reads no result on a connection that
-- failed once (no such database) and is tried again, as slurmdbd does.
CREATE DATABASE IF NOT EXISTS slurm_acct_db;
CREATE USER IF NOT EXISTS slurm@localhost IDENTIFIED VIA unix_socket;
GRANT ALL ON slurm_acct_db.* TO slurm@localhost;
