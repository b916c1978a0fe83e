import { createTestClient, http } from 'viem';
import { generatePrivateKey } from 'viem/accounts';
import { expect, test } from 'vitest';
import { prepaidContractAddress } from '../../../../src/devnet/prepaid-contract.ts';
import { spendAuthHash } from '../../../../src/accounts/rules/spend/spend-auth.ts';
import { freeModel, paidModel } from '../../../support/chat-gateway.ts';
import { operator, signSpend, spendHeader } from '../../../support/spend.ts';
import { startRpcProxy } from '../../../support/rpc-proxy.ts';
import type { TestDatabase } from '../../../support/database.ts';
import {
  ask,
  chat,
  codeOf,
  expectSpendEvents,
  says,
  secret,
  spendEventsOf,
  useSpendChain,
} from '../../../support/spend-gateway.ts';
import { eventually } from '../../../support/wait.ts';

const spends = useSpendChain();
const node = () => createTestClient({ mode: 'anvil', transport: http(spends.chain.rpcUrl) });
const served = ['spend_accepted', 'spend_authorized', 'spend_earned', 'spend_paid_out'];

test('a completion is paid on the chain: the account is debited and the operator has the amount', async () => {
  const gateway = await spends.gateway();
  const account = await spends.account(3_000_000n);
  const auth = await account.sign();
  const before = await spends.chain.balance(operator);
  const response = await ask(gateway, auth);
  expect(response.status).toBe(200);
  expect(response.headers.get('x-ratelimit-limit')).toBe('120');
  expect(await response.json()).toMatchObject({ choices: [{ message: { content: 'one two three' } }] });
  await eventually(() => expectSpendEvents(gateway, auth, served));
  expect(await spends.chain.balance(operator)).toBe(before + 1_000_000n);
  await spends.withCredits(async (credits) => {
    const { value } = (await credits.getAccount(auth.commitment)) as { value: unknown };
    expect(value).toMatchObject({ balance: 2_000_000n, nonce: 1n });
  });
});

test('a streamed completion is paid on the chain', async () => {
  const gateway = await spends.gateway();
  const auth = await (await spends.account()).sign();
  const client = gateway.client(undefined, {
    defaultHeaders: { authorization: null, 'x-payment-signature': spendHeader(auth) },
  });
  const { model, max_tokens } = chat();
  const messages = [...says('one two three')];
  const stream = await client.chat.completions.create({ model, max_tokens, messages, stream: true });
  let text = '';
  for await (const chunk of stream) text += chunk.choices[0]?.delta.content ?? '';
  expect(text).toBe('one two three');
  await eventually(() => expectSpendEvents(gateway, auth, served));
});

test('the upstream is not called before the spend has landed, and a repeated request continues', async () => {
  const gateway = await spends.gateway({ times: { authorizeTimeoutMs: 300 } });
  const auth = await (await spends.account()).sign();
  const stalled = await spends.stall();
  try {
    expect(await codeOf(await ask(gateway, auth, chat(), secret))).toBe('503 chain_unavailable');
    expect(gateway.model.calls).toHaveLength(0);
    await expectSpendEvents(gateway, auth, ['spend_accepted', 'spend_released']);
  } finally {
    await stalled.resume();
  }
  await node().mine({ blocks: 1 });
  await eventually(async () => expect((await ask(gateway, auth, chat(), secret)).status).toBe(200));
  expect(gateway.model.calls).toHaveLength(1);
});

