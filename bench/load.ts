/**
 * The load generator: its own process that sends what its parent asks for. Requests are built before the clock
 * starts; then each connection sends its next request as soon as the previous one is answered.
 */
import { connect, type Socket } from 'node:net';
import { lastEvent, lastWord, path as chatPath, requestBody } from './chat/terms.ts';
import { firstOffer, newWallet, payFor } from './payments.ts';
import { type Quantiles, quantiles } from './quantiles.ts';
import { bodyOf, pathOf, type RouteName } from './routes/terms.ts';
import { terms } from './terms.ts';
import { contentOf, headerOf, splitMessages } from './wire.ts';

export type Order =
  | {
      readonly op: 'make_payments';
      /** The server that issues the offers, before the clock starts. */
      readonly url: string;
      readonly count: number;
      /** A payment to Tollbook names a quote, and a quote is paid once. */
      readonly offers: 'one' | 'one_each';
      /** The client addresses of the connections, in turn; the system chooses without. */
      readonly from?: readonly string[] | undefined;
      readonly signed: boolean;
      /** A path of an HTTP API in place of the job. */
      readonly route?: RouteName | undefined;
    }
  | {
      readonly op: 'send';
      readonly url: string;
      readonly what: 'payments' | 'unpaid';
      readonly count: number;
      readonly concurrency: number;
      readonly from?: readonly string[] | undefined;
      /** Any other status ends the run, and so does any other body of a route. */
      readonly status: number;
      readonly route?: RouteName | undefined;
    }
  | {
      readonly op: 'send_chats';
      readonly url: string;
      /** One for each request, in turn. */
      readonly headers: readonly string[];
      readonly stream: boolean;
      readonly count: number;
      readonly concurrency: number;
    }
  | { readonly op: 'ask_facilitator'; readonly url: string; readonly count: number };

/** Latencies up to the last byte of each answer. */
export interface Sent extends Quantiles {
  readonly seconds: number;
  /** Latencies up to the first event of a stream. */
  readonly firstEvent: Quantiles;
}

const jobBody = JSON.stringify({
  prompt: 'what a client sends with its job, a hundred bytes or so',
  max_tokens: 64,
});
const timeoutMs = 180_000;
const firstEventMark = Buffer.from('data: ');
let payments: Buffer[] = [];
let chatsSent = 0;

/** One payer may have four requests for routes under way that are not settled yet. */
const routePayers = Array.from({ length: 512 }, newWallet);

function requestBytes(url: string, route: RouteName | undefined, paymentHeader?: string): Buffer {
  const payment = paymentHeader === undefined ? '' : `PAYMENT-SIGNATURE: ${paymentHeader}\r\n`;
  if (route)
    return Buffer.from(`GET ${pathOf(route)} HTTP/1.1\r\nHost: ${new URL(url).host}\r\n${payment}\r\n`);
  return Buffer.from(
    `POST ${terms.path} HTTP/1.1\r\nHost: ${new URL(url).host}\r\nContent-Type: application/json\r\n` +
      `Content-Length: ${jobBody.length}\r\n${payment}\r\n${jobBody}`,
  );
}

/** Checks an answer; throws when it is not the expected one. */
type OnAnswer = (head: string, body: Buffer) => void;

interface Latencies {
  readonly lastByteMs: number[];
  readonly firstEventMs: number[];
}

/** Sends the requests of `next` over `concurrency` connections until it returns none. */
async function send(
  url: string,
  concurrency: number,
  next: () => Buffer | undefined,
  onAnswer: OnAnswer,
  from: readonly string[] = [],
): Promise<Sent> {
  const { hostname, port } = new URL(url);
  const sockets = await Promise.all(
    Array.from({ length: concurrency }, (_, at) => connected(hostname, Number(port), from[at % from.length])),
  );
  const latencies: Latencies = { lastByteMs: [], firstEventMs: [] };
  const startedAt = performance.now();
  try {
    await within(
      Promise.all(sockets.map((socket) => drive(socket, next, onAnswer, latencies))),
      `${url} did not answer everything in ${timeoutMs} ms`,
    );
  } finally {
    for (const socket of sockets) socket.destroy();
  }
  const seconds = (performance.now() - startedAt) / 1_000;
  return { seconds, ...quantiles(latencies.lastByteMs), firstEvent: quantiles(latencies.firstEventMs) };
}

