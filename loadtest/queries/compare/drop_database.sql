-- The database and whoever is connected to it.
drop database if exists {name} with (force)
