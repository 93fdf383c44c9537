-- The tables of the catalog, as SQLite creates them; `other_databases.py` says how PostgreSQL differs. On SQLite, each table
-- has one more column, the checksum of its rows (`checksums.py`).

-- The id of the one home that the catalog belongs to.
create table home (
    id varchar not null primary key
);

-- The version: the number of changes so far.
create table counters (
    name varchar not null primary key,
    value integer not null
);

-- Single values: the last micro-batch whose results have been handed to the outbox, the number of runs, and the queries
-- whose start was in the future when they were registered.
create table facts (
    name varchar not null primary key,
    value text not null
);

-- Declared streams. Rows of streams and queries are never deleted: a dropped row gets the number of the change that
-- dropped it, so results of any version can be read.
create table streams (
    id integer primary key,
    name varchar not null,
    definition text not null,
    text text not null,
    added integer not null,
    dropped integer
);
create unique index living_streams on streams (name) where dropped is null;

-- Queries without their constants, each stored once. `normal_form` is 'paths' if the path of a query is a constant.
create table shapes (
    id integer primary key,
    shape text not null unique,
    normal_form text not null,
    signature text not null
);

-- Queries over feeds without their constants, in their original form.
create table publications (
    id integer primary key,
    query text not null unique
);

-- The feeds that publications name.
create table reads (
    publication integer not null references publications (id),
    feed varchar not null,
    primary key (publication, feed)
);
create index reads_of on reads (feed);

-- A query whose definition, or that of a feed it reads, was replaced is a new row that says which one it `replaces`.
-- `added` is 2**62 until a query has started, higher than any version of the catalog.
create table queries (
    number integer primary key,
    name varchar not null,
    unnamed boolean not null,
    shape integer not null references shapes (id),
    constants text not null,
    text text not null,
    start float,
    every float not null,
    expire float,
    preference text,
    paused boolean not null,
    publication integer references publications (id),
    published boolean not null,
    replaces integer,
    added integer not null,
    dropped integer
);
create unique index living_names on queries (name) where dropped is null;
create index queries_added on queries (added);
create index queries_by_name on queries (name);
create index queries_dropped on queries (dropped) where dropped is not null;
create index queries_expire on queries (expire) where expire is not null and dropped is null;
create index queries_over_feeds on queries (publication) where publication is not null;
create index queries_start on queries (added, start) where start is not null and dropped is null;

-- Segments that bulk registrations wrote, by their changes.
create table segments (
    after integer primary key,
    upto integer not null,
    size integer not null,
    plan varchar not null,
    asked varchar not null
);

-- Destinations. Deliveries to a target are sent in order, one at a time. `due` is set while deliveries are waiting.
create table targets (
    id integer primary key,
    address text not null unique,
    host text not null,
    due float
);
create index targets_due on targets (due) where due is not null;

-- Delivery routes: output, arguments, stylesheet and interval for one target. Queries with the same action share a
-- channel, so ten thousand queries that append to one file are one delivery per micro-batch.
create table channels (
    id integer primary key,
    key text not null unique,
    target integer not null references targets (id),
    output varchar not null,
    arguments text not null,
    stylesheet text,
    every float not null,
    anchor float,
    token varchar not null unique,
    recent text
);

-- In force from the change that `added` it until the one that `dropped` it, like a query. So the deliveries of a
-- micro-batch can be determined again at any time.
create table subscriptions (
    id integer primary key,
    query varchar not null,
    feed varchar not null,
    channel integer not null references channels (id),
    timed boolean not null,
    by_query boolean not null,
    start float,
    expire float,
    text text not null,
    paused boolean not null,
    added integer not null,
    dropped integer
);
create index subscriptions_by on subscriptions (text) where not by_query;
create index subscriptions_expire on subscriptions (expire) where expire is not null and dropped is null;
create index subscriptions_of on subscriptions (query, timed);
create index subscriptions_to on subscriptions (channel);

-- The event list (NiagaraCQ 3.6.1), sorted by `due`.
create table timers (
    channel integer primary key references channels (id),
    due float not null,
    batch integer not null
);
create index timers_due on timers (due);

-- The last micro-batch in which a query had results.
create table news (
    query varchar not null primary key,
    batch integer not null
);

-- Pending deliveries: the results of the micro-batches after `after`, up to `upto`, without the first `sent`. If the
-- two are equal, it is the single result number `sent` of that micro-batch. Ids are never reused, because receivers
-- recognize a delivery by its id.
create table outbox (
    id integer not null primary key autoincrement,
    target integer not null references targets (id),
    channel integer not null references channels (id),
    after integer not null,
    upto integer not null,
    sent integer not null,
    attempts integer not null,
    position bigint,
    dead boolean not null,
    error text,
    made float not null
);
create index outbox_of on outbox (target, dead, id);
