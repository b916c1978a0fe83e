/**
 * `node bench/exchange.ts [ROUNDS]`: the processor time of one HTTP exchange with a stub facilitator, through the gateway's client and
 * through a bare socket that writes the same bytes and splits the answers. The ways take turns in one run.
 */
import { connect, type Socket } from 'node:net';
import { say } from '../src/base/terminal/terminal.ts';
import { createFacilitator } from '../src/payments/peers/facilitator/facilitator.ts';
import { createHttpPool } from '../src/base/peers/http/http.ts';
import { startProgram } from './processes.ts';
import { row, ruler } from './report.ts';
import { terms } from './terms.ts';
import { splitMessages } from './wire.ts';

const rounds = Number(process.argv[2] ?? 9);
const exchanges = 4_000;
const warmRounds = 2;
const timeoutMs = 10_000;

const requirement = { payTo: terms.payTo, amount: terms.amount, asset: terms.asset, network: terms.network };
const question = {
  x402Version: 2,
  paymentPayload: {
    x402Version: 2,
    accepted: requirement,
    payload: {
      signature: `0x${'a'.repeat(130)}`,
      authorization: {
        from: terms.payTo,
        to: terms.payTo,
        value: terms.amount,
        validAfter: '1700000000',
        validBefore: '1900000000',
        nonce: `0x${'b'.repeat(64)}`,
      },
    },
  },
  paymentRequirements: requirement,
} as const;
const body = JSON.stringify(question);
const jsonType = { 'content-type': 'application/json' };

interface Way {
  readonly name: string;
  ask(): Promise<boolean>;
  close(): Promise<void>;
}

function bareSockets(url: string): Way {
  const { hostname, port, host } = new URL(url);
  const idle: Socket[] = [];
  const waiting = new Map<Socket, (isGood: boolean) => void>();
  const open = (): Socket => {
    const socket = connect({ host: hostname, port: Number(port), noDelay: true });
    const take = splitMessages((head) => {
      idle.push(socket);
      waiting.get(socket)?.(head.startsWith('HTTP/1.1 200'));
    });
    return socket.on('data', take);
  };
  const bytes =
    `POST /verify HTTP/1.1\r\nhost: ${host}\r\ncontent-type: application/json\r\n` +
    `content-length: ${Buffer.byteLength(body)}\r\n\r\n${body}`;
  return {
    name: 'bare socket',
    ask() {
      const socket = idle.pop() ?? open();
      return new Promise((resolve) => {
        waiting.set(socket, resolve);
        socket.write(bytes);
      });
    },
    async close() {
      for (const socket of idle) socket.destroy();
    },
  };
}

function waysTo(url: string): readonly Way[] {
  const pool = createHttpPool(url);
  const request = { method: 'POST', path: '/verify', headers: jsonType, body } as const;
  const facilitator = createFacilitator({ url, verifyTimeoutMs: timeoutMs, settleTimeoutMs: timeoutMs });
  return [
    bareSockets(url),
    {
      name: "the gateway's HTTP client",
      async ask() {
        const answer = await pool.request({ ...request, timeoutMs, maxResponseBytes: 65_536 });
        return answer.kind === 'response' && answer.status === 200;
      },
      close: () => pool.close(),
    },
    {
      name: 'a verification, with its JSON and checks',
      ask: async () => (await facilitator.verify(question)).kind === 'valid',
      close: () => facilitator.close(),
    },
  ];
}

/** Processor microseconds of this process for one exchange. */
async function cpuUsOf({ name, ask }: Way, concurrency: number): Promise<number> {
  const before = process.cpuUsage();
  let left = exchanges;
  const drive = async (): Promise<void> => {
    while (left-- > 0) if (!(await ask())) throw new Error(`${name}: an exchange failed`);
  };
  await Promise.all(Array.from({ length: concurrency }, drive));
  const { user, system } = process.cpuUsage(before);
  return (user + system) / exchanges;
}

function lowerQuartile(values: readonly number[]): number {
  return values.toSorted((a, b) => a - b)[Math.floor(values.length / 4)] ?? Number.NaN;
}

const stub = await startProgram('facilitator.ts');
const ways = waysTo(stub.url);
const columns = ['at a time', 'way', 'CPU µs/exchange', '× bare socket'];
say([row(columns), ruler(columns)].join('\n'));
for (const concurrency of [1, 64]) {
  const found = new Map<Way, number[]>(ways.map((way) => [way, []]));
  for (let round = -warmRounds; round < rounds; round++) {
    for (const [way, measured] of found) {
      const cpuUs = await cpuUsOf(way, concurrency);
      if (round >= 0) measured.push(cpuUs);
    }
  }
  const [bare = Number.NaN] = [...found.values()].map(lowerQuartile);
  for (const [{ name }, measured] of found) {
    const cpuUs = lowerQuartile(measured);
    say(row([String(concurrency), name, cpuUs.toFixed(1), (cpuUs / bare).toFixed(2)]));
  }
}
await Promise.all(ways.map((way) => way.close()));
await stub.stop();
