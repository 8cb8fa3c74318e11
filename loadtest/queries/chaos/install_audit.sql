-- The database's own record of every change of a job, written within the transaction that makes it. For chaos runs only.
-- seq is drawn while the row is locked: of one job it rises in the order of the changes. A row that moves to another
-- partition shows as a delete and an insert of one transaction.
create table chaos_audit (
    seq           bigint generated always as identity primary key,
    at            timestamptz not null default clock_timestamp(),
    txid          xid8        not null default pg_current_xact_id(),
    change        text        not null,
    job           uuid        not null,
    state         text        not null,
    generation    bigint      not null,
    owner         text,
    lease_until   timestamptz,
    next_run_at   timestamptz not null,
    scheduled_for timestamptz not null,
    cause         text        not null,
    attempt       integer     not null,
    slot          integer     not null,
    writer        text        not null default current_setting('application_name')
);

create function chaos_note() returns trigger language plpgsql as $$
declare
    noted jobs := case when tg_op = 'DELETE' then old else new end;
begin
    insert into chaos_audit (change, job, state, generation, owner, lease_until, next_run_at, scheduled_for, cause,
                             attempt, slot)
    values (lower(tg_op), noted.id, noted.state, noted.lease_generation, noted.lease_owner, noted.lease_until,
            noted.next_run_at, noted.scheduled_for, noted.cause, noted.attempt, noted.slot);
    return null;
end $$;

create trigger chaos_audit after insert or update or delete on jobs for each row execute function chaos_note();
