import { randomUUID } from 'node:crypto';
import net from 'node:net';
import fc from 'fast-check';
import pg from 'pg';
import { expect, onTestFinished, test } from 'vitest';
import {
  type BatchAnswer,
  type AnyClaim,
  type CallChange,
  type Claim,
  type EncodedCommand,
  encodeCommand,
  type HaltAnswer,
  type LaneCommand,
} from '../../../src/ledger/store/append-batch.ts';
import { writerRole } from '../../../src/ledger/store/database.ts';
import { Session, sessionConfig } from '../../../src/ledger/store/session.ts';
import { openLane } from '../../../src/ledger/store/lane.ts';
import { fullAnswer, uncontendedStatement } from '../../../src/ledger/store/uncontended.ts';
import { idOf, rowsOf, senderOn, stoppedDatabase } from '../../support/append-ways.ts';
import { createDatabase, type TestDatabase } from '../../support/database.ts';
import { paidWith, newStream, quoteIssued, refused, replayDenied } from '../../support/events.ts';
import { expectSoundLedger } from '../../support/invariants.ts';
import { propertyRuns } from '../../support/property-runs.ts';
import { startSilentProxy } from '../../support/silent-proxy.ts';
import { eventually } from '../../support/wait.ts';

const encoded = (...commands: LaneCommand[]): EncodedCommand[] => commands.map(encodeCommand);
const one = (): EncodedCommand[] => encoded({ stream: newStream(), events: [refused()] });

interface Step {
  readonly stream: number;
  readonly expect: 'right' | 'wrong' | 'any';
  readonly events: number;
  /** Whether it has an end, and whether that is over. */
  readonly end: 'none' | 'over' | 'later';
  /** Whether its quote was counted by a sum before. */
  readonly isSummarised: boolean;
  readonly claims: readonly number[];
  readonly binding: number;
  readonly frees: boolean;
  readonly recordsLoss: boolean;
  readonly call: CallChange['op'] | undefined;
  readonly hasBody: boolean;
  /** How many calls a runner leases before the batch of this step. */
  readonly leases: number;
}

/** The time of a stopped database, in Unix seconds. */
const stoppedAtSecs = Math.floor(Date.parse('2026-11-22T12:00:00.123Z') / 1_000);

const rarely = fc.integer({ min: 0, max: 9 }).map((n) => n === 0);

const step: fc.Arbitrary<Step> = fc.record({
  stream: fc.integer({ min: 0, max: 20 }),
  expect: fc.constantFrom('right', 'right', 'right', 'right', 'any', 'any', 'wrong'),
  events: fc.integer({ min: 0, max: 3 }),
  end: fc.constantFrom('none', 'none', 'none', 'later', 'later', 'over'),
  isSummarised: fc.boolean(),
  claims: fc.uniqueArray(fc.integer({ min: 0, max: 60 }), { maxLength: 3 }),
  binding: fc.integer({ min: 0, max: 1 }),
  frees: rarely,
  recordsLoss: fc.boolean(),
  call: fc.constantFrom(
    'add',
    'add',
    'release',
    'lease',
    'check',
    'complete',
    'complete',
    'watch',
    'remove',
    undefined,
    undefined,
  ),
  hasBody: fc.boolean(),
  leases: fc.integer({ min: 0, max: 3 }),
});

const claimOf = (run: string, key: number, binding: number): Claim => ({
  kind: 'payment',
  owner: '0xpayer',
  scope: 'chain/asset',
  key: `${run}:${key}`,
  binding: `b${binding}`,
});

/** Every third one is a nonce of a caller. */
const anyClaimOf = (run: string, key: number, binding: number): AnyClaim =>
  key % 3 > 0
    ? claimOf(run, key, binding)
    : { kind: 'caller_nonce', caller: run, serviceId: 1, jobIndex: key, nonceSha256: `0x${key}` };

interface Model {
  readonly run: string;
  readonly versions: Map<string, number>;
  /** The newest call of each stream. */
  readonly calls: Map<string, number>;
}

