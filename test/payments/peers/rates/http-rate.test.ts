import { createServer, type RequestListener } from 'node:http';
import type { AddressInfo } from 'node:net';
import { gzipSync } from 'node:zlib';
import { expect, onTestFinished, test } from 'vitest';
import { rateText } from '../../../../src/base/values/rate.ts';
import { askHttpRate } from '../../../../src/payments/peers/rates/http-rate.ts';
import { startRateSource } from '../../../support/rate-source.ts';
import { soonMs } from '../../../support/time-limits.ts';

const now = 1_700_000_000;

const sourceAt = (url: string) =>
  ({ kind: 'http', url, pointer: '/a/0', timePointer: undefined, inverse: false }) as const;

async function askAt(url: string, timeoutMs = 20_000): Promise<string> {
  const answer = await askHttpRate(sourceAt(url), now, timeoutMs);
  return answer.kind === 'rate' ? rateText(answer.rate) : answer.problem;
}

test('an HTTP source gives exactly the digits that it has, or a problem, never a wrong rate', async () => {
  const source = await startRateSource('');
  let timeoutMs = 20_000;
  const ask = async (body: string) => {
    source.body = body;
    return askAt(source.url, timeoutMs);
  };
  expect(await ask('{"a":[3200.123456789012345678901234567890123]}')).toBe(
    '3200.123456789012345678901234567890123',
  );
  expect(await ask('{"a":["12345678901234567890.5"]}')).toBe('12345678901234567890.5');
  expect(await ask('{"a":[0.00]}')).toBe('not_positive');
  expect(await ask('{"a":[-1]}')).toBe('not_positive');
  for (const wrong of ['{"a":[3.2e3]}', '{"a":["NaN"]}', '{"a":{}}', '<html>', '', '{"a":[true]}'])
    expect(await ask(wrong)).toBe('malformed');
  expect(await ask(`{"a":[1],"b":"${'x'.repeat(300_000)}"}`)).toBe('too_large');
  [source.delayMs, timeoutMs] = [600_000, 100];
  expect(await ask('{"a":[1]}')).toBe('unreachable');
  [source.delayMs, source.status, timeoutMs] = [0, 500, 20_000];
  expect(await ask('{"a":[1]}')).toBe('unreachable');
});

const fraction = '1234567890'.repeat(4);

test.each([
  ['40 decimals', `3200.${fraction}`, `3200.${fraction.slice(0, -1)}`],
  ['41 decimals', `3200.${fraction}1`, 'malformed'],
  ['uint256', String(2n ** 256n - 1n), String(2n ** 256n - 1n)],
  ['above uint256', String(2n ** 256n), 'malformed'],
  ['zero', '0', 'not_positive'],
  ['zero with a sign', '-0', 'not_positive'],
  ['zero with an exponent', '0e9', 'malformed'],
  ['a negative number', '-3200.5', 'not_positive'],
  ['an exponent', '3.2E+3', 'malformed'],
  ['an exponent beyond every number', '1e999', 'malformed'],
  ['an exponent as text', '"3.2e3"', 'malformed'],
  ['NaN', 'NaN', 'malformed'],
  ['Infinity as text', '"Infinity"', 'malformed'],
  ['hexadecimal text', '"0xc80"', 'malformed'],
  ['a comma', '"3200,50"', 'malformed'],
  ['blanks', '" 3200"', 'malformed'],
  ['digits of another script', '"\u0663\u0662"', 'malformed'],
  ['null', 'null', 'malformed'],
  ['nothing but depth', '['.repeat(100_000) + ']'.repeat(100_000), 'malformed'],
])('a document with %s as its rate gives exactly that or none', async (_, value, expected) => {
  const source = await startRateSource(`{"a":[${value}]}`);
  expect(await askAt(source.url)).toBe(expected);
});

test.each([
  ['of its own', now - 100, now - 100],
  ['in milliseconds', now * 1_000, 'malformed'],
  ['that is negative', -5, 'malformed'],
  ['that is text', '"yesterday"', 'malformed'],
  ['that is missing', 'null', 'malformed'],
])('a document with a time %s is as old as that, or none', async (_, time, expected) => {
  const source = await startRateSource(`{"a":[3200],"t":${time}}`);
  const answer = await askHttpRate({ ...sourceAt(source.url), timePointer: '/t' }, now, 20_000);
  expect(answer.kind === 'rate' ? answer.observedAtSecs : answer.problem).toBe(expected);
});

/** An endpoint that answers as a test says. */
async function serve(answer: RequestListener): Promise<string> {
  const server = createServer(answer).listen(0, '127.0.0.1');
  await new Promise((resolve) => server.once('listening', resolve));
  onTestFinished(async () => {
    server.closeAllConnections();
    await new Promise((resolve) => server.close(resolve));
  });
  return `http://127.0.0.1:${(server.address() as AddressInfo).port}/rate`;
}

test('a redirect is not followed, to whatever it leads', async () => {
  const source = await startRateSource('{"a":[3200]}');
  for (const status of [301, 302, 307, 308])
    expect(
      await askAt(
        await serve((_, to) => void to.writeHead(status, { location: source.url }).end('{"a":[1]}')),
      ),
    ).toBe('unreachable');
  expect(source.asked).toBe(0);
});

test('a body without an end is given up at the limit of its length, and one that drips at the limit of time', async () => {
  const chunk = Buffer.alloc(65_536, 0x20);
  const endless = await serve((_, to) => {
    const pour = (): void => {
      while (!to.destroyed && to.write(chunk));
      to.once('drain', pour);
    };
    pour();
  });
  expect(await askAt(endless)).toBe('too_large');
  const dripping = await serve((_, to) => {
    const timer = setInterval(() => to.write(' '), 10);
    to.once('close', () => clearInterval(timer));
  });
  const beganMs = performance.now();
  expect(await askAt(dripping, 200)).toBe('unreachable');
  expect(performance.now() - beganMs).toBeLessThan(soonMs(200));
});

test('an answer that is compressed, cut off or not HTTP is not a rate', async () => {
  const zipped = gzipSync('{"a":[3200]}');
  expect(
    await askAt(await serve((_, to) => void to.writeHead(200, { 'content-encoding': 'gzip' }).end(zipped))),
  ).toBe('malformed');
  const cut = await serve((_, to) => {
    to.writeHead(200, { 'content-length': 100 }).write('{"a":[3200]}', () => to.destroy());
  });
  expect(await askAt(cut)).toBe('unreachable');
  const noHttp = await serve((request) => void request.socket.end('SSH-2.0-OpenSSH\r\n\r\n'));
  expect(await askAt(noHttp)).toBe('malformed');
});
