import { once } from 'node:events';
import { readFileSync } from 'node:fs';
import { constants, createSecureServer, type ServerHttp2Session, type ServerHttp2Stream } from 'node:http2';
import { createServer } from 'node:https';
import type { AddressInfo } from 'node:net';
import { getCACertificates, setDefaultCACertificates } from 'node:tls';
import { expect, onTestFinished, test } from 'vitest';
import { createHttpPool, type HttpPool, type HttpRequest } from '../../../../src/base/peers/http/http.ts';
import { makeCertificate } from '../../../support/certificate.ts';
import { holdDeadlines } from '../../../support/deadlines.ts';
import { isInstalled } from '../../../support/installed.ts';
import { temporaryFolder } from '../../../support/program.ts';

const missing = isInstalled('openssl', 'version')
  ? ''
  : ': NOT CHECKED, OPENSSL IS NOT INSTALLED (apt-get install openssl)';
if (missing) process.stderr.write(`\n*** HTTP/2${missing}\n\n`);

const post: HttpRequest = {
  method: 'POST',
  path: '/',
  body: '{"a":1}',
  timeoutMs: 60_000,
  maxResponseBytes: 1000,
};

/** A certificate of `localhost` and its key, trusted until the test ends. */
function trustedCertificate() {
  const files = makeCertificate(temporaryFolder());
  const [cert, key] = [readFileSync(files.certificate, 'utf8'), readFileSync(files.key)];
  const trusted = getCACertificates('default');
  setDefaultCACertificates([...trusted, cert]);
  onTestFinished(() => setDefaultCACertificates(trusted));
  return { cert, key };
}

interface Peer {
  readonly pool: HttpPool;
  readonly sessions: readonly ServerHttp2Session[];
}

/** A peer that speaks HTTP/2 and HTTP/1.1 over TLS, and a pool that trusts it. */
async function startPeer(onStream: (stream: ServerHttp2Stream, count: number) => void): Promise<Peer> {
  const sessions: ServerHttp2Session[] = [];
  let count = 0;
  const server = createSecureServer({ ...trustedCertificate(), allowHTTP1: true });
  server.on('session', (session) => sessions.push(session));
  server.on('stream', (stream) => onStream(stream, (count += 1)));
  server.listen(0, '127.0.0.1');
  await once(server, 'listening');
  const { port } = server.address() as AddressInfo;
  const pool = createHttpPool(`https://localhost:${port}`, { http2: true });
  onTestFinished(async () => {
    await pool.abort();
    for (const session of sessions) session.destroy();
    server.close();
  });
  return { pool, sessions };
}

function answer(stream: ServerHttp2Stream): void {
  stream.respond({ ':status': 200 });
  stream.pipe(stream);
}

test.skipIf(missing)(
  `simultaneous exchanges share one connection to a peer that speaks HTTP/2${missing}`,
  async () => {
    const held: ServerHttp2Stream[] = [];
    const { pool, sessions } = await startPeer((stream) => {
      if (held.push(stream) === 50) for (const each of held.splice(0)) answer(each);
    });
    const answers = await Promise.all(Array.from({ length: 50 }, () => pool.request(post)));
    for (const each of answers)
      expect(each).toMatchObject({ kind: 'response', status: 200, body: Buffer.from('{"a":1}') });
    expect(sessions).toHaveLength(1);
  },
);

test.skipIf(missing)(
  `an HTTP/2 request that its peer refused without processing it is sent once more${missing}`,
  async () => {
    const { pool } = await startPeer((stream, count) => {
      if (count > 1) return answer(stream);
      stream.on('error', () => undefined);
      stream.close(constants.NGHTTP2_REFUSED_STREAM);
    });
    expect(await pool.request(post)).toMatchObject({ kind: 'response', status: 200 });
  },
);

test.skipIf(missing)(
  `an HTTP/2 request that its peer may have processed is never sent again${missing}`,
  async () => {
    let streams = 0;
    const { pool } = await startPeer((stream, count) => {
      streams = count;
      stream.on('error', () => undefined);
      stream.close(constants.NGHTTP2_INTERNAL_ERROR);
    });
    expect(await pool.request(post)).toMatchObject({ kind: 'failed', cause: 'connection', sent: true });
    expect(streams).toBe(1);
  },
);

test.skipIf(missing)(
  `after a time-out on an HTTP/2 connection, whose peer may have vanished, later requests get another connection${missing}`,
  async () => {
    const deadlines = holdDeadlines();
    const asked = Promise.withResolvers<void>();
    const { pool, sessions } = await startPeer((stream, count) => {
      stream.on('error', () => undefined);
      if (count === 1) asked.resolve();
      else answer(stream);
    });
    const answering = pool.request(post);
    await asked.promise;
    await deadlines.end();
    expect(await answering).toMatchObject({ kind: 'failed', cause: 'timeout', sent: true });
    expect(await pool.request(post)).toMatchObject({ kind: 'response', status: 200 });
    expect(sessions).toHaveLength(2);
  },
);

test.skipIf(missing)(`a peer that speaks only HTTP/1.1 is asked over HTTP/1.1${missing}`, async () => {
  const versions: string[] = [];
  const server = createServer(trustedCertificate(), (request, response) => {
    versions.push(request.httpVersion);
    request.pipe(response);
  }).listen(0, '127.0.0.1');
  await once(server, 'listening');
  const pool = createHttpPool(`https://localhost:${(server.address() as AddressInfo).port}`, { http2: true });
  onTestFinished(async () => {
    await pool.abort();
    server.close();
  });
  const answers = await Promise.all(Array.from({ length: 5 }, () => pool.request(post)));
  for (const each of answers) expect(each).toMatchObject({ kind: 'response', status: 200 });
  expect(versions).toEqual(Array(5).fill('1.1'));
});
