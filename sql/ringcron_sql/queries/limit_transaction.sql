-- Settings of this transaction alone: how long a lock is waited for, and instants written and read in UTC and ISO 8601,
-- whatever the server's own zone and date style. Nothing stays set: session settings vanish behind a transaction pooler.
select set_config('lock_timeout', %(lock_milliseconds)s::text, true),
       set_config('timezone', 'UTC', true),
       set_config('datestyle', 'ISO, YMD', true)
