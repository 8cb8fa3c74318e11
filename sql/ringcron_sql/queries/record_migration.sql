-- Record a migration, in its own transaction.
insert into schema_migrations (version, name, checksum) values (%(version)s, %(name)s, %(checksum)s)
