import { once } from 'node:events';
import { type ClientHttp2Session, connect } from 'node:http2';
import { connect as connectSocket, type Socket } from 'node:net';
import { expect, onTestFinished, test } from 'vitest';
import { quoteDigest } from '../../../src/payments/rules/quote.ts';
import type { PricingServer, QuoteSigner, X402Option } from '../../../src/app/pricing/index.ts';
import { randomHex32 } from '../../../src/base/runtime/random-hex.ts';
import { grpcClient, operator, option, route, startPricing } from '../../support/pricing.ts';
import { eventually } from '../../support/wait.ts';

/** A connection from an address of this machine. */
function dial(url: string, localAddress = '127.0.0.1'): Socket {
  const port = Number(new URL(url).port);
  const socket = connectSocket({ port, host: '127.0.0.1', localAddress }).on('error', () => {});
  onTestFinished(() => void socket.destroy());
  return socket.resume();
}

const expectAnswer = async ({ url }: PricingServer): Promise<void> => {
  expect(await grpcClient(url)()).toHaveProperty('signature');
};

test('an address that opens many connections gets no more than its share, and others are answered', async () => {
  const server = await startPricing({}, { limits: { maxConnectionsPerAddress: 4 } });
  const flood = Array.from({ length: 100 }, () => dial(server.url, '127.0.0.2'));
  await eventually(() => {
    expect(flood.filter(({ closed }) => closed)).toHaveLength(96);
  });
  await expectAnswer(server);
  for (const socket of flood) socket.destroy();
  await eventually(async () => {
    const again = dial(server.url, '127.0.0.2');
    again.write('GET / HTTP/1.1\r\nHost: x\r\nConnection: close\r\n\r\n');
    const answer: Buffer[] = await again.toArray().catch(() => []);
    expect(Buffer.concat(answer).toString()).toContain(' 404 ');
  });
});

const slow: Record<string, readonly [first: string | Buffer, then: string | Buffer]> = {
  'says nothing': ['', ''],
  'sends its head byte by byte': [`POST ${route} HTTP/1.1\r\nHost: x\r\nx-a: `, 'a'],
  'sends its body byte by byte': [
    `POST ${route} HTTP/1.1\r\nHost: x\r\nContent-Type: application/json\r\nContent-Length: 9000\r\n\r\n`,
    ' ',
  ],
  'sends the preface of HTTP/2 byte by byte': ['P', 'R'],
  'opens HTTP/2 and says nothing': ['PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n\0\0\0\x04\0\0\0\0\0', ''],
};

test.each(Object.entries(slow))(
  'a client that %s is closed, and its place is free again',
  async (_, [first, then]) => {
    const limits = { maxConnections: 4, requestTimeoutMs: 200, idleTimeoutMs: 200 };
    const server = await startPricing({}, { limits });
    const flood = Array.from({ length: 4 }, () => dial(server.url));
    for (const socket of flood) socket.write(Buffer.from(first));
    const timer = setInterval(() => {
      for (const socket of flood) socket.write(then);
    }, 20);
    onTestFinished(() => clearInterval(timer));
    await eventually(() => {
      expect(flood.filter(({ closed }) => closed)).toHaveLength(4);
    });
    // whoever is not heard for that long is closed too
    await eventually(() => expectAnswer(server));
  },
);

function dialHttp2(url: string): ClientHttp2Session {
  const session = connect(url).on('error', () => {});
  onTestFinished(() => session.destroy());
  return session;
}

const head = { ':method': 'POST', ':path': route, 'content-type': 'application/json' };

test('a client that opens and resets streams as fast as it can loses its connection, and others are answered', async () => {
  let lines = 0;
  const log = { info: () => void lines++, warn() {}, error() {} };
  const server = await startPricing({}, { log });
  const session = dialHttp2(server.url);
  let streams = 0;
  while (!session.closed && !session.destroyed && streams < 20_000) {
    for (let nth = 0; nth < 100; nth++, streams++)
      session
        .request(head)
        .on('error', () => {})
        .close();
    await new Promise(setImmediate);
  }
  expect(streams).toBeLessThan(20_000);
  expect(lines).toBeLessThan(5_000);
  await expectAnswer(server);
  expect(await server.stop()).toEqual({ requestsCut: 0 });
});

