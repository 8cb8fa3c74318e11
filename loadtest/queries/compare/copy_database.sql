-- A copy of a template, by files: a checkpoint before and after, so that each run begins with all of it on disk.
create database {name} template {template} strategy file_copy
