import { once } from 'node:events';
import { createServer, type IncomingMessage, type ServerResponse } from 'node:http';
import { describe, expect, test, onTestFinished } from 'vitest';
import type {
  Facilitator,
  FacilitatorOptions,
} from '../../../../src/payments/peers/facilitator/facilitator.ts';
import { gasSponsoringKeys } from '../../../../src/base/values/gas-sponsoring.ts';
import { createFacilitators } from '../../../../src/payments/peers/facilitator/facilitators.ts';
import { createFacilitator } from '../../../../src/payments/peers/facilitator/facilitator.ts';
import { holdDeadlines } from '../../../support/deadlines.ts';
import { eventually } from '../../../support/wait.ts';
import { freePort } from '../../../../src/devnet/ports.ts';

const [failuresToOpen, longestPauseMs] = [5, 30_000];

/** What it returns is not waited for. */
type Listener = (request: IncomingMessage, response: ServerResponse) => unknown;

async function serve(listener: Listener, options?: Partial<FacilitatorOptions>): Promise<Facilitator> {
  const server = createServer((request, response) => void listener(request, response)).listen(0, '127.0.0.1');
  await once(server, 'listening');
  onTestFinished(() => server.close().closeAllConnections());
  const address = server.address();
  const port = typeof address === 'object' ? address?.port : undefined;
  return connect(`http://127.0.0.1:${port}/x402/`, options);
}

function connect(url: string, options?: Partial<FacilitatorOptions>): Facilitator {
  const facilitator = createFacilitator({
    url,
    verifyTimeoutMs: 20_000,
    settleTimeoutMs: 20_000,
    ...options,
  });
  onTestFinished(() => facilitator.close());
  return facilitator;
}

/** A facilitator whose every answer is this one. Text goes out as it is. */
function answering(status: number, answer: unknown): Promise<Facilitator> {
  const type = typeof answer === 'string' ? 'text/html' : 'application/json';
  const text = typeof answer === 'string' ? answer : JSON.stringify(answer);
  return serve((_, response) => response.writeHead(status, { 'content-type': type }).end(text));
}

async function textOf(request: IncomingMessage): Promise<string> {
  return Buffer.concat(await request.toArray()).toString();
}

const request = {
  x402Version: 2,
  paymentPayload: { a: 1 },
  paymentRequirements: { b: '2' },
} as const;
const upper = `0x${'AB'.repeat(20)}`;
const lower = `0x${'ab'.repeat(20)}`;
const hash = `0x${'c'.repeat(64)}`;
const network = 'eip155:84532';
const html = '<html><body>502 Bad Gateway</body></html>';

