import { once } from 'node:events';
import { type ClientHttp2Stream, connect, constants } from 'node:http2';
import { connect as connectSocket } from 'node:net';
import { status } from '@grpc/grpc-js';
import { expect, onTestFinished, test } from 'vitest';
import type { PricingServer, QuoteSigner } from '../../../src/app/pricing/index.ts';
import { grpcClient, operator, route, startPricing } from '../../support/pricing.ts';
import { soonMs } from '../../support/time-limits.ts';
import { eventually } from '../../support/wait.ts';

/** GetJobPriceRequest{serviceId: 1} as a message of gRPC. */
const message = Buffer.of(0, 0, 0, 0, 2, 8, 1);
const json = '{"serviceId":"1"}';

type Line = Readonly<Record<string, unknown>>;

interface SlowServer extends PricingServer {
  /** Those that it logs of requests. */
  readonly lines: Line[];
  /** Resolves once the signer is asked. */
  readonly isAsked: Promise<void>;
  release(): void;
}

/** A server whose signer signs once `release` is called. */
async function startSlow(limits = {}): Promise<SlowServer> {
  const { promise, resolve } = Promise.withResolvers<void>();
  const { promise: isAsked, resolve: asked } = Promise.withResolvers<void>();
  const sign: QuoteSigner['sign'] = async (digest) => {
    asked();
    await promise;
    return operator.sign(digest);
  };
  const lines: Line[] = [];
  const log = { info: (line: object) => void lines.push(line as Line), warn() {}, error() {} };
  const server = await startPricing({ signer: { ...operator, sign } }, { log, limits });
  return { ...server, lines, isAsked, release: resolve };
}

function open(url: string): ClientHttp2Stream {
  const session = connect(url).on('error', () => {});
  onTestFinished(() => session.destroy());
  const headers = { ':method': 'POST', ':path': route, 'content-type': 'application/grpc', te: 'trailers' };
  return session.request(headers).on('error', () => {});
}

const leaving: Record<string, (stream: ClientHttp2Stream) => void> = {
  'its connection': (stream) => stream.session?.destroy(),
  'its stream': (stream) => stream.close(constants.NGHTTP2_CANCEL),
  'its stream without an error': (stream) => stream.close(constants.NGHTTP2_NO_ERROR),
};

test.each(Object.entries(leaving))(
  'a client that ends %s in the middle of a request is not held, and is logged as one that has left',
  async (_, leave) => {
    const { url, lines } = await startSlow();
    for (const sent of [message, message.subarray(0, 3)]) {
      const stream = open(url);
      await new Promise((done) => void stream.write(sent, done));
      leave(stream);
    }
    await eventually(() => {
      expect(lines).toHaveLength(2);
    });
    // of half a message, Node may report its end before it reports that the stream is reset: then the refusal was written
    expect(lines).toContainEqual(
      expect.objectContaining({ client_left: true, path: route, client: '127.0.0.1' }),
    );
  },
);

test('a client that leaves over HTTP/1.1 while its quote is signed is logged as one that has left', async () => {
  const { url, lines, isAsked, release } = await startSlow();
  const left = new AbortController();
  const headers = { 'content-type': 'application/json' };
  const gone = fetch(url + route, { method: 'POST', body: json, headers, signal: left.signal });
  await Promise.race([isAsked, gone]);
  left.abort();
  await expect(gone).rejects.toThrow('aborted');
  await eventually(() => {
    expect(lines).toMatchObject([{ client_left: true }]);
  });
  release();
  expect(await grpcClient(url)()).toHaveProperty('signature');
});

test('a request that is not whole at the time limit is cut and logged as cut', async () => {
  const { url, lines } = await startSlow({ requestTimeoutMs: 100 });
  const stream = open(url);
  stream.write(message.subarray(0, 3));
  await once(stream, 'close');
  expect(stream.rstCode).toBe(constants.NGHTTP2_CANCEL);
  expect(lines).toMatchObject([{ cut: true }]);
});

test('a message of 5 MB is refused before the client has sent it, and the server stops immediately after it', async () => {
  const server = await startPricing();
  const ask = grpcClient(server.url);
  const words = 'message size 5000009 is larger than configured readMaxBytes 16384';
  const refusal = { code: status.RESOURCE_EXHAUSTED, details: expect.stringContaining(words) };
  for (let nth = 0; nth < 3; nth++)
    await expect(ask({ requester: Buffer.alloc(5_000_000, 1) })).rejects.toMatchObject(refusal);
  const startedMs = performance.now();
  // it would wait that long for a request that is under way
  expect(await server.stop(200_000)).toEqual({ requestsCut: 0 });
  expect(performance.now() - startedMs).toBeLessThan(soonMs(0));
});

/** What the server answers to the bytes, until it closes the connection or a second is over. */
async function raw(url: string, ...parts: readonly (string | Buffer)[]): Promise<string> {
  const socket = connectSocket(Number(new URL(url).port), '127.0.0.1').on('error', () => {});
  let answer = '';
  socket.setEncoding('latin1').on('data', (text: string) => void (answer += text));
  onTestFinished(() => void socket.destroy());
  for (const part of parts) socket.write(part);
  await eventually(() => {
    expect(answer).toContain('\r\n\r\n');
  });
  socket.destroy();
  return answer;
}

const rest = `Content-Type: application/json\r\nContent-Length: ${json.length}\r\n\r\n${json}`;

test.each([
  ['HTTP/1.1\r\nHost: a b', 200],
  ['HTTP/1.1\r\nHost: [', 200],
  ['HTTP/1.1\r\nHost: x\r\nX-Name: \xff\x01', 400],
  ['HTTP/1.1', 400],
  ['HTTP/1.0', 200],
])('a request with the head %j does not end the server', async (head, code) => {
  const { url } = await startPricing();
  expect(await raw(url, Buffer.from(`POST ${route} ${head}\r\n${rest}`, 'latin1'))).toContain(` ${code} `);
  expect(await raw(url, `POST ${route} HTTP/1.1\r\nHost: x\r\n${rest}`)).toContain(' 200 ');
});

test('over HTTP/1.1 a message that is too large has an answer also if its length is not known', async () => {
  const { url } = await startPricing();
  const type = 'Content-Type: application/json\r\nTransfer-Encoding: chunked\r\n\r\n';
  const chunk = `8000\r\n${'x'.repeat(0x8000)}\r\n`;
  const answer = await raw(
    url,
    `POST ${route} HTTP/1.1\r\nHost: x\r\n${type}`,
    ...Array<string>(20).fill(chunk),
  );
  expect(answer).toContain(' 429 ');
  expect(answer).toContain('"code":"resource_exhausted"');
});