test('more requests of one connection than it may have simultaneously are all answered, one after the other', async () => {
  const server = await startPricing({}, { limits: { maxStreams: 4 } });
  const session = dialHttp2(server.url);
  await once(session, 'remoteSettings');
  const answers = await Promise.all(
    Array.from({ length: 100 }, async () => {
      const stream = session.request(head).end('{"serviceId":"1"}');
      const [{ ':status': code }] = (await once(stream, 'response')) as [{ ':status': number }];
      stream.resume();
      return code;
    }),
  );
  expect(new Set(answers)).toEqual(new Set([200]));
});

/** A frame of HTTP/2. */
function frame(type: number, flags: number, stream: number, payload: Buffer): Buffer {
  const start = Buffer.alloc(9);
  start.writeUIntBE(payload.length, 0, 3);
  start.writeUInt8(type, 3);
  start.writeUInt8(flags, 4);
  start.writeUInt32BE(stream, 5);
  return Buffer.concat([start, payload]);
}

const preface = Buffer.concat([
  Buffer.from('PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n'),
  frame(4, 0, 0, Buffer.alloc(0)),
]);

test.each([
  ['pings', frame(6, 0, 0, Buffer.alloc(8))],
  ['settings', frame(4, 0, 0, Buffer.alloc(0))],
])('a client that sends %s without end and reads no answer does not fill the memory', async (_, one) => {
  const server = await startPricing();
  const socket = dial(server.url).pause();
  socket.write(preface);
  const many = Buffer.concat(Array<Buffer>(10_000).fill(one));
  const before = process.memoryUsage().rss;
  for (let nth = 0; nth < 40 && !socket.destroyed; nth++)
    await Promise.race([new Promise((done) => void socket.write(many, done)), pause(50)]);
  await expectAnswer(server);
  expect(process.memoryUsage().rss - before).toBeLessThan(200e6);
});

const pause = (ms: number) => new Promise((done) => setTimeout(done, ms));

test('headers of 80 KB, in one piece or in many frames, are refused, and others are answered', async () => {
  const server = await startPricing();
  const session = dialHttp2(server.url);
  const large = Object.fromEntries(Array.from({ length: 20 }, (_, nth) => [`x-${nth}`, 'a'.repeat(4_000)]));
  const stream = session.request({ ...head, ...large });
  await expect(once(stream, 'response')).rejects.toThrow('REFUSED_STREAM');
  const socket = dial(server.url);
  // HEADERS without END_HEADERS, then CONTINUATION without end
  socket.write(Buffer.concat([preface, frame(1, 0, 1, Buffer.of(0x82))]));
  const more = frame(9, 0, 1, Buffer.alloc(1_000, 0x82));
  const timer = setInterval(() => void socket.write(more), 5);
  onTestFinished(() => clearInterval(timer));
  await once(socket, 'close');
  const answer = await fetch(server.url + route, {
    method: 'POST',
    headers: { 'x-large': 'a'.repeat(10_000) },
  });
  expect(answer.status).toBe(431);
  await expectAnswer(server);
});

test('a client that reads none of its answers is cut at the time limit', async () => {
  const lines: object[] = [];
  const log = { info: (line: object) => void lines.push(line), warn() {}, error() {} };
  const server = await startPricing({}, { log, limits: { requestTimeoutMs: 200 } });
  const session = connect(server.url, { settings: { initialWindowSize: 0 } }).on('error', () => {});
  onTestFinished(() => session.destroy());
  await once(session, 'remoteSettings');
  const stream = session
    .request(head)
    .on('error', () => {})
    .end('{"serviceId":"1"}');
  await once(stream.resume(), 'close');
  await eventually(() => {
    expect(lines).toMatchObject([{ cut: true }]);
  });
});

