import { writeFileSync } from 'node:fs';
import path from 'node:path';
import { generatePrivateKey, privateKeyToAccount } from 'viem/accounts';
import { expect, test } from 'vitest';
import { devnetKeys } from '../../../../src/devnet/accounts.ts';
import { smartWallet } from '../../../../src/devnet/contracts.ts';
import type { Hex } from '../../../../src/base/values/primitives.ts';
import { requeueCall } from '../../../../src/calls/use-cases/requeue-call.ts';
import { startRefund } from '../../../../src/finance/use-cases/refunds/send-refund.ts';
import { decideRequest } from '../../../../src/finance/use-cases/refunds/decide-request.ts';
import { listRequests } from '../../../../src/finance/use-cases/refunds/list-requests.ts';
import { listRefundsDue } from '../../../../src/finance/use-cases/refunds/list-refunds-due.ts';
import { requestRefund } from '../../../../src/jobs/use-cases/request-refund.ts';
import { overlayLane } from '../../../../src/ledger/store/lane.ts';
import { pruneRows } from '../../../../src/ledger/store/pruning.ts';
import { eraseRefundReasons } from '../../../../src/payments/store/refund-requests.ts';
import { deployContract } from '../../../support/contracts.ts';
import { useChain } from '../../../support/devnet.ts';
import { expectSoundLedger } from '../../../support/invariants.ts';
import { logLines } from '../../../support/log-lines.ts';
import { payFor, payer } from '../../../support/payer.ts';
import { root } from '../../../support/pages.ts';
import { spawnProgram, temporaryFolder, tollbook } from '../../../support/program.ts';
import { askForRefund, refundRequestTypes } from '../../../support/refund-request.ts';
import { eventually } from '../../../support/wait.ts';
import { giveBack, payerAddress, refunding, reluctant } from './support.ts';

const chain = useChain();
const job = '/x402/jobs/1/0';
const words = 'The answer never came \u2013 <b>sorry</b>';

async function start(options: Parameters<typeof refunding>[1] = {}) {
  const world = await refunding(chain, { isDocumented: true, ...options });
  const { database, gateway } = world;
  const sound = () => database.asOwner((owner) => expectSoundLedger(database.db, owner));
  const ask = (digest: string, reason = words, by: Parameters<typeof askForRefund>[3] = {}) =>
    askForRefund(gateway, digest, reason, by);
  /** The receipt; with its token what only its payer sees. */
  const receipt = async (digest: string, token?: string) =>
    (
      await gateway.get(
        `/x402/receipts/${digest}`,
        token === undefined ? {} : { authorization: `Bearer ${token}` },
      )
    ).json;
  /** Pays for a call, and waits until one of its attempts has failed. */
  const failing = async () => {
    const { json } = await payFor(gateway, job, 'x');
    const digest = json.quote_digest as Hex;
    await eventually(async () => expect(await world.typesOf(digest)).toContain('delivery_failed'));
    return { digest, token: json.receipt_token as string };
  };
  return { ...world, sound, ask, receipt, failing };
}

/** A runner whose calls fail, and are tried again half an hour later. */
const unwell = {
  react: () => ({ status: 500, body: 'later' }),
  constants: { delivery: { backoffBaseMs: 1_800_000, backoffCapMs: 3_600_000 } },
} as const;

test('the payer of a dead letter asks for its refund once, and its reason stands beside what is due', async () => {
  const { lines, logger } = logLines();
  const { database, owed, ask, receipt, typesOf, record, final, sound } = await start({ logger });
  const { quoteDigest: digest } = await owed();
  const first = await ask(digest);
  expect(first).toMatchObject({
    status: 200,
    json: {
      quote_digest: digest,
      refund_request: { state: 'due' },
      receipt_url: expect.stringMatching(digest),
    },
  });
  expect(first.json.refund_request).not.toHaveProperty('reason');
  expect((await ask(digest)).json).toEqual(first.json);
  expect(await ask(digest, 'another reason')).toMatchObject({
    status: 409,
    json: { code: 'refund_requested_before' },
  });
  expect((await typesOf(digest)).filter((type) => type.startsWith('refund'))).toEqual(['refund_requested']);
  expect((await receipt(digest)).refund_request).toEqual(first.json.refund_request);
  const env = { DATABASE_URL: database.url };
  for (const command of ['due', 'requests'])
    expect(await tollbook(['refunds', command], env)).toMatchObject({
      code: 0,
      stdout: expect.stringContaining(
        `its payer asks for it since ${first.json.refund_request.requested_at}: ${JSON.stringify(words)}`,
      ),
    });
  expect(
    await tollbook(['refunds', 'decline', '--quote-digest', digest, '--why', 'no', '--by', 'ada'], env),
  ).toMatchObject({
    code: 2,
    stderr: expect.stringContaining('its refund is due whatever is decided'),
  });
  await record(digest, await final(await giveBack(chain)));
  expect((await receipt(digest)).refund_request).toMatchObject({ state: 'refunded' });
  expect((await ask(digest)).json.refund_request).toMatchObject({ state: 'refunded' });
  expect((await tollbook(['refunds', 'requests'], env)).stdout).toBe('No payer asks for a refund.\n');
  expect(JSON.stringify(lines)).not.toContain('never came');
  await sound();
});

