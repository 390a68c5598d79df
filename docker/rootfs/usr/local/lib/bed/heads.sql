-- The one database of two heads, on a bridge that has nobody else on it.
CREATE DATABASE IF NOT EXISTS steward CHARACTER SET utf8mb4;
CREATE USER IF NOT EXISTS steward@'%' IDENTIFIED BY 'bed';
GRANT ALL ON steward.* TO steward@'%';
