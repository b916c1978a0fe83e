import { writeFileSync } from 'node:fs';
import path from 'node:path';
import type pg from 'pg';
import { expect, test } from 'vitest';
import { attestationStream, signAttestation } from '../../../../src/audit/rules/attestation.ts';
import { isAsSealed } from '../../../../src/audit/use-cases/log/changed-events.ts';
import { projectToHead } from '../../../../src/audit/use-cases/projections/project.ts';
import { noteSigner, parseVerifierKey } from '../../../../src/base/values/log/checkpoint.ts';
import type { Hex } from '../../../../src/base/values/primitives.ts';
import {
  attest,
  listAttestations,
  recordAttestation,
} from '../../../../src/finance/use-cases/attestations/attest.ts';
import { readAttested } from '../../../../src/finance/use-cases/attestations/attested.ts';
import {
  findUnlistedRefunds,
  listRefundsDue,
} from '../../../../src/finance/use-cases/refunds/list-refunds-due.ts';
import { startRefund } from '../../../../src/finance/use-cases/refunds/send-refund.ts';
import type { TestDatabase } from '../../../support/database.ts';
import { useChain } from '../../../support/devnet.ts';
import { sealAll, testSigner, testVerifier } from '../../../support/log.ts';
import { temporaryFolder, tollbook } from '../../../support/program.ts';
import { tamper } from '../../../support/verify.ts';
import { chainsAt, giveBack, refunding } from './support.ts';

const chain = useChain();
const name = 'audit.example/tollbook';
const seed = Buffer.alloc(32, 7);
const signer = noteSigner(name, [seed]);
const key = signer.verifierKeys[0];
const verifier = parseVerifierKey(key);

/** A sealed ledger, and a verifier who has a connection to its database and a key. */
async function attestedLedger() {
  const made = await refunding(chain);
  const { database, ledger } = made;
  const seal = async (): Promise<void> => {
    await projectToHead(ledger);
    await sealAll(database);
  };
  const sign = (isWhole = false) => attest(ledger.pool, { signer, log: testVerifier, isWhole });
  /** What is sealed by now, attested and recorded; the record is sealed as well. */
  const attested = async (isWhole = false) => {
    const signed = await sign(isWhole);
    if (signed.kind !== 'signed') throw new Error(JSON.stringify(signed));
    const recorded = await recordAttestation(ledger, { note: signed.note, verifier, operator: 'ada' });
    expect(recorded.kind).toBe('recorded');
    await seal();
    return signed;
  };
  /** What `refunds due --attested-by` finds: the quotes, or that something was changed. */
  const due = async () => {
    const answer = await readAttested(ledger.pool, verifier);
    const since = answer.kind === 'attested' ? answer.since : undefined;
    if (!(await isAsSealed(ledger.pool, since))) return 'changed';
    const unlisted = await findUnlistedRefunds(ledger.pool, since);
    const { rows, changed, contradicted } = await listRefundsDue(ledger.pool, 0, 100);
    if (unlisted.length + changed.length + contradicted.length > 0)
      return { unlisted, changed, contradicted };
    return rows.map(({ quote_digest: quote }) => quote);
  };
  return { ...made, seal, sign, attested, due };
}

async function nonceOf({ pool }: TestDatabase, digest: Hex): Promise<Hex> {
  const { rows } = await pool.query<{ nonce: Hex }>(
    `select data::json->'payment'->>'nonce' as nonce from tollbook.event
      where type = 'settlement_started' and stream = tollbook.stream_key($1)`,
    [digest],
  );
  return rows[0]!.nonce;
}

test('a later attestation continues the last one, and attests the same refunds as a verification of everything', async () => {
  const { paid, record, final, seal, attested, due, sign } = await attestedLedger();
  const [refunded, open] = [await paid(), await paid()];
  await seal();
  const first = await attested();
  expect(first).toMatchObject({ since: undefined, attestation: { owed: { count: 2 } } });
  await record(refunded, await final(await giveBack(chain)));
  const late = await paid();
  await seal();
  const second = await attested();
  expect(second).toMatchObject({ since: first.attestation.size, attestation: { owed: { count: 2 } } });
  expect(second.attestation.owed.sha256).not.toBe(first.attestation.owed.sha256);
  const whole = await attested(true);
  expect(whole).toMatchObject({ since: undefined, attestation: { owed: second.attestation.owed } });
  expect(await due()).toEqual([open, late]);
  await attested();
  expect(await sign()).toMatchObject({ kind: 'signed', since: expect.any(Number) });
});

