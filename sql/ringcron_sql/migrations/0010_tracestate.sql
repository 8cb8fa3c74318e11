-- What tracing systems said beside the traceparent of the same call (W3C tracestate, at most 512 characters).
alter table jobs add column tracestate text;