test('a replayed spend buys nothing: the same request gets the earlier generation id, another body a nonce error', async () => {
  const gateway = await spends.gateway();
  const auth = await (await spends.account()).sign();
  const first = await ask(gateway, auth, chat(), secret);
  const id = first.headers.get('x-request-id') ?? 'none';
  const again = await ask(gateway, auth, chat(), secret);
  expect(again.headers.get('x-should-retry')).toBe('false');
  const { error } = (await again.json()) as { error: { code: string; message: string } };
  expect({ status: again.status, ...error }).toMatchObject({
    status: 409,
    code: 'nonce_replay',
    message: expect.stringContaining(id),
  });
  expect(await codeOf(await ask(gateway, auth, chat('something else')))).toBe('400 nonce_replay');
  // a stranger who guesses the body learns nothing
  expect(await codeOf(await ask(gateway, auth))).toBe('400 nonce_replay');
  const upper = { ...auth, commitment: `0x${auth.commitment.slice(2).toUpperCase()}` as const };
  expect(await codeOf(await ask(gateway, upper, chat('something else')))).toBe('400 nonce_replay');
  await eventually(() => expectSpendEvents(gateway, auth, served));
  expect(await codeOf(await ask(gateway, auth, chat(), secret))).toBe('409 nonce_replay');
  expect(gateway.model.calls).toHaveLength(1);
});

test('of twenty concurrent requests with one spend in two processes one is answered', async () => {
  const one = await spends.gateway();
  const other = await spends.gateway({ database: one.database });
  const auth = await (await spends.account()).sign();
  const before = await spends.chain.balance(operator);
  const answers = await Promise.all(
    Array.from({ length: 20 }, (_, index) => ask(index % 2 === 0 ? one : other, auth)),
  );
  const statuses = answers.map(({ status }) => status);
  expect(statuses.filter((status) => status === 200)).toHaveLength(1);
  expect(statuses.filter((status) => status === 409)).toHaveLength(19);
  expect(one.model.calls.length + other.model.calls.length).toBe(1);
  await eventually(() => expectSpendEvents(one, auth, served));
  expect(await spends.chain.balance(operator)).toBe(before + 1_000_000n);
});

test('a spend is in progress while its answer is being written, and the client may retry', async () => {
  const gateway = await spends.gateway({ model: { slowMs: 1_500 } });
  const auth = await (await spends.account()).sign();
  const body = chat('fault:slow_first_byte');
  const first = ask(gateway, auth, body);
  await eventually(() => expect(gateway.model.calls).toHaveLength(1));
  const again = await ask(gateway, auth, body);
  expect(again.headers.get('x-should-retry')).toBeNull();
  expect(await codeOf(again)).toBe('409 spend_in_progress');
  expect((await first).status).toBe(200);
});

test('concurrent spends of one account are served in the order of their nonces', async () => {
  const gateway = await spends.gateway();
  const account = await spends.account();
  const nonces = [4n, 2n, 0n, 3n, 1n, 5n];
  const auths = await Promise.all(nonces.map((nonce) => account.sign({ nonce })));
  const answers = await Promise.all(auths.map((auth) => ask(gateway, auth)));
  expect(answers.map(({ status }) => status)).toEqual(nonces.map(() => 200));
  const events = await spendEventsOf(gateway.database, account);
  const landed = events.flatMap((event) => (event.type === 'spend_authorized' ? event.data.nonce : []));
  expect(landed).toEqual(['0', '1', '2', '3', '4', '5']);
});

test('a nonce ahead of its account polls the chain with a back-off', async () => {
  const proxy = await startRpcProxy(spends.chain.rpcUrl);
  let questions = 0;
  proxy.lie = ({ method }) => void (questions += method === 'eth_call' ? 1 : 0);
  const gateway = await spends.gateway({ times: { nonceWaitMs: 3_000 }, rpcUrl: proxy.url });
  const ahead = await (await spends.account()).sign({ nonce: 1n });
  expect(await codeOf(await ask(gateway, ahead))).toBe('402 authorization_failed');
  expect(questions).toBeLessThan(15);
});

