-- What people look at: the lag of the moment, what the coordinator decided, which worker is silent.

-- One row, written by whichever process needs it first when it is a second old, and read by all the others: twenty
-- dashboards cost what one costs, with or without a coordinator. Unlogged: a crash of the database empties it.
create unlogged table lag_snapshot (
    one      boolean     primary key default true check (one),
    taken_at timestamptz not null,
    document text        not null  -- JSON; ringcron.store.snapshot reads and writes it
);

-- Each assignment that a coordinator published, for people. Upkeep is not needed: the writer deletes what is old.
create table epochs (
    epoch          bigint      primary key,
    at             timestamptz not null default clock_timestamp(),
    cause          text        not null,
    leader         text        not null,
    members        integer     not null,
    slots_moved    integer     not null,  -- slots with another owner than in the epoch before
    slots_unowned  integer     not null,
    in_transit     jsonb       not null   -- [[lo, hi, from, to], …]: worker ids or null
);

alter table workers
    add column report_seconds real not null default 5,  -- how often it means to report: silent after twice that
    add column drain_asked_by text;                     -- who asked it to drain; it is told when it next reports

-- started per second, for people: the last minutes of a day are at the end of its partition
create index runs_by_claim on runs using brin (claimed_at) with (pages_per_range = 32, autosummarize = on);

-- What errors of one kind have in common: numbers, ids, addresses and quoted words stand for any other.
create function error_fingerprint(handler text, reason text) returns text
language sql immutable parallel safe
return md5(handler || chr(10) || regexp_replace(coalesce(left(reason, 500), ''),
    '[0-9a-fA-F]{8}-[0-9a-fA-F-]{27}|0x[0-9a-fA-F]+|''[^'']*''|"[^"]*"|[0-9]+', '?', 'g'));
