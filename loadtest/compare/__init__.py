"""`loadtest compare`: the same work done by ringcron, by other schedulers, and by bare SQL (the limit), side by side.

    run ─▶ contestants × rounds, interleaved (A B C … A B C …) ─▶ run documents ─▶ ratios with ranges ─▶ outcome

Invariants: every run starts from a fresh copy of its contestant's template database (schema and far-future ballast,
vacuumed and analysed), on one durable PostgreSQL with the same settings, and statistics are refreshed after the run's
own jobs are in. Ratios are taken between runs of one round, which are neighbours in time. Who cannot be installed is
absent: shown as such, never counted as beaten. A run that missed, doubled or hurried a job yields no figures.
"""