test('a landed spend whose request failed is not charged, and pays only for that request, only for its sender', async () => {
  const gateway = await spends.gateway();
  const account = await spends.account();
  const auth = await account.sign();
  const before = await spends.chain.balance(operator);
  gateway.model.failWith('status_503');
  expect((await ask(gateway, auth, chat(), secret)).status).toBe(502);
  gateway.model.failWith(undefined);
  await eventually(() =>
    expectSpendEvents(gateway, auth, ['spend_accepted', 'spend_authorized', 'spend_released']),
  );
  await spends.withCredits(async (credits) => {
    expect(await credits.getSpendAuth(spendAuthHash(auth))).toMatchObject({ value: { claimed: false } });
  });
  // what a stranger can make of the calldata: another request, or the same one guessed
  expect(await codeOf(await ask(gateway, auth, chat('another')))).toBe('400 nonce_replay');
  expect(await codeOf(await ask(gateway, auth, chat('another'), 'a-guessed-secret'))).toBe(
    '400 nonce_replay',
  );
  expect(await codeOf(await ask(gateway, auth))).toBe('400 nonce_replay');
  expect(await codeOf(await ask(gateway, auth, chat(), 'a-guessed-secret'))).toBe('400 nonce_replay');
  expect(await codeOf(await ask(gateway, auth, chat('another'), secret))).toBe('400 nonce_replay');
  // a stranger's requests count against the stranger's address, not against the account
  const { rows } = await gateway.database.pool.query(
    "select left(subject, 8) as subject, cardinality(hits) as hits from tollbook.rate_window where subject ~ '^(refused|spend):' order by 1",
  );
  expect(rows).toEqual([
    { subject: 'refused:', hits: 5 },
    { subject: expect.stringMatching(/^spend:/), hits: 1 },
  ]);
  await eventually(async () => expect((await ask(gateway, auth, chat(), secret)).status).toBe(200));
  await eventually(async () => expect(await spends.chain.balance(operator)).toBe(before + auth.amount));
});

test('a landed spend that was sent without a secret pays for nothing once its request failed', async () => {
  const gateway = await spends.gateway();
  const account = await spends.account();
  const auth = await account.sign();
  gateway.model.failWith('bad_request');
  expect((await ask(gateway, auth)).status).toBe(400);
  gateway.model.failWith(undefined);
  const again = await ask(gateway, auth);
  expect(again.headers.get('x-should-retry')).toBe('false');
  expect(await codeOf(again)).toBe('409 nonce_replay');
  expect(await codeOf(await ask(gateway, auth, chat(), secret))).toBe('400 nonce_replay');
  expect((await ask(gateway, await account.sign({ nonce: 1n }))).status).toBe(200);
});

test('a spend that was not given to its chain pays for another request', async () => {
  const gateway = await spends.gateway({ times: { nonceWaitMs: 200 } });
  const account = await spends.account();
  const ahead = await account.sign({ nonce: 1n });
  expect(await codeOf(await ask(gateway, ahead))).toBe('402 authorization_failed');
  expect((await ask(gateway, await account.sign())).status).toBe(200);
  expect((await ask(gateway, ahead, chat('another'))).status).toBe(200);
});

test('a client that leaves while the model works pays, and cannot use the nonce again', async () => {
  const gateway = await spends.gateway({ model: { slowMs: 20_000 } });
  const auth = await (await spends.account()).sign();
  const leaving = new AbortController();
  const body = JSON.stringify(chat('fault:slow_first_byte'));
  const headers = { 'content-type': 'application/json', 'x-payment-signature': spendHeader(auth) };
  const url = `${gateway.url}/v1/chat/completions`;
  const left = fetch(url, { method: 'POST', headers, body, signal: leaving.signal });
  await eventually(() => expect(gateway.model.calls).toHaveLength(1));
  leaving.abort();
  await expect(left).rejects.toThrow(/abort/i);
  await eventually(() => expectSpendEvents(gateway, auth, served));
  expect(await codeOf(await ask(gateway, auth, body))).toBe('409 nonce_replay');
  expect(gateway.model.calls).toHaveLength(1);
});

test('a client that leaves before the model is called does not pay, and its spend buys the answer later', async () => {
  const gateway = await spends.gateway();
  const auth = await (await spends.account()).sign();
  const leaving = new AbortController();
  const headers = {
    'content-type': 'application/json',
    'x-payment-signature': spendHeader(auth),
    'x-payment-secret': secret,
  };
  const url = `${gateway.url}/v1/chat/completions`;
  const stalled = await spends.stall();
  try {
    const body = JSON.stringify(chat());
    const left = fetch(url, { method: 'POST', headers, body, signal: leaving.signal });
    await eventually(async () => expect((await node().getTxpoolStatus()).pending).toBe(1));
    leaving.abort();
    await expect(left).rejects.toThrow(/abort/i);
  } finally {
    await stalled.resume();
  }
  const released = ['spend_accepted', 'spend_authorized', 'spend_released'];
  await eventually(() => expectSpendEvents(gateway, auth, released));
  expect(gateway.model.calls).toHaveLength(0);
  expect((await ask(gateway, auth, chat(), secret)).status).toBe(200);
  await eventually(() => expectSpendEvents(gateway, auth, [...released, ...served]));
});