/** Asks for quotes on many streams without end, from its own address; counts what it is answered. */
function askWithoutEnd(url: string, from: { readonly localAddress?: string; readonly headers?: object }) {
  const counts = { asked: 0, answered: 0, refused: 0 };
  const sessions = Array.from({ length: 8 }, () => {
    const socket = dial(url, from.localAddress);
    const session = connect(url, { createConnection: () => socket }).on('error', () => {});
    onTestFinished(() => session.destroy());
    return session;
  });
  const askOn = (session: ClientHttp2Session): void => {
    if (session.destroyed) return;
    counts.asked += 1;
    const stream = session.request({ ...head, ...from.headers }).on('error', () => {});
    stream.on(
      'response',
      ({ ':status': code }) => void (code === 200 ? counts.answered++ : counts.refused++),
    );
    stream.on('close', () => void setTimeout(askOn, 5, session));
    stream.resume().end('{"serviceId":"1"}');
  };
  for (const session of sessions)
    session.once('remoteSettings', () => Array.from({ length: 16 }, () => askOn(session)));
  return counts;
}

/** Issues as many quotes a second as a gateway may leave in its ledger. */
function scarce(perSecond: number): X402Option {
  let left = 0;
  const timer = setInterval(() => void (left = Math.min(left + 1, perSecond)), 1_000 / perSecond);
  onTestFinished(() => clearInterval(timer));
  return {
    async issue(request) {
      if (left < 1) return { kind: 'refused', code: 'overloaded' };
      left -= 1;
      const issuedAt = Math.floor(Date.now() / 1_000);
      const times = { issuedAt, expiresAt: issuedAt + 300, salt: randomHex32() };
      const quote = { ...request, ...times, priceWei: 10n ** 15n, options: [option], isSummarised: false };
      return {
        kind: 'issued',
        quote,
        digest: quoteDigest(quote),
        endpoint: 'https://gateway.example/x402/jobs/1/0',
      };
    },
  };
}

const slowSigner: QuoteSigner = {
  ...operator,
  sign: async (digest) => {
    await pause(20);
    return operator.sign(digest);
  },
};

test.each([
  ['the quotes that the gateway issues a second', { x402: scarce }, {}],
  ['the signer', { signer: slowSigner }, { maxWaiting: 4 }],
] as const)(
  'a client that asks without end takes its share of %s, and every quote of another is answered',
  async (_, scarcity, limits) => {
    const options = 'x402' in scarcity ? { x402: scarcity.x402(20) } : scarcity;
    const server = await startPricing(options, { limits });
    const hostile = askWithoutEnd(server.url, { localAddress: '127.0.0.2' });
    await eventually(() => expect(hostile.refused).toBeGreaterThan(100));
    const ask = grpcClient(server.url);
    for (let nth = 0; nth < 20; nth++) expect(await ask()).toHaveProperty('signature');
    expect(hostile.answered).toBeGreaterThan(10);
  },
);

test('a trusted proxy’s forwarded addresses tell clients apart, and nothing that clients write does', async () => {
  const limits = { maxWaiting: 4 };
  const server = await startPricing({ signer: slowSigner }, { limits, trustProxy: ['127.0.0.0/8'] });
  const hostile = askWithoutEnd(server.url, { headers: { 'x-forwarded-for': '198.51.100.7, 203.0.113.9' } });
  await eventually(() => expect(hostile.refused).toBeGreaterThan(100));
  const askAs = async (forwarded: string): Promise<number> => {
    const headers = { 'content-type': 'application/json', 'x-forwarded-for': forwarded };
    const sent = { method: 'POST', headers, body: '{"serviceId":"1"}' };
    return (await fetch(server.url + route, sent)).status;
  };
  for (let nth = 0; nth < 5; nth++) expect(await askAs('203.0.113.10')).toBe(200);
  const asHostile = await Promise.all(
    Array.from({ length: 20 }, (_, nth) => askAs(`192.0.2.${nth}, 203.0.113.9`)),
  );
  expect(asHostile).toContain(429);
});