function commandOf({ run, versions, calls }: Model, given: Step): LaneCommand {
  const stream = `${run}:${given.stream}`;
  const version = versions.get(stream) ?? 0;
  const expected = { right: version, wrong: version + 1, any: undefined }[given.expect];
  const call = callOf(stream, given, calls.get(stream));
  return {
    stream,
    expect: expected,
    endsAt: { none: undefined, over: stoppedAtSecs, later: stoppedAtSecs + 1 }[given.end],
    events: Array.from({ length: given.events }, (_, i) => (i === 0 ? quoteIssued(given) : refused())),
    ...(given.frees
      ? { freed: given.claims.map((key) => claimOf(run, key, given.binding)) }
      : { claims: given.claims.map((key) => anyClaimOf(run, key, given.binding)) }),
    ...(given.recordsLoss ? { lost: { stream: `${run}:lost`, events: { payment: [replayDenied()] } } } : {}),
    ...(call ? { call } : {}),
  };
}

let bodies = 0;

function callOf(
  stream: string,
  { call: op, hasBody }: Step,
  callId: number | undefined,
): CallChange | undefined {
  if (op === 'add') {
    const bodyId = idOf(++bodies);
    const body = { contentType: 'text/plain', bytes: Buffer.from(`body of ${stream}`) };
    // not every request is traced
    const traceparent = hasBody ? undefined : `00-${'4b'.repeat(16)}-${'5c'.repeat(8)}-01`;
    const payment = {
      network: 'eip155:1',
      asset: '0xa5',
      symbol: 'USDC',
      payment: stream,
      idempotencyKey: `key of ${stream}`,
    };
    const facts = { serviceId: 1, jobIndex: 0, ...payment, traceparent };
    return { op, ...facts, bodyId, body: hasBody ? body : undefined, caller: undefined, delayMs: 5_000 };
  }
  if (callId === undefined) return undefined;
  if (op === 'lease') return { op, callId, leaseId: idOf(callId), delayMs: 30_000 };
  if (op === 'check' || op === 'complete') return { op, callId, leaseId: idOf(callId) };
  if (op === 'release' || op === 'watch' || op === 'remove') return { op, callId };
  return undefined;
}

const tables = {
  event: 'select * from tollbook.event order by seq',
  claim: 'select * from tollbook.claim order by key',
  caller_nonce: 'select * from tollbook.caller_nonce order by caller, job_index',
  call: 'select * from tollbook.call order by call_id',
  call_body: 'select * from tollbook.call_body order by body_id',
  lane: 'select * from tollbook.lane',
  lane_counter: 'select * from tollbook.lane_counter order by type, batch',
  lane_batch: 'select batch_no, content_hash, at from tollbook.lane_batch order by batch_no',
};

/** A runner's leases, with ids that are the same in every database. */
async function leaserOn({ url }: TestDatabase): Promise<(max: number) => Promise<unknown>> {
  const owner = new pg.Client(url);
  await owner.connect();
  onTestFinished(() => owner.end());
  return (max) =>
    owner.query(
      `update tollbook.call set status = 'leased', attempt = attempt + 1,
         lease_id = ('00000000-0000-4000-8000-' || lpad(call_id::text, 12, '0'))::uuid
       where call_id in (select call_id from tollbook.call where status = 'ready' order by call_id limit $1)`,
      [max],
    );
}

test('a batch that is written leaves the same rows, leaves and answers as one that is decided', async () => {
  const [written, decided] = [await stoppedDatabase(), await stoppedDatabase()];
  const [writer, decider] = [senderOn(written), senderOn(decided)];
  const leasers = [await leaserOn(written), await leaserOn(decided)];
  const ways = { written: 0, contended: 0 };
  let batchNo = 0;
  let runs = 0;
  await fc.assert(
    fc.asyncProperty(
      fc.array(fc.array(step, { maxLength: 6 }), { minLength: 1, maxLength: 12 }),
      async (batches) => {
        const model: Model = { run: `run${++runs}`, versions: new Map(), calls: new Map() };
        for (const steps of batches) {
          batchNo++;
          const commands = steps.map((given) => commandOf(model, given));
          const batch = commands.map(encodeCommand);
          const max = steps[0]?.leases ?? 0;
          if (max > 0) await Promise.all(leasers.map((lease) => lease(max)));
          const short = await writer.write(batchNo, batch);
          ways[short ? 'written' : 'contended']++;
          const answers = [
            short ?? (await writer.decide(batchNo, batch)),
            await decider.decide(batchNo, batch),
          ];
          const [answer, other] = answers.map((each) => each && withoutTimes(fullAnswer(each, batch)));
          expect(answer).toEqual(other);
          // sent again either way, it is answered as before
          expect(await writer.decide(batchNo, batch)).toEqual(answers[0]);
          note(model, commands, fullAnswer(answers[0] ?? never(), batch));
        }
      },
    ),
    propertyRuns(8),
  );
  expect(await rowsOf(written, tables)).toEqual(await rowsOf(decided, tables));
  expect(Math.min(ways.written, ways.contended)).toBeGreaterThan(10);
  await written.asOwner((owner) => expectSoundLedger(written.db, owner));
});

