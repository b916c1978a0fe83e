import type pg from 'pg';

/** Ways to falsify a ledger as a superuser, and the message that reports each. */
export interface Tampering {
  readonly what: string;
  /** The verifier's message. */
  readonly words: RegExp;
  /** The independent verifier's message, when it differs. */
  readonly independently?: RegExp;
  change(owner: pg.Client): Promise<unknown>;
}

/** Rewrites an event's data as text. */
const rewrite = (where: string, from: string, to: string) => (owner: pg.Client) =>
  owner.query(`update tollbook.event set data = replace(data, '${from}', '${to}') where ${where}`);

/** Gives events other places. */
const renumber = (shift: string, where: string) => `
  update tollbook.event set seq = -(${shift}) where ${where};
  update tollbook.event set seq = -seq where seq < 0`;

/** One of the rows whose sum is a type's counter. */
const oneCounter = (type: string) =>
  `type = '${type}' and batch = (select max(batch) from tollbook.lane_counter where type = '${type}')`;

const remove = (seq: number, type: string) => `
  delete from tollbook.event where seq = ${seq};
  update tollbook.lane_counter set count = count - 1 where ${oneCounter(type)};
  update tollbook.lane set seq = seq - 1`;

/** Of the ledger of `busyLedger`: events 25 to 32 settle its first eight payments, event 57 is a refused request. */
export const tamperings: readonly Tampering[] = [
  {
    what: 'an amount is raised',
    words: /first at event 25: payment_settled of 0x\w+: it settles 999000 atoms, but 1000 were signed/,
    independently: /first at event 25: the amount/,
    change: rewrite('seq = 25', '"amount":"1000"', '"amount":"999000"'),
  },
  {
    what: 'the members of its data are in another order',
    words: /first at event 49: its bytes are not canonical JSON/,
    independently: /first at event 49: this is not an event in canonical JSON/,
    change: (owner) =>
      owner.query(
        String.raw`update tollbook.event set data = regexp_replace(data, '^\{("[^,]*),(.*)\}$', '{\2,\1}') where seq = 49`,
      ),
  },
  {
    what: 'the last event is removed',
    words: /new\.ckpt: it covers 114 events, but the ledger has 113: the last one is missing/,
    independently: /new\.ckpt: it covers 114 events, but the ledger has 113/,
    change: (owner) => owner.query(remove(114, 'request_refused')),
  },
  {
    what: 'an event in the middle is removed',
    words: /first at event 57: event 58 \(quote_issued\) was found, but 57 was expected: events were removed/,
    independently: /first at event 57: event 58 was found, but 57 was expected/,
    change: (owner) => owner.query(`delete from tollbook.event where seq = 57`),
  },
  {
    what: 'an event in the middle is removed and the rest moves up',
    words: /old\.ckpt: of the events 1 to 60 at least one is not as it was sealed/,
    independently: /old\.ckpt: the first 60 events are not those/,
    change: (owner) => owner.query(`${remove(57, 'request_refused')}; ${renumber('seq - 1', 'seq > 57')}`),
  },
  {
    what: 'two events change places',
    words:
      /first at event 9: payment_verified of 0x\w+: .*version 3|first at event 9: settlement_started is version 3/,
    independently: /first at event 9: settlement_started is version 3/,
    change: (owner) => owner.query(renumber('26 - seq', 'seq in (9, 17)')),
  },
  {
    what: 'an event is there twice',
    words: /first at event 115: payment_settled is version 4 of 0x\w+, whose last version is 7/,
    independently: /first at event 115: payment_settled is version 4/,
    change: (owner) =>
      owner.query(`
        alter table tollbook.event drop constraint event_stream_version_key;
        insert into tollbook.event (lane_id, seq, stream, version, type, at, data)
          select lane_id, 115, stream, version, type, at, data from tollbook.event where seq = 25`),
  },
  {
    what: 'a time is put back',
    words:
      /first at event 40: enqueued of 0x\w+ has the time 2020-01-01T00:00:00\.000Z, but the event before it/,
    independently: /first at event 40: enqueued is older/,
    change: (owner) => owner.query(`update tollbook.event set at = '2020-01-01Z' where seq = 40`),
  },
  {
    what: 'a result is replaced by another, consistently',
    words: /old\.ckpt: of the events 1 to 60 at least one is not as it was sealed/,
    independently: /old\.ckpt: the first 60 events are not those/,
    change: rewrite('seq = 50', '"result_bytes":12', '"result_bytes":13'),
  },
  {
    what: 'a counter is changed',
    words: /first at event 114: the counter of payment_settled is 17, but there are 16/,
    independently: /first at event 114: the counter of payment_settled/,
    change: (owner) =>
      owner.query(
        `update tollbook.lane_counter set count = count + 1 where ${oneCounter('payment_settled')}`,
      ),
  },
];
