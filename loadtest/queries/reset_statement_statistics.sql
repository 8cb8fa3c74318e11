-- Count statements from now on. Answers with nothing that is of use.
select pg_stat_statements_reset() is null