test('only the payer’s signature over its reason, for its chain, asks for a refund, and others learn nothing of the payment', async () => {
  const { gateway, owed, ask, typesOf } = await start();
  const { quoteDigest: digest } = await owed();
  const stranger = privateKeyToAccount(generatePrivateKey());
  for (const by of [{ account: stranger }, { chainId: 8_453 }, { signed: 'another reason' }])
    expect(await ask(digest, words, by)).toMatchObject({
      status: 401,
      json: { code: 'invalid_payer_signature' },
    });
  expect((await ask(`0x${'12'.repeat(32)}`)).json).toMatchObject({ code: 'receipt_not_found' });
  const { json } = await gateway.post(job, { body: 'x' });
  const unpaid =
    (json.accepts as { extra: { quoteDigest?: string } }[])[0]?.extra.quoteDigest ?? `0x${'00'.repeat(32)}`;
  expect((await ask(unpaid)).json).toMatchObject({ code: 'receipt_not_found' });
  expect(await typesOf(digest)).not.toContain('refund_requested');
});

test('a reason is one line of 1 to 500 characters, and others are refused', async () => {
  const { gateway } = await start();
  const others = ['', '   ', 'x'.repeat(501), 'a\u001b[2Jb', 'a\nb', 'a\u2028b', 'a\ud800'];
  for (const reason of others) {
    const answer = await gateway.post(`/x402/receipts/0x${'12'.repeat(32)}/refund-request`, {
      body: JSON.stringify({ reason, signature: '0x00' }),
      headers: { 'content-type': 'application/json' },
    });
    expect([reason, answer.status, answer.json.code]).toEqual([reason, 400, 'invalid_request']);
  }
});

test('the program examples/refund-request.ts asks for the refund of a payment', async () => {
  const { gateway, owed, receipt } = await start();
  const { quoteDigest } = await owed();
  const devnet = path.join(temporaryFolder(), 'devnet.json');
  const facts = { gateway_url: gateway.url, payer_private_key: devnetKeys.payer };
  writeFileSync(devnet, JSON.stringify(facts));
  const command = [process.execPath, 'examples/refund-request.ts', quoteDigest, words];
  const { code, stdout, stderr } = await spawnProgram(command, root, { DEVNET: devnet }).ended;
  expect({ code, stderr }).toEqual({ code: 0, stderr: '' });
  expect(stdout).toMatch(/^200 .*"state":"due"/);
  expect((await receipt(quoteDigest)).refund_request).toMatchObject({ state: 'due' });
});

test('the contract that paid asks for the refund by the signature of its owner', async () => {
  const { gateway, stateOf, ask } = await start();
  const wallet = await deployContract(chain.rpcUrl, smartWallet, [payer.address]);
  await chain.mint(wallet, 10_000_000n);
  const { json } = await payFor(gateway, job, 'x', { signed: { from: wallet } });
  await eventually(async () => expect(await stateOf(json.quote_digest)).toBe('dead_lettered'));
  const stranger = privateKeyToAccount(generatePrivateKey());
  expect((await ask(json.quote_digest, words, { account: stranger })).status).toBe(401);
  expect(await ask(json.quote_digest)).toMatchObject({
    status: 200,
    json: { refund_request: { state: 'due' } },
  });
});

