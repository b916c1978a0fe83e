import { mkdirSync, mkdtempSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import path from 'node:path';
import { expect, onTestFinished, test } from 'vitest';
import type { ConstantChanges } from '../../../../src/base/config/constants.ts';
import { createDatabase } from '../../../support/database.ts';
import { useChain } from '../../../support/devnet.ts';
import { payTo } from '../../../support/gateway.ts';
import { expectSoundLedger } from '../../../support/invariants.ts';
import { type Answering, eventTypes, signed, startApi, startRouteGateway } from './support.ts';

const chain = useChain();
const city = '/weather/paris';
const long = Buffer.alloc(3_000_000, 'sunny and warm; ');

/** In pieces, so that no length is known before. */
const longAnswer: Answering = (_asked, response) => {
  response.writeHead(200, { 'content-type': 'text/plain', 'x-model': 'v2' });
  for (let at = 0; at < long.length; at += 250_000) response.write(long.subarray(at, at + 250_000));
  response.end();
};

/** A gateway whose database takes 64 KiB of an answer, and its result store the rest. */
async function start(answering: Answering, routes: ConstantChanges['routes'] = {}) {
  const dir = mkdtempSync(path.join(tmpdir(), 'tollbook-answers-'));
  onTestFinished(() => rmSync(dir, { recursive: true, force: true }));
  const folder = path.join(dir, 'results');
  mkdirSync(folder);
  const api = await startApi(answering);
  const database = await createDatabase();
  const open = () =>
    startRouteGateway({
      chain,
      upstream: api.url,
      database,
      tables: `[result_store]\nlocation = "${folder}"\nmax_bytes = 8000000\n`,
      constants: { delivery: { maxResultBytes: 65_536 }, routes },
    });
  return { api, open, folder };
}

test('a long answer is kept in the result store before it is paid for, and every gateway repeats it', async () => {
  const { api, open } = await start(longAnswer);
  const [gateway, other] = [await open(), await open()];
  const payment = await signed(gateway, city);
  const before = await chain.balance(payTo);
  for (const [at, replayed] of [
    [gateway, null],
    [other, 'true'],
  ] as const) {
    const answer = await fetch(`${at.routesUrl}${city}`, { headers: payment });
    expect(answer.status).toBe(200);
    expect(Buffer.from(await answer.arrayBuffer()).equals(long)).toBe(true);
    expect(answer.headers.get('x-model')).toBe('v2');
    expect(answer.headers.get('idempotent-replayed')).toBe(replayed);
  }
  expect((await chain.balance(payTo)) - before).toBe(10_000n);
  expect(api.asked).toHaveLength(1);
  expect(await eventTypes(gateway)).toContain('completed');
});

test.each<[string, ConstantChanges['routes'], (folder: string) => void, string]>([
  ['longer than any may be', { maxResponseBytes: 2_000_000 }, () => {}, 'upstream_too_large'],
  [
    'that the result store does not take',
    {},
    (folder) => {
      rmSync(folder, { recursive: true });
      writeFileSync(folder, 'not a folder');
    },
    'result_store_unavailable',
  ],
])('an answer %s is not charged', async (_what, limits, spoil, reason) => {
  const { open, folder } = await start(longAnswer, limits);
  const gateway = await open();
  const payment = await signed(gateway, city);
  spoil(folder);
  const before = await chain.balance(payTo);
  expect(await gateway.paid.get(city, payment)).toMatchObject({
    status: 502,
    json: { code: 'upstream_unanswered' },
  });
  expect(await chain.balance(payTo)).toBe(before);
  const { database } = gateway;
  const events = await database.asOwner((owner) => expectSoundLedger(database.db, owner));
  expect(events.find(({ type }) => type === 'settlement_failed')).toMatchObject({ data: { reason } });
});

test('an answer whose parts are lost is refused as unavailable, and not cut silently', async () => {
  const { open, folder } = await start(longAnswer);
  const gateway = await open();
  const payment = await signed(gateway, city);
  expect((await gateway.paid.get(city, payment)).status).toBe(200);
  rmSync(folder, { recursive: true });
  mkdirSync(folder);
  expect(await gateway.paid.get(city, payment)).toMatchObject({
    status: 503,
    json: { code: 'result_store_unavailable' },
  });
});
