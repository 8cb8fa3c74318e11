-- How many rows of a partition lie on either side of an instant. Reads it from end to end, beside traffic.
select count(*) filter (where {column} < %(at)s), count(*) filter (where {column} >= %(at)s) from only {partition}