function drive(
  socket: Socket,
  next: () => Buffer | undefined,
  onAnswer: OnAnswer,
  latencies: Latencies,
): Promise<void> {
  return new Promise((resolve, reject) => {
    let sentAt = 0;
    let hasBegun = false;
    const sendNext = (): void => {
      const request = next();
      if (!request) return resolve();
      hasBegun = false;
      sentAt = performance.now();
      socket.write(request);
    };
    const take = splitMessages((head, body) => {
      latencies.lastByteMs.push(performance.now() - sentAt);
      onAnswer(head, body);
      sendNext();
    });
    socket.on('data', (chunk) => {
      if (!hasBegun && chunk.includes(firstEventMark)) {
        hasBegun = true;
        latencies.firstEventMs.push(performance.now() - sentAt);
      }
      try {
        take(chunk);
      } catch (error) {
        reject(error instanceof Error ? error : new Error(String(error)));
      }
    });
    socket.on('error', reject);
    socket.on('close', () => reject(new Error('the server closed a connection')));
    sendNext();
  });
}

function connected(host: string, port: number, localAddress?: string): Promise<Socket> {
  return new Promise((resolve, reject) => {
    const socket = connect({ host, port, localAddress, noDelay: true }, () => resolve(socket));
    socket.once('error', reject);
  });
}

async function within<T>(work: Promise<T>, complaint: string): Promise<T> {
  let timer: NodeJS.Timeout | undefined;
  const late = new Promise<never>((_, reject) => {
    timer = setTimeout(() => reject(new Error(complaint)), timeoutMs);
  });
  try {
    return await Promise.race([work, late]);
  } finally {
    clearTimeout(timer);
  }
}

function expectStatus(head: string, status: number): void {
  if (head.startsWith(`HTTP/1.1 ${status} `)) return;
  throw new Error(`not a ${status}: ${head.slice(0, 300)}`);
}

function expectBody(head: string, body: Buffer, expected: Buffer): void {
  const found = contentOf(head, body);
  if (!found.equals(expected)) throw new Error(`not the upstream's answer: ${found.toString().slice(-300)}`);
}

const countDown = (count: number, request: Buffer) => () => (count-- > 0 ? request : undefined);

async function makePayments(order: Extract<Order, { op: 'make_payments' }>): Promise<Sent> {
  const { url, count, offers, signed, from, route } = order;
  const asked = offers === 'one' ? 1 : count;
  const headers: string[] = [];
  const onAnswer: OnAnswer = (head) => {
    expectStatus(head, 402);
    headers.push(headerOf(head, 'payment-required') ?? '');
  };
  const unpaid = countDown(asked, requestBytes(url, route));
  const sent = await send(url, Math.min(asked, 64), unpaid, onAnswer, from);
  payments = [];
  for (let i = 0; i < count; i++) {
    const offer = firstOffer(headers[i % asked] ?? '');
    const wallet = route && routePayers[i % routePayers.length];
    payments.push(requestBytes(url, route, payFor(offer, signed, wallet)));
  }
  return sent;
}

function sendChats({
  url,
  headers,
  stream,
  count,
  concurrency,
}: Extract<Order, { op: 'send_chats' }>): Promise<Sent> {
  const { host } = new URL(url);
  const body = requestBody[stream ? 'stream' : 'whole'];
  const requests = headers.map((header) =>
    Buffer.from(
      `POST ${chatPath} HTTP/1.1\r\nHost: ${host}\r\nContent-Type: application/json\r\n` +
        `Content-Length: ${Buffer.byteLength(body)}\r\n${header}\r\n\r\n${body}`,
    ),
  );
  const next = (): Buffer | undefined => (count-- > 0 ? requests[chatsSent++ % requests.length] : undefined);
  return send(url, concurrency, next, (head, answer) => {
    expectStatus(head, 200);
    if (answer.includes(lastWord) && (!stream || answer.includes(lastEvent))) return;
    throw new Error(`not the whole answer: ${answer.toString('utf8').slice(-300)}`);
  });
}

function obey(order: Order): Promise<Sent> {
  switch (order.op) {
    case 'make_payments':
      return makePayments(order);
    case 'send': {
      const { url, what, count, concurrency, status, from, route } = order;
      const prepared = payments.splice(0, count).values();
      const next =
        what === 'payments' ? () => prepared.next().value : countDown(count, requestBytes(url, route));
      const expected = route && status === 200 ? Buffer.from(bodyOf(route)) : undefined;
      const onAnswer: OnAnswer = (head, body) => {
        expectStatus(head, status);
        if (expected) expectBody(head, body, expected);
      };
      return send(url, concurrency, next, onAnswer, from);
    }
    case 'send_chats':
      return sendChats(order);
    case 'ask_facilitator': {
      const { host } = new URL(order.url);
      const request = Buffer.from(`GET /supported HTTP/1.1\r\nHost: ${host}\r\n\r\n`);
      return send(order.url, 1, countDown(order.count, request), (head) => expectStatus(head, 200));
    }
  }
}

process.on('disconnect', () => process.exit());
process.on('message', (order: Order) => {
  obey(order).then(
    (sent) => process.send?.({ sent }),
    (error: unknown) => process.send?.({ error: String(error) }),
  );
});
process.send?.({ url: '' });