describe('verify', () => {
  test('posts the payment to the path below its URL, with the bearer', async () => {
    const seen: unknown[] = [];
    const facilitator = await serve(
      async (message, response) => {
        const { method, url, headers } = message;
        seen.push([
          method,
          url,
          headers.authorization,
          headers['content-type'],
          JSON.parse(await textOf(message)),
        ]);
        response.end(JSON.stringify({ isValid: true }));
      },
      { bearers: () => ['token'] },
    );
    expect(await facilitator.verify(request)).toEqual({ kind: 'valid' });
    expect(seen).toEqual([['POST', '/x402/verify', 'Bearer token', 'application/json', request]]);
  });

  test('is sent once more with the second token where the first is refused, and never with it otherwise', async () => {
    const seen: (string | undefined)[] = [];
    let valid = 'Bearer next';
    let used = 0;
    let tokens: readonly [string, ...string[]] = ['last', 'next'];
    const facilitator = await serve(
      ({ headers }, response) => {
        seen.push(headers.authorization);
        response.statusCode = headers.authorization === valid ? 200 : 401;
        response.end(
          JSON.stringify({ isValid: true, success: true, transaction: hash, network: 'eip155:1' }),
        );
      },
      { bearers: () => tokens, onSecondBearer: () => (used += 1) },
    );
    expect(await facilitator.verify(request)).toEqual({ kind: 'valid' });
    expect(await facilitator.settle(request)).toMatchObject({ kind: 'settled' });
    expect(seen.splice(0)).toEqual(['Bearer last', 'Bearer next', 'Bearer last', 'Bearer next']);
    expect(used).toBe(2);
    // a reload puts the next token first
    tokens = ['next', 'last'];
    expect(await facilitator.verify(request)).toEqual({ kind: 'valid' });
    expect(seen.splice(0)).toEqual(['Bearer next']);
    valid = 'Bearer another';
    expect(await facilitator.settle(request)).toMatchObject({ kind: 'unknown', cause: 'status_401' });
    expect(seen).toHaveLength(2);
    expect(used).toBe(2);
  });

  test.each([
    [200, { isValid: true, payer: upper, extra: { more: true } }, { kind: 'valid', payer: lower }],
    [200, { isValid: true, payer: null }, { kind: 'valid' }],
    [
      200,
      { isValid: false, invalidReason: 'insufficient_funds', payer: '' },
      { kind: 'invalid', reason: 'insufficient_funds' },
    ],
    [400, { isValid: false, invalidReason: 'invalid_scheme' }, { kind: 'invalid', reason: 'invalid_scheme' }],
    [200, { isValid: false, payer: 12 }, { kind: 'invalid', reason: 'unrecognized' }],
    [200, { isValid: false, invalidReason: 'Pay <b>me</b>' }, { kind: 'invalid', reason: 'unrecognized' }],
    [200, { isValid: false, invalidReason: 'a'.repeat(101) }, { kind: 'invalid', reason: 'unrecognized' }],
    [200, { isValid: true, payer: '0x12' }, { kind: 'unavailable', cause: 'malformed' }],
    [200, { isValid: true, payer: '' }, { kind: 'unavailable', cause: 'malformed' }],
    [200, { isValid: true, payer: [lower] }, { kind: 'unavailable', cause: 'malformed' }],
    [200, { isValid: 'true' }, { kind: 'unavailable', cause: 'malformed' }],
    [200, [], { kind: 'unavailable', cause: 'malformed' }],
    [200, 'null', { kind: 'unavailable', cause: 'malformed' }],
    [200, html, { kind: 'unavailable', cause: 'malformed' }],
    [502, html, { kind: 'unavailable', cause: 'status_502' }],
    [500, { error: 'boom' }, { kind: 'unavailable', cause: 'status_500' }],
    [402, { isValid: true, payer: lower }, { kind: 'unavailable', cause: 'status_402' }],
    [302, { isValid: true }, { kind: 'unavailable', cause: 'status_302' }],
  ])('%i %j', async (status, answer, expected) => {
    const facilitator = await answering(status, answer);
    expect(withoutError(await facilitator.verify(request))).toEqual(expected);
  });

  test('is unavailable when the facilitator hangs, hangs up, answers too much or is down', async () => {
    const hanging = await serve(() => undefined, { verifyTimeoutMs: 30 });
    expect(await hanging.verify(request)).toMatchObject({ kind: 'unavailable', cause: 'timeout' });
    const closing = await serve((message) => message.socket.destroy());
    expect(await closing.verify(request)).toMatchObject({ kind: 'unavailable', cause: 'connection' });
    const endless = await answering(200, { isValid: true, padding: 'x'.repeat(65_536) });
    expect(await endless.verify(request)).toMatchObject({ kind: 'unavailable', cause: 'too_large' });
    expect(await connect(await deadUrl()).verify(request)).toMatchObject({
      kind: 'unavailable',
      cause: 'connection',
    });
  });
});

const success = { success: true, transaction: hash, network, payer: lower };

describe('the answer to settle', () => {
  test.each([
    [
      200,
      { ...success, payer: upper, extensions: {} },
      { kind: 'settled', transaction: hash, network, payer: lower },
    ],
    [
      200,
      { ...success, transaction: `0x${'C'.repeat(64)}`, payer: null },
      { kind: 'settled', transaction: hash, network },
    ],
    [
      200,
      { ...success, network: 'base-sepolia' },
      { kind: 'settled', transaction: hash, network: 'base-sepolia', payer: lower },
    ],
    [200, { ...success, network: 'EIP155 <1>' }, { kind: 'unknown', cause: 'malformed', transaction: hash }],
    [200, { success: true, transaction: hash }, { kind: 'unknown', cause: 'malformed', transaction: hash }],
    [200, { ...success, payer: 'me' }, { kind: 'unknown', cause: 'malformed', transaction: hash }],
    [200, { ...success, transaction: '' }, { kind: 'unknown', cause: 'malformed' }],
    [200, { ...success, transaction: '0x12' }, { kind: 'unknown', cause: 'malformed' }],
    [200, { ...success, transaction: 7 }, { kind: 'unknown', cause: 'malformed' }],
    [500, success, { kind: 'unknown', cause: 'status_500', transaction: hash }],
    [307, success, { kind: 'unknown', cause: 'status_307', transaction: hash }],
    [200, { success: 1, transaction: hash }, { kind: 'unknown', cause: 'malformed' }],
    [200, {}, { kind: 'unknown', cause: 'malformed' }],
    [200, html, { kind: 'unknown', cause: 'malformed' }],
    [502, html, { kind: 'unknown', cause: 'status_502' }],
    [404, { error: 'no' }, { kind: 'unknown', cause: 'status_404' }],
    [
      200,
      { success: false, errorReason: 'insufficient_funds', transaction: '', network },
      { kind: 'failed', reason: 'insufficient_funds' },
    ],
    [402, { success: false, errorReason: 'invalid_scheme' }, { kind: 'failed', reason: 'invalid_scheme' }],
    [
      500,
      { success: false, errorReason: 'settlement_pending', transaction: hash },
      { kind: 'failed', reason: 'settlement_pending', transaction: hash },
    ],
    [200, { success: false, errorReason: '\u0000', payer: 3 }, { kind: 'failed', reason: 'unrecognized' }],
    [
      200,
      { success: false, errorReason: 'insufficient_funds', transaction: '0x' },
      { kind: 'unknown', cause: 'malformed' },
    ],
  ])('%i %j', async (status, answer, expected) => {
    const facilitator = await answering(status, answer);
    expect(withoutError(await facilitator.settle(request))).toEqual(expected);
  });
});