function never(): never {
  throw new Error('a batch was not answered');
}

/** What both answers must have in common: the lane adds the time of an append to each result itself. */
function withoutTimes(answer: BatchAnswer | HaltAnswer): unknown {
  if ('halt' in answer) return answer;
  const results = answer.results.map((result) => {
    if (result.outcome !== 'ok' || !('seq' in result)) return result;
    const { version, seq, call_id } = result;
    return { outcome: 'ok', version, seq, call_id };
  });
  return { ...answer, results };
}

function note(
  { versions, calls }: Model,
  commands: readonly LaneCommand[],
  answer: BatchAnswer | HaltAnswer,
): void {
  if ('halt' in answer) throw new Error('the ledger halted');
  for (const [index, { stream }] of commands.entries()) {
    const result = answer.results[index];
    if (result?.outcome !== 'ok' || !('seq' in result)) continue;
    versions.set(stream, result.version);
    if (result.call_id !== null) calls.set(stream, result.call_id);
  }
}

test('a stream leaves out no version: a command that expects one that is not there is stale', async () => {
  const database = await createDatabase();
  const lane = openLane({ url: database.url, role: writerRole });
  onTestFinished(() => lane.close(1_000));
  const [stream, empty] = [newStream(), newStream()];
  await lane.append({ stream, expect: 0, events: [refused()] });
  const appends = [
    { stream, expect: 2, events: [refused()] },
    { stream: empty, expect: 1, events: [refused()] },
    { stream, expect: 0, events: [refused()] },
  ].map((command) => lane.append(command));
  for (const append of appends) expect(await append).toEqual({ outcome: 'stale' });
  expect(await database.asOwner((owner) => expectSoundLedger(database.db, owner))).toHaveLength(1);
});

test('a batch that was written is not decided as well, nor one that was decided written: its number stands for its content', async () => {
  const database = await createDatabase();
  const { write, decide } = senderOn(database);
  const batch = one();
  const answer = await write(1, batch);
  expect(answer).toMatchObject({ seq: 1, versions: [0] });
  expect(await write(1, batch)).toEqual(answer);
  expect(await decide(1, batch)).toEqual(answer);
  const other = one();
  const decided = await decide(2, other);
  expect(decided).toMatchObject({ seq: 2, results: [{ outcome: 'ok' }] });
  expect(await write(2, other)).toEqual(decided);
  for (const no of [1, 2]) {
    await expect(write(no, one())).rejects.toThrow(/was another one/);
    await expect(decide(no, one())).rejects.toThrow(/was another one/);
  }
  expect(await database.asOwner((owner) => expectSoundLedger(database.db, owner))).toHaveLength(2);
});

test('a batch whose answer was lost is sent again under its number, and is recorded once', async () => {
  const database = await createDatabase();
  const proxy = await startSilentProxy(database);
  const lane = openLane({ url: proxy.url, role: writerRole });
  onTestFinished(() => lane.close(1_000));
  await lane.append({ stream: newStream(), events: [refused()] });
  // freeing is decided
  const freed = [claimOf('run', 1, 1)];
  const appends = [
    { way: 'append_uncontended', command: { stream: newStream(), events: [refused()] } },
    { way: 'append', command: { stream: newStream(), events: [refused()], freed } },
  ];
  for (const { way, command } of appends) {
    const { interruptions } = lane.state;
    proxy.loseAnswerTo(`select tollbook.${way}(`);
    expect(await lane.append(command)).toMatchObject({ outcome: 'ok', version: 1 });
    expect(lane.state.interruptions).toBe(interruptions + 1);
  }
  expect(await database.asOwner((owner) => expectSoundLedger(database.db, owner))).toHaveLength(3);
});

