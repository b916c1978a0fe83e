/**
 * Eight hostile clients, each with its own address, that together send at a fixed rate until their parent stops them. Runs
 * as its own process. A request that finds all connections busy is not sent; the result tells how many were.
 */
import { randomBytes } from 'node:crypto';
import { connect, type Socket } from 'node:net';
import { authorizationOf, newWallet, sign, type Wallet } from '../payments.ts';
import { terms } from '../terms.ts';
import { splitMessages } from '../wire.ts';

export const attacks = [
  'health',
  'signatures',
  'unfunded',
  'v1',
  'quotes',
  'bodies',
  'chat',
  'parsers',
  'readers',
  'all',
] as const;
export type Attack = (typeof attacks)[number];

export type AttackOrder =
  | {
      readonly op: 'start';
      readonly url: string;
      readonly attack: Attack;
      /** The same bytes and connections, but every request asks for `/x402/health`. */
      readonly isForHealth: boolean;
    }
  | { readonly op: 'stop' };

export interface Attacked {
  /** What its bounds allow: of requests, and of bytes. */
  readonly duePerSec: number;
  readonly perSec: number;
  /** Due at its rate, and not sent because no answer had come. */
  readonly unsent: number;
  readonly byStatus: Readonly<Record<string, number>>;
}

/** As many as eight hosts send over 32 Mbit/s each. */
const maxBytesPerSec = 32_000_000;
const mostPerSec = 1_000;
const tickMs = 10;
const connections = 256;
/** Connections that begin a body and never send the rest. */
const slowConnections = 300;
/** Connections that ask for the largest file, 4 MB, and read nothing. */
const readingConnections = 400;
const addresses = Array.from({ length: 8 }, (_, at) => `127.0.0.${at + 2}`);
const addressOf = (at: number): string => addresses[at % addresses.length] ?? '';
const bodyBytes = 64 * 1024;
const pool = 500;

const head = (path: string, url: string, headers: string, length: number): string =>
  `POST ${path} HTTP/1.1\r\nHost: ${new URL(url).host}\r\nContent-Type: application/json\r\n` +
  `Content-Length: ${length}\r\n${headers}\r\n`;

const v1 = (signature: string, authorization: object): string =>
  Buffer.from(
    JSON.stringify({
      x402Version: 1,
      scheme: 'exact',
      network: 'base-sepolia',
      payload: { signature, authorization },
    }),
  ).toString('base64');

/** Payments of strangers: some signed over what they offer, some over nothing, some wrapped. */
function paid(
  url: string,
  amount: () => string,
  signature: (wallet: Wallet, authorization: ReturnType<typeof authorizationOf>) => string,
): Buffer[] {
  return Array.from({ length: pool }, () => {
    const wallet = newWallet();
    const authorization = authorizationOf(wallet, amount());
    return Buffer.from(
      `${head(terms.path, url, `X-PAYMENT: ${v1(signature(wallet, authorization), authorization)}\r\n`, 2)}{}`,
    );
  });
}

const offered = (): string => terms.amount;
const body = Buffer.alloc(bodyBytes, 'x');
/** A chat request of about this many bytes, of characters that take long to count as tokens. */
const chat = (url: string, model: string, bytes: number): Buffer => {
  const content = '\u0301\u0323e'.repeat(Math.floor(bytes / 5));
  const text = JSON.stringify({ model, messages: [{ role: 'user', content }] });
  return Buffer.from(`${head('/v1/chat/completions', url, '', Buffer.byteLength(text))}${text}`);
};

/** What careless parsers take long for, in about this many bytes: a form that asks for its input as JSON, many fields, lists and levels. */
function forParsers(url: string): readonly Buffer[] {
  const typed = `as=json&mode=whole&body=${'%22%5C'.repeat(bodyBytes / 6)}`;
  const list = `{"list":[${'{"a":1},'.repeat(bodyBytes / 8)}0]}`;
  const levels = '['.repeat(bodyBytes / 2) + ']'.repeat(bodyBytes / 2);
  const form = (text: string): string =>
    head('/jobs/2/0/order', url, '', text.length).replace('json', 'x-www-form-urlencoded') + text;
  const json = (path: string, text: string): string => head(path, url, '', text.length) + text;
  return [
    form(typed),
    form('a=&'.repeat(bodyBytes / 3)),
    json('/x402/jobs/2/0', list),
    json('/x402/jobs/2/0', levels),
    json('/api/auth/sign-in/email', levels.slice(0, 30_000)),
  ].map((text) => Buffer.from(text));
}