test('a call whose attempts fail is given up by the grant of its refund, and stays in the queue if it is declined', async () => {
  const { database, ledger, failing, ask, receipt, typesOf, sound } = await start(unwell);
  const [granted, declined] = [await failing(), await failing()];
  for (const { digest } of [granted, declined])
    expect((await ask(digest)).json).toMatchObject({ refund_request: { state: 'open' } });
  const env = { DATABASE_URL: database.url };
  const listed = await tollbook(['refunds', 'requests'], env);
  expect(listed.stdout.match(/: decide it$/gm)).toHaveLength(2);
  expect(
    await tollbook(['refunds', 'grant', '--quote-digest', granted.digest, '--by', 'ada'], env),
  ).toMatchObject({ code: 0, stdout: expect.stringContaining('granted: it is due') });
  const why = 'it is tried again';
  expect(
    await tollbook(
      ['refunds', 'decline', '--quote-digest', declined.digest, '--why', why, '--by', 'bob'],
      env,
    ),
  ).toMatchObject({ code: 0, stdout: expect.stringContaining('declined') });
  expect((await typesOf(granted.digest)).slice(-3)).toEqual([
    'dead_lettered',
    'operator_discarded',
    'refund_request_granted',
  ]);
  expect(await receipt(granted.digest)).toMatchObject({
    state: 'dead_lettered',
    refund_request: { state: 'granted', decided_at: expect.any(String) },
  });
  expect(await receipt(declined.digest, declined.token)).toMatchObject({
    state: expect.stringMatching(/enqueued|delivered/),
    refund_request: { state: 'declined', reason: words, why },
  });
  // what operators and payers wrote is not for everyone who has the digest
  expect((await receipt(declined.digest)).refund_request).not.toMatchObject({ why });
  const again = await decideRequest(ledger, { kind: 'grant', quoteDigest: declined.digest, operator: 'ada' });
  expect(again).toEqual({ kind: 'refused', code: 'not_requested' });
  expect((await ask(declined.digest)).json.refund_request).toMatchObject({ state: 'declined' });
  await eventually(async () => {
    const { rows } = await listRefundsDue(database.pool, 0, 10);
    const due = rows.map((row) => [row.quote_digest, row.why, row.requested?.reason]);
    expect(due).toEqual([[granted.digest, 'dead_lettered', words]]);
  });
  await sound();
});

test('a call under way that has not failed, and one that was delivered, have no refund to be asked for', async () => {
  let answer!: () => void;
  const answered = new Promise<void>((resolve) => (answer = resolve));
  const { gateway, ask, stateOf, typesOf } = await start({
    react: async () => (await answered, { status: 200, body: 'done' }),
  });
  const { json } = await payFor(gateway, job, 'x');
  expect(await ask(json.quote_digest)).toMatchObject({ status: 409, json: { code: 'refund_not_failed' } });
  answer();
  await eventually(async () => expect(await stateOf(json.quote_digest)).toBe('completed'));
  expect(await ask(json.quote_digest)).toMatchObject({ status: 409, json: { code: 'refund_delivered' } });
  expect(await typesOf(json.quote_digest)).not.toContain('refund_requested');
});

test('a request that waits for its append while an operator sends the refund is recorded beside it', async () => {
  const { ledger, chains, owed, typesOf, sound, ports } = await withGate();
  const { quoteDigest, ...of } = await owed();
  const asked = ports.ask(quoteDigest);
  await ports.untilWaiting();
  expect(await startRefund(ledger, { quoteDigest, ...of }, chains)).toMatchObject({ kind: 'started' });
  ports.open();
  expect(await asked).toMatchObject({ kind: 'requested', refundRequest: { state: 'due' } });
  expect((await typesOf(quoteDigest)).slice(-2)).toEqual(['refund_started', 'refund_requested']);
  await sound();
});

test('a call that is sent again and delivered while its payer asks is not refunded', async () => {
  const { ledger, owed, typesOf, stateOf, sound, ports } = await withGate();
  const { quoteDigest, callId } = await owed();
  const asked = ports.ask(quoteDigest);
  await ports.untilWaiting();
  expect(await requeueCall(ledger, callId)).toEqual({ kind: 'requeued' });
  await eventually(async () => expect(await stateOf(quoteDigest)).toBe('completed'));
  ports.open();
  expect(await asked).toEqual({ kind: 'refused', code: 'refund_delivered' });
  expect(await typesOf(quoteDigest)).not.toContain('refund_requested');
  await sound();
});

test('a call that is delivered after the request ends it, and an operator who grants it then is told', async () => {
  const { ledger, owed, ask, receipt, stateOf, typesOf, sound } = await start({ react: reluctant });
  const { quoteDigest, callId } = await owed();
  await ask(quoteDigest);
  await eventually(async () =>
    expect(await listRequests(ledger, 10)).toMatchObject([
      { quote_digest: quoteDigest, asked: { state: 'due' } },
    ]),
  );
  expect(await requeueCall(ledger, callId)).toEqual({ kind: 'requeued' });
  await eventually(async () => expect(await stateOf(quoteDigest)).toBe('completed'));
  await eventually(async () => expect(await listRequests(ledger, 10)).toEqual([]));
  expect(await decideRequest(ledger, { kind: 'grant', quoteDigest, operator: 'ada' })).toEqual({
    kind: 'refused',
    code: 'not_requested',
  });
  expect((await receipt(quoteDigest)).refund_request).toMatchObject({ state: 'delivered' });
  expect(await typesOf(quoteDigest)).not.toContain('refund_request_granted');
  await sound();
});

