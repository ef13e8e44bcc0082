-- +goose Up

-- Tasks that are committed and not yet with ddq. The relay deletes what landed.
create table ddq_outbox.task (
	seq     bigint generated always as identity primary key, -- the order in which they are handed on
	id      uuid not null,                                   -- of the task, made for its key or its ordering key
	key     text not null check (octet_length(key) between 1 and 128), -- idempotency key: a repeat of the relay is known by it
	topic   text not null,
	payload bytea not null check (octet_length(payload) <= 1048576),
	due     timestamptz,                                     -- null: when it arrives
	options jsonb not null default '{}',
	at      timestamptz not null default clock_timestamp()
) with (autovacuum_vacuum_scale_factor = 0, autovacuum_vacuum_threshold = 20000, autovacuum_vacuum_insert_scale_factor = 0);

-- Tasks that ddq refused for good, and why.
create table ddq_outbox.bad (
	seq     bigint primary key,
	id      uuid not null,
	key     text not null,
	topic   text not null,
	payload bytea not null,
	due     timestamptz,
	options jsonb not null,
	at      timestamptz not null,
	reason  text not null, -- stable, such as PAYLOAD_TOO_LARGE
	message text not null, -- for people
	refused timestamptz not null default clock_timestamp()
);

-- Tasks whose effect is in this database.
create table ddq_outbox.effect (
	topic text not null,
	id    text not null,
	at    timestamptz not null default clock_timestamp(),
	primary key (topic, id)
);
create index effect_at on ddq_outbox.effect (at);

-- PostgreSQL sends the notifications of a transaction that are the same once.
-- +goose StatementBegin
create function ddq_outbox.notify() returns trigger language plpgsql as $$
begin
	notify ddq_outbox;
	return null;
end $$;
-- +goose StatementEnd
create trigger notify after insert on ddq_outbox.task for each statement execute function ddq_outbox.notify();

-- enqueue puts a task into the outbox, in the caller's transaction, and returns its id.
--
-- With a key of the caller's, options has to have window_ms. Options are those of the
-- table in docs/outbox.md; one that is not known is refused.
-- +goose StatementBegin
create function ddq_outbox.enqueue(topic text, payload bytea, due timestamptz default null, options jsonb default '{}', key text default null)
returns uuid language plpgsql as $$
declare
	stamp   bigint := floor(extract(epoch from clock_timestamp()) * 1000000); -- microseconds
	taken   text := coalesce(key, replace(gen_random_uuid()::text, '-', ''));
	keyed   text := coalesce(nullif(options->>'ordering_key', ''), taken); -- the id says in which shard tasks of this lie
	millis  text := lpad(to_hex(stamp / 1000), 12, '0');
	made    uuid := left(millis, 8) || '-' || right(millis, 4) || '-8ddc-8' || lpad(to_hex(stamp % 1000), 3, '0') || '-'
		|| left(encode(sha256(convert_to(keyed, 'UTF8')), 'hex'), 8) || left(replace(gen_random_uuid()::text, '-', ''), 4);
	unknown text[] := array(select o from jsonb_object_keys(options) o where o <> all (array['attributes', 'max_retries', 'visibility_timeout_ms',
		'handler_timeout_ms', 'backoff', 'priority', 'fairness_key', 'fairness_weight', 'rate_key', 'concurrency_key', 'ordering_key',
		'slack_ms', 'latest_time', 'expire_time', 'expire_after_ms', 'window_ms', 'on_conflict']));
begin
	if unknown <> '{}' then
		raise exception 'ddq_outbox.enqueue: % is no option', unknown[1] using errcode = 'invalid_parameter_value';
	elsif topic !~ '^[A-Za-z0-9][A-Za-z0-9._-]{0,127}$' or topic is null then
		raise exception 'ddq_outbox.enqueue: % is no name of a topic', topic using errcode = 'invalid_parameter_value';
	elsif (key is null) <> (options->'window_ms' is null) then
		raise exception 'ddq_outbox.enqueue: key and window_ms are given together, or none' using errcode = 'invalid_parameter_value';
	end if;
	insert into ddq_outbox.task (id, key, topic, payload, due, options)
	values (made, taken, enqueue.topic, enqueue.payload, enqueue.due, enqueue.options);
	return made;
end $$;
-- +goose StatementEnd

-- +goose Down
drop schema ddq_outbox cascade;