/** The requests of an attack, sent in turn. */
const requestsOf: Readonly<Record<Attack, (url: string) => readonly Buffer[]>> = {
  health: (url) => [Buffer.from(`GET /x402/health HTTP/1.1\r\nHost: ${new URL(url).host}\r\n\r\n`)],
  signatures: (url) => [
    ...paid(url, offered, () => `0x${randomBytes(65).toString('hex')}`),
    ...paid(url, offered, () => `0x${randomBytes(65).toString('hex')}${'6492'.repeat(16)}`),
  ],
  unfunded: (url) => paid(url, offered, sign),
  v1: (url) => paid(url, () => String(1 + Math.floor(Math.random() * 1e9)), sign),
  quotes: (url) => [Buffer.from(`${head(terms.path, url, '', 2)}{}`)],
  bodies: (url) => [
    Buffer.concat([Buffer.from(head('/runner/leases', url, 'Authorization: Bearer x\r\n', bodyBytes)), body]),
    Buffer.concat([Buffer.from(head(terms.path, url, '', bodyBytes)), body]),
  ],
  chat: (url) => [
    ...Array.from({ length: 30 }, () => chat(url, 'paid', bodyBytes)),
    chat(url, 'free', bodyBytes),
    chat(url, 'paid', 40 * bodyBytes),
  ],
  parsers: forParsers,
  // the connections that read nothing are the attack
  readers: (url) => requestsOf.health(url),
  all: (url) => {
    const each = attacks.flatMap((one) =>
      one === 'all' || one === 'health' || one === 'readers' ? [] : [requestsOf[one](url)],
    );
    return Array.from({ length: each.length * pool }, (_, at) => {
      const requests = each[at % each.length] ?? [];
      return requests[Math.floor(at / each.length) % requests.length] ?? body;
    });
  },
};

/** A request of the same headers and body for `/x402/health`. */
const forHealth = (request: Buffer): Buffer =>
  Buffer.concat([Buffer.from('GET /x402/health HTTP/1.1'), request.subarray(request.indexOf('\r\n'))]);

interface Running {
  stop(): Attacked;
}

function start({ url, attack, isForHealth }: AttackOrder & { readonly op: 'start' }): Running {
  const { hostname, port } = new URL(url);
  const aimed = (request: Buffer): Buffer => (isForHealth ? forHealth(request) : request);
  const requests = requestsOf[attack](url).map(aimed);
  const meanBytes = requests.reduce((sum, { length }) => sum + length, 0) / requests.length;
  const duePerSec = Math.min(mostPerSec, maxBytesPerSec / meanBytes);
  const byStatus: Record<string, number> = {};
  const idle: Socket[] = [];
  const sockets = new Set<Socket>();
  let sent = 0;
  let unsent = 0;
  let isOver = false;

  const open = (localAddress: string): void => {
    const socket = connect({ host: hostname, port: Number(port), localAddress, noDelay: true });
    sockets.add(socket);
    socket.on('connect', () => idle.push(socket));
    socket.on(
      'data',
      splitMessages((answer) => {
        const status = answer.slice(9, 12);
        byStatus[status] = (byStatus[status] ?? 0) + 1;
        if (!/connection: close/i.test(answer)) idle.push(socket);
      }),
    );
    socket.on('error', () => {});
    socket.on('close', () => {
      sockets.delete(socket);
      const at = idle.indexOf(socket);
      if (at >= 0) idle.splice(at, 1);
      if (!isOver) setTimeout(open, tickMs, localAddress);
    });
  };
  for (let at = 0; at < connections; at++) open(addressOf(at));
  const slow = attack === 'bodies' || attack === 'all' ? slowConnections : 0;
  const slowSockets = Array.from({ length: slow }, (_, at) => {
    const socket = connect({ host: hostname, port: Number(port), localAddress: addressOf(at) });
    socket.on('error', () => {});
    const payment = v1('0x', authorizationOf(newWallet(), terms.amount));
    socket.write(aimed(Buffer.from(`${head(terms.path, url, `X-PAYMENT: ${payment}\r\n`, 1_000_000)}x`)));
    return socket;
  });

  const readers = new Set<Socket>();
  const openReader = (localAddress: string): void => {
    const socket = connect({ host: hostname, port: Number(port), localAddress });
    readers.add(socket);
    socket.on('error', () => {});
    socket.on('close', () => {
      readers.delete(socket);
      if (!isOver) setTimeout(openReader, tickMs, localAddress);
    });
    socket.pause().write(aimed(Buffer.from(`GET /docs/scalar.js HTTP/1.1\r\nHost: ${hostname}\r\n\r\n`)));
  };
  if (attack === 'readers' || attack === 'all')
    for (let at = 0; at < readingConnections; at++) openReader(addressOf(at));

  const startedAt = performance.now();
  const timer = setInterval(() => {
    const due = Math.floor(((performance.now() - startedAt) * duePerSec) / 1_000) - sent - unsent;
    for (let i = 0; i < due; i++) {
      const socket = idle.shift();
      if (!socket) {
        unsent += 1;
        continue;
      }
      socket.write(requests[sent % requests.length] ?? body);
      sent += 1;
    }
  }, tickMs);
  return {
    stop() {
      isOver = true;
      clearInterval(timer);
      const secs = (performance.now() - startedAt) / 1_000;
      for (const socket of [...sockets, ...slowSockets, ...readers]) socket.destroy();
      return { duePerSec, perSec: sent / secs, unsent, byStatus };
    },
  };
}

let running: Running | undefined;
process.on('disconnect', () => process.exit());
process.on('message', (order: AttackOrder) => {
  if (order.op === 'start') running = start(order);
  process.send?.(order.op === 'stop' ? { attacked: running?.stop() } : {});
});
process.send?.({ url: '' });