describe('settle', () => {
  test('is unknown when the facilitator hangs, before or within its answer', async () => {
    const deadlines = holdDeadlines();
    for (const begins of [false, true]) {
      const asked = Promise.withResolvers<void>();
      const silent = await serve(
        (_, response) => {
          if (begins) response.write('{"success":true,', () => asked.resolve());
          else asked.resolve();
        },
        { settleTimeoutMs: 60_000 },
      );
      const settling = silent.settle(request);
      await asked.promise;
      await deadlines.end();
      expect(await settling).toMatchObject({ kind: 'unknown', cause: 'timeout' });
    }
  });

  test('is unknown when the connection is lost, and sent only once', async () => {
    let requests = 0;
    const facilitator = await serve((message) => {
      requests += 1;
      message.socket.destroy();
    });
    expect(await facilitator.settle(request)).toMatchObject({ kind: 'unknown', cause: 'connection' });
    expect(requests).toBe(1);
  });

  test('is unknown when the answer is too long', async () => {
    const facilitator = await answering(200, { ...success, padding: 'x'.repeat(65_536) });
    expect(await facilitator.settle(request)).toMatchObject({ kind: 'unknown', cause: 'too_large' });
  });

  test('is not sent when the facilitator is down, or after closing', async () => {
    const facilitator = connect(await deadUrl());
    expect(await facilitator.settle(request)).toMatchObject({ kind: 'not_sent', cause: 'connection' });
    await facilitator.close();
    expect(await facilitator.settle(request)).toMatchObject({ kind: 'not_sent', cause: 'closed' });
  });
});

describe('supported', () => {
  test('returns the well-formed kinds', async () => {
    const seen: unknown[] = [];
    const kinds = [
      { x402Version: 2, scheme: 'exact', network, extra: { a: 1 } },
      { x402Version: 1, scheme: 'exact', network: 'base-sepolia' },
      { x402Version: 2, scheme: 'exact', network: 'solana:5eykt4UsFv8P8NJdTREpY1vzqKqZKvdp' },
    ];
    const strange = [
      null,
      'exact',
      { x402Version: '2', scheme: 'exact', network },
      { ...kinds[0], scheme: '<b>' },
    ];
    const facilitator = await serve((message, response) => {
      seen.push([message.method, message.url]);
      const extensions = ['bazaar', 'eip2612GasSponsoring', 1];
      response.end(JSON.stringify({ kinds: [...strange, ...kinds], extensions, signers: {} }));
    });
    expect(await facilitator.supported()).toEqual({
      kind: 'kinds',
      kinds: kinds.map(({ x402Version, scheme, network: name }) => ({
        x402Version,
        scheme,
        network: name,
      })),
      approvals: ['eip2612GasSponsoring'],
    });
    expect(seen).toEqual([['GET', '/x402/supported']]);
  });

  test('of several, only the approvals that all submit may be signed: which of them settles is not known then', async () => {
    const kinds = [{ x402Version: 2, scheme: 'exact', network: 'eip155:84532' }];
    const submitting = async (...extensions: readonly string[]) => answering(200, { kinds, extensions });
    const [both, one] = [
      await submitting(...gasSponsoringKeys),
      await submitting('erc20ApprovalGasSponsoring'),
    ];
    const all = createFacilitators([
      { name: 'both', label: 'both', client: both },
      { name: 'one', label: 'one', client: one },
    ]);
    expect(await all.supported()).toMatchObject({ approvals: ['erc20ApprovalGasSponsoring'] });
  });

  test.each([
    [200, html, 'malformed'],
    [200, { kinds: 'all' }, 'malformed'],
    [200, {}, 'malformed'],
    [503, { kinds: [] }, 'status_503'],
    [301, html, 'status_301'],
  ])('%i %j is unavailable', async (status, answer, cause) => {
    expect(await (await answering(status, answer)).supported()).toMatchObject({
      kind: 'unavailable',
      cause,
    });
  });

  test('is unavailable when the facilitator is down', async () => {
    expect(await connect(await deadUrl()).supported()).toMatchObject({
      kind: 'unavailable',
      cause: 'connection',
    });
  });
});