test('events before an attestation are not read again: only a check of everything finds a change of a payment that is not due', async () => {
  const { database, ledger, paid, record, final, seal, attested, due } = await attestedLedger();
  const refunded = await paid();
  await record(refunded, await final(await giveBack(chain)));
  const open = await paid();
  await seal();
  await attested();
  await tamper(database, changeOf(refunded));
  expect(await due()).toEqual([open]);
  expect(await isAsSealed(ledger.pool)).toBe(false);
});

/** Another symbol in the events of a payment. */
const changeOf = (digest: string) => ({
  what: 'the events of a payment',
  words: /./,
  change: (owner: pg.Client) =>
    owner.query(
      `update tollbook.event set data = replace(data, '"symbol":"USDC"', '"symbol":"USDT"') where stream = tollbook.stream_key($1)`,
      [digest],
    ),
});

/** The row of a refunded payment as an insider who wants its refund twice would leave it. */
const forgetRefund = `update tollbook.payment set state = 'dead_lettered', refunded_at = null, refund_transaction = null, refunded_amount = 0,
    refund_due = 'dead_lettered', refund_due_since = (select ended_at from tollbook.paid_call where paid_call.call_id = payment.call_id
      and paid_call.generation = payment.generation)
  where refunded_at is not null`;
const removed = `delete from tollbook.event where type = 'refunded'`;
const moved = `update tollbook.event set stream = tollbook.stream_key('elsewhere'), version = 1 where type = 'refunded'`;

test.each([
  ['removed before the attestation', true, [removed, forgetRefund]],
  ['moved to another stream before the attestation', true, [moved, forgetRefund]],
  ['removed before the attestation, and its row left as it was', true, [removed]],
  ['removed after the attestation', false, [removed, forgetRefund]],
])(
  'a payment is not refunded twice because the event of its refund was %s',
  async (_how, isBefore, changes) => {
    const { database, ledger, paid, record, final, seal, attested, due } = await attestedLedger();
    const digest = await paid();
    await seal();
    if (!isBefore) await attested();
    await record(digest, await final(await giveBack(chain)));
    await seal();
    if (isBefore) await attested();
    expect(await due()).toEqual([]);
    await tamper(database, {
      what: 'a recorded refund',
      words: /./,
      change: async (owner) => {
        for (const statement of changes) await owner.query(statement);
      },
    });
    // no list says to pay it where its row still says that it was refunded
    expect(await due()).toEqual(changes.includes(forgetRefund) ? 'changed' : []);
    const of = { quoteDigest: digest, paymentNonce: await nonceOf(database, digest), operator: 'ada' };
    expect(await startRefund(ledger, of, chainsAt(chain.rpcUrl), verifier)).toMatchObject({
      kind: 'refused',
      code: 'changed',
    });
  },
);

test.each([
  ['removed', 'delete from tollbook.payment where refund_due is not null'],
  ['emptied', 'update tollbook.payment set refund_due = null, refund_due_since = null'],
])('a refund that was due at the attestation is named where its row was %s', async (_how, change) => {
  const { database, ledger, paid, seal, attested, due } = await attestedLedger();
  await paid();
  await seal();
  await attested();
  const { rows } = await database.pool.query<{ seq: number }>(
    'select seq from tollbook.payment where refund_due is not null',
  );
  await tamper(database, { what: 'its row', words: /./, change: (owner) => owner.query(change) });
  expect(await readAttested(ledger.pool, verifier)).toMatchObject({ kind: 'contradicted' });
  expect(await due()).toMatchObject({ unlisted: [rows[0]!.seq] });
});

