-- +goose Up

-- Tasks that are committed and not yet with ddq. The relay deletes what landed.
-- Times are milliseconds since 1970.
create table ddq_outbox_task (
	seq     integer primary key autoincrement, -- the order in which they are handed on
	id      text not null,                     -- of the task, made for its key or its ordering key
	key     text not null,                     -- idempotency key: a repeat of the relay is known by it
	topic   text not null,
	payload blob not null check (length(payload) <= 1048576),
	due     integer,                           -- null: when it arrives
	options text not null default '{}',
	at      integer not null
);

-- Tasks that ddq refused for good, and why.
create table ddq_outbox_bad (
	seq     integer primary key,
	id      text not null,
	key     text not null,
	topic   text not null,
	payload blob not null,
	due     integer,
	options text not null,
	at      integer not null,
	reason  text not null, -- stable, such as PAYLOAD_TOO_LARGE
	message text not null, -- for people
	refused integer not null
);

-- Tasks whose effect is in this database.
create table ddq_outbox_effect (
	topic text not null,
	id    text not null,
	at    integer not null,
	primary key (topic, id)
) without rowid;
create index ddq_outbox_effect_at on ddq_outbox_effect (at);

-- Which relay reads, and until when nobody else does.
create table ddq_outbox_reader (
	one    integer primary key check (one = 1),
	name   text not null,
	expiry integer not null
);

-- +goose Down
drop table ddq_outbox_task;
drop table ddq_outbox_bad;
drop table ddq_outbox_effect;
drop table ddq_outbox_reader;
