-- Lock those of these jobs that no worker holds, or none whose lease has not lapsed; answers with them. In id order, as
-- workers lock theirs. A job with a live lease is left to its worker: nobody waits for the end of this transaction to renew.
-- Index: primary key of every partition, by id alone, once per id.
select j.id
from (select w.id from unnest(%(ids)s::uuid[]) as w (id) order by w.id) as wanted
cross join lateral (
    select k.id
    from jobs k
    where k.id = wanted.id and (k.state is distinct from 'claimed' or k.lease_until < now())
    for update
    offset 0) as j
