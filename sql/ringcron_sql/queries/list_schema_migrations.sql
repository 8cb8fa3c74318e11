-- What was migrated, in order. Index: primary key of schema_migrations.
select version, name, checksum from schema_migrations order by version