describe('the circuit', () => {
  const useless: [string, Listener, Partial<FacilitatorOptions>?][] = [
    ['5xx', (_, response) => response.writeHead(503).end(html)],
    ['pages', (_, response) => response.end(html)],
    ['nothing', () => undefined, { verifyTimeoutMs: 60_000, settleTimeoutMs: 60_000 }],
    ['hung-up connections', (message) => message.socket.destroy()],
  ];

  test.each(useless)(
    'opens after consecutive answers of %s: verify is refused without a request, settle is still sent',
    async (...row) => {
      const [, listener, options] = row;
      const requestedUrls: (string | undefined)[] = [];
      const deadlines = holdDeadlines();
      /** What it says to a request that has arrived. */
      const said = async <T>(answer: Promise<T>, requests: number): Promise<T> => {
        await eventually(() => expect(requestedUrls).toHaveLength(requests));
        if (options) await deadlines.end();
        return answer;
      };
      const facilitator = await serve((message, response) => {
        requestedUrls.push(message.url);
        return listener(message, response);
      }, options);
      for (let i = 0; i < failuresToOpen; i++) {
        expect(facilitator.isCircuitOpen()).toBe(false);
        await said(facilitator.verify(request), i + 1);
      }
      expect(facilitator.isCircuitOpen()).toBe(true);
      expect(await facilitator.verify(request)).toEqual({ kind: 'unavailable', cause: 'circuit_open' });
      expect(requestedUrls).toHaveLength(failuresToOpen);
      expect(await said(facilitator.settle(request), failuresToOpen + 1)).toMatchObject({ kind: 'unknown' });
      expect(requestedUrls.at(-1)).toBe('/x402/settle');
    },
  );

  test.each([
    ['an invalid payment', 200, { isValid: false, success: false }],
    ['an invalid payment reported with status 500', 500, { isValid: false, success: false }],
    ['a question that it does not understand', 400, { error: 'what?' }],
  ])('stays closed at %s', async (_, status, answer) => {
    const facilitator = await answering(status, answer);
    for (let i = 0; i < failuresToOpen; i++) {
      await facilitator.verify(request);
      await facilitator.settle(request);
    }
    expect(facilitator.isCircuitOpen()).toBe(false);
  });

  test('closes when a payment settles, and after its pause when a probe is answered, before any payment is verified', async () => {
    let nowMs = 0;
    let isDown = true;
    const asked: (string | undefined)[] = [];
    const facilitator = await serve(
      ({ url }, response) => {
        asked.push(url?.split('/').at(-1));
        return isDown
          ? response.writeHead(502).end(html)
          : response.end(JSON.stringify({ isValid: true, success: false, kinds: [] }));
      },
      { now: () => nowMs },
    );
    const breakDown = async () => {
      isDown = true;
      while (!facilitator.isCircuitOpen()) await facilitator.settle(request);
      isDown = false;
      asked.length = 0;
    };
    await breakDown();
    await facilitator.settle(request);
    expect(facilitator.isCircuitOpen()).toBe(false);
    await breakDown();
    await facilitator.supported();
    expect(await facilitator.verify(request)).toMatchObject({ cause: 'circuit_open' });
    expect(asked).toEqual(['supported']);
    nowMs += longestPauseMs;
    expect(await facilitator.verify(request)).toEqual({ kind: 'valid' });
    expect(asked).toEqual(['supported', 'supported', 'verify']);
    expect(facilitator.isCircuitOpen()).toBe(false);
  });
});

/** Errors are for the log; what they say is not a guarantee. */
function withoutError(answer: object): object {
  return { ...answer, error: undefined };
}

async function deadUrl(): Promise<string> {
  const port = await freePort();
  return `http://127.0.0.1:${port}`;
}
