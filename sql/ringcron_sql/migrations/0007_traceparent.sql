-- The trace (W3C traceparent) of the call that created a job or last triggered it: each of its runs is linked to it.
alter table jobs add column traceparent text;
