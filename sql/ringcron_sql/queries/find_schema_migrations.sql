-- Whether this database was ever migrated.
select to_regclass('schema_migrations') is not null
