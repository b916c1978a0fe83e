/**
 * A stub facilitator without a chain: every well-formed payment is valid, every settlement succeeds with a transaction
 * hash of its own. Runs as its own process and reports its address to its parent.
 *
 * `--funded ADDRESS`: the only account with money; without it every payer has money. `--verify-ms` and `--settle-ms`: how long an
 * answer takes on average, as those of a facilitator that asks a chain; half as long to one and a half times as long, so that clients that
 * begin together do not stay together. An answer that is the only one under way takes exactly as long.
 */
import { randomBytes } from 'node:crypto';
import { createServer } from 'node:net';
import { parseArgs } from 'node:util';
import { boundPort } from '../src/devnet/ports.ts';
import { terms } from './terms.ts';
import { splitMessages } from './wire.ts';

interface Question {
  readonly paymentPayload: {
    readonly payload: {
      readonly signature: string;
      readonly authorization?: Readonly<Record<string, string>>;
      readonly permit2Authorization?: {
        readonly from: string;
        readonly permitted: { readonly amount: string };
        readonly nonce: string;
        readonly witness: { readonly to: string };
      };
    };
  };
  readonly paymentRequirements: Readonly<Record<string, unknown>>;
}

const count = { verify: 0, settle: 0 };
/** Answers that wait for their time. */
let delayed = 0;

const { values: flags } = parseArgs({
  options: {
    funded: { type: 'string' },
    'verify-ms': { type: 'string', default: '0' },
    'settle-ms': { type: 'string', default: '0' },
  },
});
const { funded } = flags;
const latencyMs: Readonly<Record<string, number>> = {
  '/verify': Number(flags['verify-ms']),
  '/settle': Number(flags['settle-ms']),
};

const answers: Readonly<Record<string, (body: Buffer) => object | undefined>> = {
  '/verify': (body) => {
    count.verify++;
    if (isWrapped(body)) return undefined;
    if (funded !== undefined && payerOf(body) !== funded)
      return { isValid: false, invalidReason: 'insufficient_funds' };
    const payer = payerOf(body);
    return payer ? { isValid: true, payer } : { isValid: false, invalidReason: 'invalid_payload' };
  },
  '/settle': (body) => {
    count.settle++;
    const payer = payerOf(body);
    const { network } = terms;
    return payer
      ? { success: true, transaction: `0x${randomBytes(32).toString('hex')}`, network, payer }
      : { success: false, errorReason: 'invalid_payload', transaction: '', network };
  },
  '/supported': () => ({
    kinds: [{ x402Version: 2, scheme: 'exact', network: terms.network }],
    extensions: [],
    signers: {},
  }),
  '/count': () => count,
  // answers the RPC methods that a readiness check calls; where wallets have no money, no other
  '/rpc': (body) => {
    const { id, method } = JSON.parse(body.toString()) as { id: number; method: string };
    if (funded !== undefined && method !== 'eth_chainId') return undefined;
    return { jsonrpc: '2.0', id, result: `0x${terms.chainId.toString(16)}` };
  },
};

/** Facilitators fail at a malformed wrapped signature (ERC-6492). */
function isWrapped(body: Buffer): boolean {
  const { paymentPayload } = JSON.parse(body.toString()) as Question;
  return paymentPayload.payload.signature.endsWith('6492'.repeat(16));
}

/** The payer of a well-formed payment. */
function payerOf(body: Buffer): string | undefined {
  const { paymentPayload, paymentRequirements } = JSON.parse(body.toString()) as Question;
  const { signature, authorization = {}, permit2Authorization: permit } = paymentPayload.payload;
  const { from, to, value, nonce } = permit
    ? { ...permit, to: permit.witness.to, value: permit.permitted.amount }
    : authorization;
  const isGood =
    signature.length === 132 &&
    nonce !== undefined &&
    to === paymentRequirements['payTo'] &&
    value === paymentRequirements['amount'];
  return isGood ? from : undefined;
}

const server = createServer({ noDelay: true }, (socket) => {
  socket.on('error', () => socket.destroy());
  socket.on(
    'data',
    splitMessages((head, body) => {
      const path = head.split(' ', 2)[1] ?? '';
      const answer = answers[path]?.(body);
      const text = JSON.stringify(answer ?? {});
      const send = (): unknown =>
        socket.write(
          `HTTP/1.1 ${answer ? '200 OK' : '500 Internal Server Error'}\r\ncontent-type: application/json\r\ncontent-length: ${text.length}\r\n\r\n${text}`,
        );
      const waitMs = (latencyMs[path] ?? 0) * (delayed > 0 ? 0.5 + Math.random() : 1);
      if (waitMs === 0) return void send();
      delayed++;
      setTimeout(() => {
        delayed--;
        send();
      }, waitMs);
    }),
  );
});
process.on('disconnect', () => process.exit());
server.listen(0, '127.0.0.1', () => process.send?.({ url: `http://127.0.0.1:${boundPort(server)}` }));
