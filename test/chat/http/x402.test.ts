import { ExactEvmScheme } from '@x402/evm/exact/client';
import { UptoEvmScheme } from '@x402/evm/upto/client';
import { decodePaymentResponseHeader, wrapFetchWithPayment, x402Client } from '@x402/fetch';
import OpenAI from 'openai';
import { beforeAll, describe, expect, test } from 'vitest';
import type { ConstantChanges } from '../../../src/base/config/constants.ts';
import { devnetKeys } from '../../../src/devnet/accounts.ts';
import { type ModelUpstreamOptions, startModelUpstream } from '../../../src/devnet/model-upstream.ts';
import { approvePermit2 } from '../../../src/devnet/token.ts';
import { ask, freeModel, oneModel } from '../../support/chat-gateway.ts';
import { useChain } from '../../support/devnet.ts';
import { payTo } from '../../support/gateway.ts';
import { expectIndependent, verifyIndependently } from '../../support/independent.ts';
import { allEvents, expectSoundLedger } from '../../support/invariants.ts';
import { header, offerOf, payer } from '../../support/payer.ts';
import { exportSealed } from '../../support/reconcile.ts';
import { whenOver } from '../../support/shared.ts';
import { signUpto } from '../../support/upto.ts';
import { eventually } from '../../support/wait.ts';
import { soon } from '../../payments/use-cases/settlement-support.ts';
import { startRouteGateway } from '../../jobs/http/routes/support.ts';

const chain = useChain();
beforeAll(() => approvePermit2(chain.chain, chain.token, devnetKeys.payer));

const path = '/v1/chat/completions';
/** 6 tokens at 2.50 dollars and 2 at 10 for a million; an atom is a millionth of a dollar. */
const costOfHello = 35n;
const paidSoFar = () => chain.balance(payTo);

const sale = `
[[routes]]
service_id = 9
job_index = 0
methods = ["POST"]
path = "${path}"
upstream = "chat"
price = "2 USD"
description = "Completions for callers without an account."`;

interface StartOptions {
  readonly timeoutMs?: number;
  readonly constants?: ConstantChanges;
}

async function start(
  model: Partial<ModelUpstreamOptions> = {},
  more = '',
  { timeoutMs = 20_000, constants = {} }: StartOptions = {},
) {
  const upstream = await startModelUpstream({ port: 0, ...model });
  whenOver(() => upstream.close());
  const gateway = await startRouteGateway({
    chain,
    upstream: '',
    routes: `${sale}\ntimeout_ms = ${timeoutMs}\n${more}`,
    tables: oneModel(upstream.url, 'timeout_ms = 120_000'),
    constants,
    change: (text) => `features = ["x402", "chat"]\n${text}`,
  });
  const { database } = gateway;
  const expectSound = () => database.asOwner((owner) => expectSoundLedger(database.db, owner));
  const receiptOf = async (digest: string | undefined) =>
    (await gateway.get(`/x402/receipts/${digest}`)).json;
  return { gateway, database, model: upstream, expectSound, receiptOf };
}

/** It has no scheme but `exact`. */
const exactFetch = wrapFetchWithPayment(
  fetch,
  x402Client.fromConfig({
    schemes: [{ network: 'eip155:*', client: new ExactEvmScheme(payer) }],
    spendControls: false,
  }),
);

const payingFetch = wrapFetchWithPayment(
  fetch,
  x402Client.fromConfig({
    schemes: [{ network: 'eip155:*', client: new UptoEvmScheme(payer) }],
    spendControls: false,
  }),
);

/** OpenAI's client, whose requests are paid by x402's: it has no key. */
const openAi = (url: string, paying: typeof fetch = payingFetch) =>
  new OpenAI({
    baseURL: `${url}/v1`,
    apiKey: 'none',
    defaultHeaders: { authorization: null },
    fetch: paying,
    maxRetries: 0,
  });

