import { createServer } from 'node:http';
import { expect, onTestFinished, test } from 'vitest';
import { createFacilitator } from '../../../../src/payments/peers/facilitator/facilitator.ts';
import { createFacilitators } from '../../../../src/payments/peers/facilitator/facilitators.ts';
import { kindOf } from '../../../../src/payments/rules/supported-kinds.ts';
import type { Address } from '../../../../src/base/values/primitives.ts';
import { listening } from '../../../support/listening.ts';

const network = 'eip155:84532';
const ofUpto = { x402Version: 2, scheme: 'upto', network } as const;
const accountOf = (digits: string): Address => `0x${digits.repeat(20)}`;
const [a, b, c, d] = [accountOf('aa'), accountOf('bb'), accountOf('cc'), accountOf('dd')] as const;
const capital = `0x${'AA'.repeat(20)}`;
const request = {
  x402Version: 2,
  paymentPayload: {},
  paymentRequirements: { scheme: 'upto', network },
} as const;

/** A facilitator that submits transfers by `upto` from these accounts, of which it names the first; `asked` are its requests. */
async function start(name: string, ...accounts: readonly unknown[]) {
  const own = {
    asked: [] as string[],
    /** What it answers to `/supported`. */
    said: saying(accounts[0], { [network]: accounts }),
  };
  const server = createServer((message, response) => {
    const operation = message.url ?? '';
    if (operation !== '/supported') own.asked.push(operation);
    const settled = { success: true, transaction: `0x${'c'.repeat(64)}`, network };
    response.end(JSON.stringify(operation === '/supported' ? own.said : { isValid: true, ...settled }));
  });
  const url = await listening(server);
  const client = createFacilitator({ url, verifyTimeoutMs: 20_000, settleTimeoutMs: 20_000 });
  onTestFinished(() => client.close());
  return Object.assign(own, { name, label: name, client });
}

function saying(facilitatorAddress: unknown, signers: unknown): object {
  return { kinds: [{ ...ofUpto, extra: { facilitatorAddress } }], signers };
}

const many = Array.from({ length: 1_001 }, () => b);
test.each<[string, unknown, unknown, readonly Address[] | undefined]>([
  ['its kind names', a, {}, [a]],
  ['its kind names, in lower case', capital, { [network]: [capital, a] }, [a]],
  [
    'its kind names, and its signers on this network and on any',
    a,
    { [network]: [b], 'eip155:*': [a, c], 'eip155:1': [d], 'solana:*': ['5eykt4UsFv8P8NJdTREpY1vzqKqZKvdp'] },
    [a, b, c],
  ],
  [
    'its kind names, and those of its signers that are addresses',
    a,
    { [network]: ['me', '0x12', b] },
    [a, b],
  ],
  ['its kind names, where its signers are no lists', a, { [network]: b }, [a]],
  ['its kind names, where its signers are no texts', a, { [network]: [1, null] }, [a]],
  ['its kind names, where its signers are not listed by network', a, [b], [a]],
  ['its kind names, where its signers are too many', a, { [network]: many }, [a]],
  ['are none, where its kind names no address', 'me', { [network]: [b] }, undefined],
  ['are none, where its kind names no text', 7, { [network]: [b] }, undefined],
  ['are none, where its kind names nothing', undefined, { [network]: [b] }, undefined],
])('the accounts from which a facilitator submits transfers by upto are those that %s', async (...row) => {
  const [, named, signers, submitters] = row;
  const facilitator = await start('one');
  facilitator.said = saying(named, signers);
  const kind = submitters ? { ...ofUpto, submitters } : ofUpto;
  expect(await facilitator.client.supported()).toEqual({ kind: 'kinds', kinds: [kind], approvals: [] });
});

test('offers name one account as long as its facilitator has it, whichever it names first', async () => {
  const facilitator = await start('one', a, b);
  const facilitators = createFacilitators([facilitator]);
  const offered = async (...accounts: readonly Address[]) => {
    facilitator.said = saying(accounts[0], { [network]: accounts });
    const answer = await facilitators.supported();
    return answer.kind === 'kinds' ? kindOf(answer.kinds, ofUpto)?.submitters : undefined;
  };
  expect(await offered(a, b)).toEqual([a, b]);
  expect(await offered(b, a)).toEqual([a, b]);
  expect(await offered(c, b, a)).toEqual([a, c, b]);
  expect(await offered(c, b)).toEqual([c, b]);
  expect(await offered(b, c, a)).toEqual([c, b, a]);
});

test('a payment that names an account is verified and settled by the facilitator that has it, and no other one is asked', async () => {
  const [first, second] = [await start('first', a, b), await start('second', c)];
  const facilitators = createFacilitators([first, second]);
  await facilitators.supported();
  expect(await facilitators.verify(request, undefined, { submitter: c })).toEqual({
    kind: 'valid',
    name: 'second',
  });
  expect(facilitators.settlerOf({ ...ofUpto, submitter: c })).toMatchObject({ name: 'second' });
  expect(await facilitators.settle(request, { name: 'second' })).toMatchObject({ kind: 'settled' });
  expect([first.asked, second.asked]).toEqual([[], ['/verify', '/settle']]);
  // any account of the first one is its own
  for (const submitter of [a, b])
    expect(facilitators.settlerOf({ ...ofUpto, submitter })).toMatchObject({ name: 'first' });
});

test('a payment that names an account of no facilitator is given to none', async () => {
  const [first, second] = [await start('first', a), await start('second', b)];
  const facilitators = createFacilitators([first, second]);
  await facilitators.supported();
  expect(await facilitators.verify(request, undefined, { submitter: d })).toMatchObject({
    kind: 'unavailable',
  });
  expect(facilitators.settlerOf({ ...ofUpto, submitter: d })).toBeUndefined();
  expect([...first.asked, ...second.asked]).toEqual([]);
});
