-- How many jobs of a handler wait or are due. Index: jobs_due.
select count(*) from jobs where state = 'due' and handler = %(handler)s