test('a spend that expires too early after its wait in the queue is refused', async () => {
  const gateway = await spends.gateway({
    times: { authorizeTimeoutMs: 60_000, nonceWaitMs: 0, claimMarginSecs: 100 },
    upstream: 'timeout_ms = 15_000',
  });
  const account = await spends.account();
  // a minute more than it has to be valid when it is sent, and half a minute less than when it has landed
  const expiry = BigInt(Math.ceil(Date.now() / 1_000) + 240);
  const [first, second] = [await account.sign({ expiry }), await account.sign({ nonce: 1n, expiry })];
  const stalled = await spends.stall();
  try {
    const answers = [ask(gateway, first)];
    await eventually(() => expectSpendEvents(gateway, account, ['spend_accepted']));
    answers.push(ask(gateway, second));
    await eventually(() => expectSpendEvents(gateway, account, ['spend_accepted', 'spend_accepted']));
    await gateway.database.moveClock(150);
    // each append gives the gateway the database's time
    expect((await gateway.post({ model: freeModel, messages: says('for free') })).status).toBe(200);
    await node().mine({ blocks: 1 });
    for (const answer of answers) expect(await codeOf(await answer)).toBe('402 invalid_spend_auth');
  } finally {
    await stalled.resume();
  }
  // the free one
  expect(gateway.model.calls).toHaveLength(1);
  await spends.withCredits(async (credits) => {
    expect(await credits.getAccount(account.commitment)).toMatchObject({ value: { nonce: 1n } });
  });
});

test('a nonce spent elsewhere first buys nothing, even with the same hash on the chain', async () => {
  const gateway = await spends.gateway();
  const account = await spends.account();
  const auth = await account.sign();
  const cheap = await account.sign({ amount: 1n });
  expect(spendAuthHash(cheap)).toBe(spendAuthHash(auth));
  await spends.withCredits((credits) => credits.authorizeSpend(cheap, 10_000));
  expect(await codeOf(await ask(gateway, auth))).toBe('400 nonce_replay');
  expect(gateway.model.calls).toHaveLength(0);
});

test('of two spends that exceed the balance together one is served', async () => {
  const gateway = await spends.gateway();
  const account = await spends.account(1_500_000n);
  const auths = [await account.sign(), await account.sign({ nonce: 1n })];
  const answers = await Promise.all(auths.map((auth) => ask(gateway, auth)));
  expect(answers.map(({ status }) => status)).toEqual([200, 402]);
  expect(gateway.model.calls).toHaveLength(1);
});

test('a spend that landed before it was sent to the gateway pays for nothing, since anyone may have read it', async () => {
  const gateway = await spends.gateway();
  const account = await spends.account();
  const auth = await account.sign();
  await spends.withCredits((credits) => credits.authorizeSpend(auth, 10_000));
  expect(await codeOf(await ask(gateway, auth, chat(), secret))).toBe('400 nonce_replay');
  expect(gateway.model.calls).toHaveLength(0);
  expect((await ask(gateway, await account.sign({ nonce: 1n }))).status).toBe(200);
});

test('a spend that a stranger lands while its request waits is served', async () => {
  const gateway = await spends.gateway();
  const auth = await (await spends.account()).sign();
  const stalled = await spends.stall();
  const answer = ask(gateway, auth);
  await eventually(() => expectSpendEvents(gateway, auth, ['spend_accepted']));
  const landing = spends.withCredits((credits) => credits.authorizeSpend(auth, 10_000));
  await stalled.resume();
  expect((await answer).status).toBe(200);
  await landing;
  await eventually(() => expectSpendEvents(gateway, auth, served));
});