test('what a stolen gateway records as an attestation is ignored, and an old one that is recorded again does no harm', async () => {
  const { ledger, paid, seal, attested } = await attestedLedger();
  await paid();
  await seal();
  const first = await attested();
  await paid();
  await seal();
  const second = await attested();
  const forger = noteSigner(name, [Buffer.alloc(32, 8)]);
  const none = { count: 0, sha256: Buffer.alloc(32).toString('base64') };
  const forged = signAttestation({ size: 3, root: Buffer.alloc(32), owed: none }, forger);
  for (const note of [forged, first.note]) {
    const { outcome } = await ledger.lane.append({
      stream: attestationStream(name),
      events: [{ type: 'operator_attestation_recorded', data: { size: 3, note, operator: 'mallory' } }],
    });
    expect(outcome).toBe('ok');
  }
  await seal();
  expect(await readAttested(ledger.pool, verifier)).toMatchObject({
    kind: 'attested',
    since: { size: second.attestation.size },
  });
  const [, repeated, ...others] = (await listAttestations(ledger.pool, verifier)).toReversed().slice(1);
  expect(repeated?.attestation).toBeUndefined();
  expect(others).toMatchObject([{ operator: 'mallory', attestation: { size: first.attestation.size } }]);
  const recordOf = (note: string) => recordAttestation(ledger, { note, verifier, operator: 'ada' });
  await expect(recordOf(forged)).rejects.toThrow('signed by another key');
  expect(await recordOf(second.note)).toMatchObject({ kind: 'repeated' });
  const otherLedger = signAttestation({ size: 3, root: Buffer.alloc(32), owed: none }, signer);
  expect(await recordOf(otherLedger)).toMatchObject({ kind: 'refused' });
});

test('a ledger that was changed is attested neither as a whole nor from the last attestation on', async () => {
  const { database, paid, seal, attested, sign } = await attestedLedger();
  const early = await paid();
  await seal();
  await attested();
  const late = await paid();
  await seal();
  await tamper(database, changeOf(late));
  expect(await sign()).toMatchObject({ kind: 'not_sound' });
  expect(await sign(true)).toMatchObject({ kind: 'not_sound' });
  // it is due, so its own events are compared although they are older
  const other = await attestedLedger();
  const due = await other.paid();
  await other.seal();
  await other.attested();
  await tamper(other.database, changeOf(due));
  expect(await other.sign()).toMatchObject({ kind: 'not_sound' });
  expect(early).not.toBe(due);
});

test('an auditor signs, an operator records, and the commands about refunds read what came since', async () => {
  const { database, paid, seal } = await attestedLedger();
  const digest = await paid();
  await seal();
  const env = { DATABASE_URL: database.url };
  const folder = temporaryFolder();
  const [seedFile, out] = [path.join(folder, 'seed'), path.join(folder, 'attestation')];
  writeFileSync(seedFile, `${seed.toString('base64')}\n`);
  const due = () => tollbook(['refunds', 'due', '--attested-by', key], env);
  expect(await due()).toMatchObject({ code: 0, stderr: expect.stringContaining('everything is read') });
  const signed = await tollbook(['attestations', 'sign', name, '--key', seedFile, '--out', out], env);
  expect(signed).toMatchObject({ code: 0, stderr: '' });
  expect(signed.stdout).toContain('(all of them read) with 1 refund due');
  const recorded = await tollbook(
    ['attestations', 'record', '--file', out, '--attested-by', key, '--by', 'ada'],
    env,
  );
  expect(recorded).toMatchObject({ code: 0, stderr: '' });
  await seal();
  const listed = await due();
  expect(listed).toMatchObject({ code: 0, stderr: '' });
  expect(listed.stdout).toContain(digest.slice(0, 10));
  const sealed = ['--require-sealed', '--pubkey', testSigner.verifierKeys[0]];
  expect(await tollbook(['refunds', 'due', '--attested-by', key, ...sealed], env)).toMatchObject({ code: 0 });
  expect(await tollbook(['attestations', 'list', '--attested-by', key], env)).toMatchObject({
    code: 0,
    stdout: expect.stringMatching(/events, 1 refund due, recorded by ada\n$/),
  });
});
