-- Make dead jobs, whose rows the caller has locked, due again: the same occurrences, with all their attempts. Ticks that
-- passed while they were dead leave a skip. Index: primary key of the far partition.
with redriven as materialized (
    select *
    from json_to_recordset(%(rows)s::json) as r (
        id uuid, next_run_at timestamptz, decided_until timestamptz,
        skip_first timestamptz, skip_last timestamptz, skip_count bigint)),
moved as (
    update jobs j
    set state = 'due', next_run_at = greatest(r.next_run_at, clock_timestamp()), cause = 'redrive', attempt = 0, lost = 0,
        decided_until = r.decided_until, dead_reason = null, revision = j.revision + 1, updated_at = clock_timestamp()
    from redriven r
    where j.id = r.id
      and j.state = 'dead'
      and j.next_run_at = timestamptz '9500-01-01 00:00:00+00'
    returning j.id, j.next_run_at, j.updated_at),
skipped as (
    insert into skips (job_id, decided_at, first, last, count, reason)
    select r.id, clock_timestamp(), r.skip_first, r.skip_last, r.skip_count, 'dead'
    from redriven r
    join moved on moved.id = r.id
    where r.skip_count > 0)
select moved.id, moved.next_run_at, moved.updated_at from moved order by moved.next_run_at, moved.id