test('a refund is not granted while a runner has the call', async () => {
  let answer!: () => void;
  const answered = new Promise<void>((resolve) => (answer = resolve));
  let called!: () => void;
  const withRunner = new Promise<void>((resolve) => (called = resolve));
  const { ledger, owed, ask, stateOf, sound } = await start({
    react: async ({ attempt }) => {
      if (attempt === 1) return { status: 400, body: 'no such model' };
      called();
      await answered;
      return { status: 200, body: 'done' };
    },
  });
  const { quoteDigest, callId } = await owed();
  await ask(quoteDigest);
  expect(await requeueCall(ledger, callId)).toEqual({ kind: 'requeued' });
  await withRunner;
  expect(await decideRequest(ledger, { kind: 'grant', quoteDigest, operator: 'ada' })).toEqual({
    kind: 'refused',
    code: 'with_runner',
  });
  answer();
  await eventually(async () => expect(await stateOf(quoteDigest)).toBe('completed'));
  await sound();
});

test('of a grant and a decline at the same moment one is recorded', async () => {
  const { ledger, failing, ask, typesOf, sound } = await start(unwell);
  const { digest: quoteDigest } = await failing();
  await ask(quoteDigest);
  const kinds = await Promise.all([
    decideRequest(ledger, { kind: 'grant', quoteDigest, operator: 'ada' }),
    decideRequest(ledger, { kind: 'decline', quoteDigest, operator: 'bob', why: 'no' }),
  ]);
  expect(kinds.map(({ kind }) => kind).toSorted()).toEqual(['decided', 'refused']);
  const decisions = (await typesOf(quoteDigest)).filter((type) => type.startsWith('refund_request_'));
  expect(decisions).toHaveLength(1);
  await sound();
});

test('what a payer wrote is kept while an operator has to read it, then deleted after its time, or with the person', async () => {
  const { database, ledger, failing, ask, receipt } = await start(unwell);
  const { pool } = database;
  const [first, second] = [await failing(), await failing()];
  for (const { digest } of [first, second]) await ask(digest);
  await eventually(async () => expect(await listRequests(ledger, 10)).toHaveLength(2));
  await database.asOwner((owner) =>
    owner.query("update tollbook.refund_reason set created_at = created_at - interval '31 days'"),
  );
  expect(await pruneRows(pool, 'refund_reasons', 30 * 86_400, 10)).toBe(0);
  await decideRequest(ledger, { kind: 'decline', quoteDigest: first.digest, operator: 'ada', why: 'no' });
  await eventually(async () => expect(await pruneRows(pool, 'refund_reasons', 30 * 86_400, 10)).toBe(1));
  expect((await receipt(first.digest, first.token)).refund_request).not.toHaveProperty('reason');
  expect(await eraseRefundReasons(pool, [`0x${'7'.repeat(40)}`], 10)).toBe(0);
  expect(await eraseRefundReasons(pool, [payerAddress], 10)).toBe(1);
  expect(await listRequests(ledger, 10)).toMatchObject([{ asked: { state: 'open', reason: undefined } }]);
});

/** A dead letter, and a request whose append waits until the gate is open. */
async function withGate() {
  const world = await start({ react: reluctant });
  const { ledger, chains } = world;
  let open!: () => void;
  const gate = new Promise<void>((resolve) => (open = resolve));
  let isWaiting = false;
  const append: typeof ledger.lane.append = async (command, options) => {
    isWaiting = true;
    await gate;
    return ledger.lane.append(command, options);
  };
  const context = {
    ...ledger,
    lane: overlayLane(ledger.lane, { append }),
    chains: chains as Parameters<typeof requestRefund>[0]['chains'],
    contractSignatures: {
      isValidSignature: () => Promise.reject(new Error('a key has signed')),
      isValidWrapped: () => Promise.reject(new Error('a key has signed')),
      close: async () => {},
    },
    facilitators: { deploysThrough: () => false } as unknown as Parameters<
      typeof requestRefund
    >[0]['facilitators'],
    log: logLines().logger,
  };
  const ask = async (digest: Hex) => {
    const signature = await payer.signTypedData({
      domain: { name: 'Tollbook', version: '1', chainId: 84_532 },
      types: refundRequestTypes,
      primaryType: 'RefundRequest',
      message: { quoteDigest: digest, reason: words },
    });
    return requestRefund(context, digest, { reason: words, signature });
  };
  const untilWaiting = () => eventually(() => Promise.resolve(expect(isWaiting).toBe(true)));
  return { ...world, ports: { ask, open, untilWaiting } };
}
