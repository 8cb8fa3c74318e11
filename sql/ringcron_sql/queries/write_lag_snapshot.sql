-- Index: primary key; one row, which the caller has locked. It grows no longer than its page: HOT.
update lag_snapshot set taken_at = clock_timestamp(), document = %(document)s
returning taken_at
