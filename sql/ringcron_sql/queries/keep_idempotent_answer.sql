-- Write down the answer of the key that this transaction holds. Index: primary key.
update idempotency_keys set status = %(status)s, headers = %(headers)s::text::jsonb, body = %(body)s where id = %(id)s
