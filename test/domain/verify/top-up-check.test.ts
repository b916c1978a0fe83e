import { writeFileSync } from 'node:fs';
import path from 'node:path';
import { expect, test } from 'vitest';
import type { LedgerEvent } from '../../../src/domain/events/event.ts';
import { LedgerCheck } from '../../../src/domain/verify/ledger-check.ts';
import {
  expectIndependent,
  type IndependentVerdict,
  verifyIndependently,
} from '../../support/independent.ts';
import { temporaryFolder } from '../../support/program.ts';
import { leavesOf, paidJob, type StreamEvent } from '../../support/synthetic-ledger.ts';

/** What the ledger's own check and the independent verifier say of a ledger that tells this. */
async function verdictsOn(
  told: readonly StreamEvent[],
): Promise<[own: string | undefined, independent: IndependentVerdict | undefined]> {
  const leaves = [...leavesOf(told, told.length)];
  const check = new LedgerCheck();
  const faults = leaves.map((leaf) => check.next(Buffer.from(leaf))?.words);
  const file = path.join(temporaryFolder(), 'export.jsonl');
  writeFileSync(file, `${leaves.join('\n')}\n`);
  return [faults.find((words) => words !== undefined), await verifyIndependently(file, [])];
}

const job = paidJob(1);
const { network, asset, payer } = job[3]!.event.data as Readonly<Record<string, string>>;
const quote = { call_id: 2, quote_digest: job[0]!.stream };
const on = (type: string, data: object, accountId = 1): StreamEvent => ({
  stream: `account:${accountId}`,
  event: { type, data: { account_id: accountId, ...data } } as LedgerEvent,
});
const opened = (accountId = 1): StreamEvent =>
  on('credit_account_opened', { name: `user:${accountId}` }, accountId);
const given = (change: object = {}, accountId = 1): StreamEvent =>
  on(
    'credit_topped_up',
    {
      ...quote,
      amount_micros: '2000',
      network,
      asset,
      symbol: 'USDC',
      decimals: 6,
      atoms: '2000',
      payer,
      ...change,
    },
    accountId,
  );
const back = (taken: string, missing: string, change: object = {}, accountId = 1): StreamEvent =>
  on('credit_reversed', { ...quote, amount_micros: taken, missing_micros: missing, ...change }, accountId);
const paid = [...job, opened()];

test.each<[string, StreamEvent[]]>([
  ['given for a paid call', [...paid, given()]],
  ['given before its call is completed', [...job.slice(0, 5), opened(), given(), ...job.slice(5)]],
  ['taken back', [...paid, given(), back('2000', '0')]],
  ['taken back as far as it is there', [...paid, given(), back('500', '1500')]],
])('credit that is %s is sound', async (_, told) => {
  const [own, independent] = await verdictsOn(told);
  expect(own).toBeUndefined();
  expect(independent?.text ?? '').not.toContain('WRONG');
});

test.each<[string, StreamEvent[], RegExp]>([
  ['for a call that was never enqueued', [...job.slice(0, 4), opened(), given()], /nobody has paid/],
  ['for another call', [...paid, given({ call_id: 3 })], /nobody has paid/],
  [
    'for a quote that is not there',
    [...paid, given({ quote_digest: `0x${'a'.repeat(64)}` })],
    /nobody has paid/,
  ],
  ['for more than was paid', [...paid, given({ atoms: '3000' })], /nobody has paid/],
  ['in the name of somebody who has not paid', [...paid, given({ payer: asset })], /nobody has paid/],
  ['in another token', [...paid, given({ asset: payer })], /nobody has paid/],
  ['twice', [...paid, given(), given()], /bought credit/],
  ['twice, to two accounts', [...paid, opened(2), given(), given({}, 2)], /bought credit/],
  ['and taken back though it was not given', [...paid, back('0', '2000')], /bought/],
  ['and taken back twice', [...paid, given(), back('500', '1500'), back('500', '1500')], /bought/],
  ['and taken back from another account', [...paid, opened(2), given(), back('0', '2000', {}, 2)], /bought/],
  ['and taken back in part only', [...paid, given(), back('500', '1000')], /bought/],
])('credit that is given %s is found by both verifiers', async (_, told, words) => {
  const [own, independent] = await verdictsOn(told);
  expect(own).toMatch(words);
  expectIndependent(independent, false, /WRONG first at event \d+/);
  expectIndependent(independent, false, words);
});