describe('a completion for a caller without an account', () => {
  test.each(['the address of chat', 'the address of routes'])(
    'at %s is paid by the official clients with what it has cost',
    async (where) => {
      const { gateway, expectSound, database } = await start();
      const before = await paidSoFar();
      const url = where === 'the address of chat' ? gateway.url : gateway.routesUrl;
      const { data, response } = await openAi(url).chat.completions.create(ask('hello there')).withResponse();
      expect(data.choices[0]?.message.content).toBe('hello there');
      const settled = decodePaymentResponseHeader(response.headers.get('payment-response') ?? '');
      expect(settled).toMatchObject({ success: true, amount: String(costOfHello) });
      expect(await paidSoFar()).toBe(before + costOfHello);
      const events = await expectSound();
      expect(events.find(({ type }) => type === 'chat_admitted')?.data).toMatchObject({ caller: 'x402' });
      const { file, checkpoint } = await exportSealed(database);
      expectIndependent(await verifyIndependently(file, [checkpoint]), true);
    },
  );

  test('as a stream comes in pieces, and its cost is taken after its end', async () => {
    const { gateway, database, expectSound } = await start();
    const before = await paidSoFar();
    const stream = await openAi(gateway.url).chat.completions.create({
      ...ask('one two three'),
      stream: true,
    });
    const chunks = await Array.fromAsync(stream);
    expect(chunks.map(({ choices }) => choices[0]?.delta.content ?? '').join('')).toBe('one two three');
    await soon(database, async () =>
      expect((await allEvents(database.db)).map(({ type }) => type)).toContain('completed'),
    );
    // 7 tokens and 3
    expect(await paidSoFar()).toBe(before + 48n);
    await expectSound();
  });

  test('is offered its own highest cost, and a payment for another request is refused', async () => {
    const { gateway } = await start();
    const post = (body: unknown, headers = {}) =>
      gateway.post(path, {
        body: JSON.stringify(body),
        headers: { 'content-type': 'application/json', ...headers },
      });
    const short = await post({ ...ask('hello'), max_tokens: 10 });
    const long = await post({ ...ask('hello'), max_tokens: 90 });
    expect([short.status, short.json]).toMatchObject([402, { error: { code: 'insufficient_funds' } }]);
    const [one, other] = [offerOf(short), offerOf(long)].map(({ accepts }) =>
      BigInt(accepts[0]?.amount ?? 0),
    );
    expect(other! - one!).toBe(800n);
    const payment = await signUpto(offerOf(short));
    const before = await paidSoFar();
    const refused = await post({ ...ask('hello'), max_tokens: 90 }, header(payment));
    expect(refused).toMatchObject({ status: 402, json: { reason: 'inputs_hash_mismatch' } });
    expect(await paidSoFar()).toBe(before);
  });

  test('that its model does not give is not charged', async () => {
    const { gateway, model, expectSound } = await start();
    model.failWith('status_500');
    const before = await paidSoFar();
    await expect(openAi(gateway.url).chat.completions.create(ask('hello there'))).rejects.toMatchObject({
      status: expect.toSatisfy((status: number) => status >= 500),
    });
    expect(await paidSoFar()).toBe(before);
    await expectSound();
  });

  test('whose client leaves in the middle is paid for, and is there for the same payment', async () => {
    const { gateway, database, receiptOf, expectSound } = await start({ pieceMs: 30 });
    const body = JSON.stringify({ ...ask('one two three four five six'), stream: true });
    const type = { 'content-type': 'application/json' };
    const payment = await signUpto(offerOf(await gateway.post(path, { body, headers: type })));
    const headers = { ...type, ...header(payment) };
    const before = await paidSoFar();
    const leaving = new AbortController();
    const first = await fetch(`${gateway.url}${path}`, {
      method: 'POST',
      body,
      headers,
      signal: leaving.signal,
    });
    await first.body!.getReader().read();
    leaving.abort();
    await soon(database, async () =>
      expect(await receiptOf(payment.accepted.extra['quoteDigest'])).toMatchObject({ state: 'completed' }),
    );
    expect(await paidSoFar()).toBeGreaterThan(before);
    const again = await gateway.post(path, { body, headers });
    expect(again.text).toContain('six');
    expect(again.text.trimEnd().endsWith('data: [DONE]')).toBe(true);
    await expectSound();
  });

  test('whose model breaks off costs what was delivered', async () => {
    const { gateway, model, database, receiptOf, expectSound } = await start();
    model.failWith('cut_after_first_token');
    const before = await paidSoFar();
    const response = await payingFetch(`${gateway.url}${path}`, {
      method: 'POST',
      body: JSON.stringify({ ...ask('word '.repeat(40)), stream: true }),
      headers: { 'content-type': 'application/json' },
    });
    expect(await response.text()).not.toContain('[DONE]');
    const digest = /receipts\/(0x[0-9a-f]{64})/.exec(response.headers.get('link') ?? '')?.[1];
    await soon(database, async () => expect(await receiptOf(digest)).toMatchObject({ state: 'completed' }));
    const taken = (await paidSoFar()) - before;
    expect(taken).toBeGreaterThan(0n);
    // the whole answer costs 400 alone
    expect(taken).toBeLessThan(300n);
    await expectSound();
  });

  test.each([
    ['is longer than can be kept', { constants: { delivery: { maxResultBytes: 20_000 } } }, undefined],
    ['takes longer than it may', { timeoutMs: 3_000 }, 'stall_mid_stream'],
  ] as const)(
    'as a stream that %s ends with an error, and costs what was delivered',
    async (_, options, fault) => {
      const { gateway, model, database, receiptOf, expectSound } = await start({}, '', options);
      model.failWith(fault);
      const body = JSON.stringify({ ...ask('word '.repeat(400)), stream: true });
      const type = { 'content-type': 'application/json' };
      const payment = await signUpto(offerOf(await gateway.post(path, { body, headers: type })));
      const headers = { ...type, ...header(payment) };
      const before = await paidSoFar();
      const first = await gateway.post(path, { body, headers });
      expect(first.text).toContain('data: {"error"');
      expect(first.text).not.toContain('[DONE]');
      await soon(database, async () =>
        expect(await receiptOf(payment.accepted.extra['quoteDigest'])).toMatchObject({ state: 'completed' }),
      );
      const taken = (await paidSoFar()) - before;
      expect(taken).toBeGreaterThan(0n);
      // the whole answer costs 4,000 alone
      expect(taken).toBeLessThan(4_000n);
      expect((await gateway.post(path, { body, headers })).text).toBe(first.text);
      await expectSound();
    },
  );

  test('whose model answers too late is given up at its time limit, and not charged', async () => {
    const { gateway, model, expectSound } = await start({}, '', { timeoutMs: 2_000 });
    model.failWith('hang');
    const before = await paidSoFar();
    await expect(openAi(gateway.url).chat.completions.create(ask('hello there'))).rejects.toMatchObject({
      status: 502,
    });
    await eventually(() => expect(model.calls[0]?.state).toBe('dropped'));
    expect(await paidSoFar()).toBe(before);
    await expectSound();
  });

  test('at a price for its model is not charged if the model breaks off', async () => {
    const { gateway, model, expectSound } = await start({}, 'model_prices = { "vendor/large" = "0.05 USD" }');
    model.failWith('cut_after_first_token');
    const before = await paidSoFar();
    const response = await exactFetch(`${gateway.url}${path}`, {
      method: 'POST',
      body: JSON.stringify({ ...ask('hello there'), stream: true }),
      headers: { 'content-type': 'application/json' },
    });
    expect(response.status).toBe(502);
    expect(await paidSoFar()).toBe(before);
    await expectSound();
  });

  test.each([false, true])(
    'at a price for its model is paid by exact, as a stream: %s, and no other model is sold',
    async (stream) => {
      const { gateway, expectSound } = await start({}, 'model_prices = { "vendor/large" = "0.05 USD" }');
      const before = await paidSoFar();
      const response = await exactFetch(`${gateway.url}${path}`, {
        method: 'POST',
        body: JSON.stringify({ ...ask('hello there'), stream }),
        headers: { 'content-type': 'application/json' },
      });
      const settled = decodePaymentResponseHeader(response.headers.get('payment-response') ?? '');
      expect(settled).toMatchObject({ success: true, amount: '50000' });
      expect(await response.text()).toContain(stream ? '[DONE]' : 'hello there');
      expect(await paidSoFar()).toBe(before + 50_000n);
      const other = await gateway.paid.post(path, {
        body: JSON.stringify(ask('hello', freeModel)),
        headers: { 'content-type': 'application/json' },
      });
      expect(other).toMatchObject({ status: 400, json: { code: 'invalid_request' } });
      await expectSound();
    },
  );

  test('is offered to a client that has used up what is free, and has refused many offers', async () => {
    const { gateway } = await start();
    const type = { 'content-type': 'application/json' };
    const post = (model?: string) =>
      gateway.post(path, { body: JSON.stringify(ask('hello', model)), headers: type });
    for (let count = 0; count < 5; count++) expect((await post(freeModel)).status).toBe(200);
    expect((await post(freeModel)).status).toBe(429);
    for (let count = 0; count < 12; count++)
      expect((await post()).headers.get('payment-required')).not.toBeNull();
  });

  test('of a free model needs no payment, and a request that no payment changes gets no offer', async () => {
    const { gateway } = await start();
    const free = await openAi(gateway.url, fetch).chat.completions.create(ask('hello', freeModel));
    expect(free.choices[0]?.message.content).toBe('hello');
    const sold = await gateway.paid.post(path, {
      body: JSON.stringify(ask('hello', freeModel)),
      headers: { 'content-type': 'application/json' },
    });
    expect(sold).toMatchObject({ status: 400, json: { code: 'invalid_request' } });
    const wrong = await gateway.post(path, {
      body: JSON.stringify({ ...ask('hello'), max_tokens: 10_000_000 }),
      headers: { 'content-type': 'application/json' },
    });
    expect(wrong.status).toBe(400);
    expect(wrong.headers.get('payment-required')).toBeNull();
  });
});
