-- No table.
select version()
