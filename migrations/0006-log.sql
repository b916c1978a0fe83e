-- The tamper-evident log: an RFC 6962 tree over the events' leaf bytes, in the order of seq, and its signed heads.

-- The tree's size and its right edge: all that extending it needs.
create table tollbook.log_tree (
  lane_id smallint primary key references tollbook.lane_lock,
  size bigint not null,
  edge bytea not null
);
insert into tollbook.log_tree values (1, 0, '');

-- The tree's hashes, 256 a tile. Stored without compression: hashes do not compress.
create table tollbook.log_tile (
  lane_id smallint not null,
  level smallint not null,
  tile bigint not null,
  hashes bytea not null,
  primary key (lane_id, level, tile)
);
alter table tollbook.log_tile alter column hashes set storage external;

-- The heads that were signed, those that nothing needs any more for 30 days only. One per size, whichever process signs: two would be two histories.
create table tollbook.log_head (
  origin text collate "C" not null,
  size bigint not null,
  lane_id smallint not null,
  root bytea not null,
  note text not null,
  at timestamptz not null,
  primary key (origin, size)
);

-- The size of the last head that each anchor received, and when it gets the next one.
create table tollbook.log_anchor (
  origin text collate "C" not null,
  name text collate "C" not null,
  size bigint not null,
  due_at timestamptz not null,
  primary key (origin, name)
);

-- The heads that an anchor has received: they are never deleted.
create table tollbook.log_anchored_head (
  origin text collate "C" not null,
  size bigint not null,
  primary key (origin, size)
);