test('an error of the database is not taken for contention: the batch is not decided after it', async () => {
  // of a check and of a unique index; each is tried once
  for (const code of ['23514', '23505']) {
    const { append, tried } = await failingOnce(code);
    await expect(append()).rejects.toThrow('simulated');
    expect(await tried()).toEqual({ tries: 1, decisions: 0 });
  }
  // of a full disk: sent again as it was
  const { append, tried } = await failingOnce('53100');
  expect(await append()).toMatchObject({ outcome: 'ok' });
  expect(await tried()).toEqual({ tries: 2, decisions: 0 });
});

test('data that are not JSON cannot become the other members of an event', async () => {
  const database = await createDatabase();
  const write = (data: string) =>
    database.pool.query(
      `select tollbook.append_uncontended(1::smallint, $1, 1, 0, '', 'request_refused', $2, 's', '', '', '', '', '', '', '')`,
      [randomUUID(), data],
    );
  await expect(write(`{},"lane":1,"schema":1,"seq":9,"data":{}`)).rejects.toThrow(
    /invalid input syntax for type json/,
  );
  await write('{}');
  expect((await database.pool.query('select from tollbook.event')).rowCount).toBe(1);
});

/** The first insert of an event fails with this code. Sequences keep how often one was tried, also after a rollback. */
async function failingOnce(code: string) {
  const database = await createDatabase();
  await database.asOwner((owner) =>
    owner.query(`
      create sequence tollbook.tries minvalue 0; create sequence tollbook.decisions minvalue 0;
      select nextval('tollbook.tries'), nextval('tollbook.decisions');
      grant usage on tollbook.tries, tollbook.decisions to public;
      create function tollbook.fail_once() returns trigger language plpgsql as $$ begin
        if current_query() like '%tollbook.append(%' then perform nextval('tollbook.decisions'); end if;
        if nextval('tollbook.tries') = 1 then raise exception 'simulated' using errcode = '${code}'; end if;
        return new;
      end $$;
      create trigger fails before insert on tollbook.event for each row execute function tollbook.fail_once()`),
  );
  const lane = openLane({ url: database.url, role: writerRole });
  onTestFinished(() => lane.close(1_000));
  const tried = async (): Promise<unknown> => {
    const { rows } = await database.asOwner((owner) =>
      owner.query(
        'select t.last_value::int as tries, d.last_value::int as decisions from tollbook.tries t, tollbook.decisions d',
      ),
    );
    return rows[0];
  };
  return { append: () => lane.append({ stream: newStream(), expect: 0, events: [refused()] }), tried };
}

test('a client that disappears at any byte of a batch records it whole or not at all, and keeps no lock', async () => {
  const database = await createDatabase();
  const add: CallChange = {
    op: 'add',
    serviceId: 1,
    jobIndex: 0,
    bodyId: randomUUID(),
    body: { contentType: undefined, bytes: Buffer.from('body') },
    ...paidWith,
    payment: 'p',
  };
  const batch = encoded({ stream: newStream(), expect: 0, events: [quoteIssued()], call: add });
  const text = uncontendedStatement(1, randomUUID(), 1, 0, batch) ?? '';
  const bytes = Buffer.byteLength(text) + 6;
  const lane = openLane({ url: database.url, role: writerRole });
  onTestFinished(() => lane.close(1_000));
  const cuts = [1, 4, 5, 6, bytes >> 2, bytes >> 1, bytes - 2, bytes - 1, bytes];
  for (const cut of cuts) {
    const socket = new net.Socket();
    const client = new Session({ ...sessionConfig({ url: database.url }), stream: () => socket });
    client.on('error', () => {});
    await client.connect();
    const write = socket.write.bind(socket);
    socket.write = (chunk: Buffer) => write(chunk.subarray(0, cut), () => socket.destroy());
    client.query(text).catch(() => {});
    expect(await lane.append({ stream: newStream(), events: [refused()] })).toMatchObject({ outcome: 'ok' });
  }
  await eventually(() =>
    database.asOwner(async (owner) => {
      const { rowCount } = await owner.query(
        `select from pg_stat_activity where datname = current_database() and query like '%append_uncontended%'
           and state <> 'idle' and pid <> pg_backend_pid()`,
      );
      expect(rowCount).toBe(0);
    }),
  );
  const events = await database.asOwner((owner) => expectSoundLedger(database.db, owner));
  // its last cut is the whole message: whether the server reads it before it notices the end is open
  expect([cuts.length, cuts.length + 1]).toContain(events.length);
});
