-- How many jobs after the ballast pgqueuer has not recorded as ended, %(most)s at most: ended ones leave the table.
select count(*) from (select from pgqueuer where id > %(ballast)s order by id desc limit %(most)s) as jobs
