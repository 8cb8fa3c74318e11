-- The tags of new jobs, each pair once. Index: primary key of job_tags.
insert into job_tags (tag, job_id)
select tagged.tag, tagged.id from unnest(%(tags)s::text[], %(ids)s::uuid[]) as tagged (tag, id)
