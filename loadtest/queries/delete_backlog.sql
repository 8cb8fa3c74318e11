-- Take a backlog away again whose jobs were all due at one instant. Prunes to its day; jobs_due, jobs_claimed.
delete from jobs
where next_run_at = %(at)s and handler = %(handler)s and state in ('due', 'claimed')
