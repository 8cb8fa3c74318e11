-- A transaction that sees the database as it is now, for as long as it is open.
begin isolation level repeatable read