test('a nonce of a process without heartbeats can be used again, and that process delivers nothing when it continues', async () => {
  const gateway = await spends.gateway({ model: { slowMs: 3_000 } });
  const other = await spends.gateway({ database: gateway.database, model: { slowMs: 1 } });
  const auth = await (await spends.account()).sign();
  const body = chat('fault:slow_first_byte');
  const first = ask(gateway, auth, body, secret);
  await eventually(() => expect(gateway.model.calls).toHaveLength(1));
  const events = await spendEventsOf(gateway.database, auth);
  const [accepted] = events.flatMap((event) => (event.type === 'spend_accepted' ? event.data : []));
  await forgetProcess(gateway.database, accepted?.process_id ?? '');
  expect((await ask(other, auth, body, secret)).status).toBe(200);
  expect(await codeOf(await first)).toBe('503 overloaded');
  await eventually(() => expectSpendEvents(gateway, auth, [...released, ...served]));
});

const released = ['spend_accepted', 'spend_authorized', 'spend_released'];

/** As if a process had not been seen for a minute, and all others all the time. */
async function forgetProcess({ asOwner }: TestDatabase, processId: string): Promise<void> {
  await asOwner((owner) =>
    owner.query(
      `create or replace function tollbook.heartbeat(p_process uuid, p_gap_secs float8) returns void language sql
         security definer as $$ update tollbook.process set heartbeat_at = tollbook.clock()
         where process_id = p_process and process_id <> '${processId}' $$;
       update tollbook.process set alive_since = alive_since - interval '1 minute';
       update tollbook.process set heartbeat_at = heartbeat_at - interval '1 minute' where process_id = '${processId}'`,
    ),
  );
}

test('a spend sent to a free model is not charged', async () => {
  const gateway = await spends.gateway();
  const auth = await (await spends.account()).sign();
  const body = { model: freeModel, messages: says('for free') };
  expect((await ask(gateway, auth, body)).status).toBe(200);
  await expectSpendEvents(gateway, auth, []);
  expect((await ask(gateway, auth)).status).toBe(200);
});

test('the amount of a spend limits the answer of a request without a length', async () => {
  const gateway = await spends.gateway();
  const auth = await (await spends.account()).sign({ amount: 3_800n });
  const response = await ask(gateway, auth, { model: paidModel, messages: says('words:4000') });
  const { usage, error } = (await response.json()) as {
    usage: { completion_tokens: number };
    error?: unknown;
  };
  expect(error).toBeUndefined();
  // at ten micros each, behind what the prompt may cost
  expect(usage.completion_tokens).toBeGreaterThan(50);
  expect(usage.completion_tokens).toBeLessThanOrEqual(100);
});

test('the limit counts by verified commitment, and a refused request does not use up its nonce', async () => {
  const gateway = await spends.gateway({ constants: { chat: { spendAuthPerMinute: 2 } } });
  const account = await spends.account();
  for (const nonce of [0n, 1n]) expect((await ask(gateway, await account.sign({ nonce }))).status).toBe(200);
  const third = await account.sign({ nonce: 2n });
  const domain = { chainId: spends.chain.chain.chainId, contract: prepaidContractAddress };
  const forged = await signSpend(domain, generatePrivateKey(), { commitment: account.commitment, nonce: 2n });
  expect(await codeOf(await ask(gateway, forged))).toBe('402 signer_mismatch');
  for (let times = 0; times < 5; times++)
    expect(await codeOf(await ask(gateway, third))).toBe('429 rate_limit_exceeded');
  // many refusals are recorded once
  const events = await spendEventsOf(gateway.database, account);
  expect(events.filter(({ type }) => type === 'spend_released')).toHaveLength(1);
  await spends.withCredits(async (credits) => {
    expect(await credits.getAccount(account.commitment)).toMatchObject({ value: { nonce: 2n } });
  });
  await gateway.database.moveClock(61);
  // the first one remembers its refusal by its own clock
  const second = await spends.gateway({ database: gateway.database });
  expect((await ask(second, third)).status).toBe(200);
});
