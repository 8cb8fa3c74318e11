-- A template is complete.
alter database {name} rename to {final}
