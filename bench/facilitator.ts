/**
 * A stub facilitator without a chain: every well-formed payment is valid, every settlement succeeds with a transaction
 * hash of its own. Runs as a process of its own and reports its address to its parent.
 */
import { randomBytes } from 'node:crypto';
import { createServer } from 'node:net';
import { boundPort } from '../src/devnet/ports.ts';
import { terms } from './terms.ts';
import { splitMessages } from './wire.ts';

interface Question {
  readonly paymentPayload: {
    readonly payload: {
      readonly signature: string;
      readonly authorization: Readonly<Record<string, string>>;
    };
  };
  readonly paymentRequirements: Readonly<Record<string, unknown>>;
}

const count = { verify: 0, settle: 0 };

const answers: Readonly<Record<string, (body: Buffer) => object>> = {
  '/verify': (body) => {
    count.verify++;
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
  // answers the RPC methods that a readiness check calls
  '/rpc': (body) => ({
    jsonrpc: '2.0',
    id: (JSON.parse(body.toString()) as { id: number }).id,
    result: `0x${terms.chainId.toString(16)}`,
  }),
};

/** The payer of a well-formed payment. */
function payerOf(body: Buffer): string | undefined {
  const { paymentPayload, paymentRequirements } = JSON.parse(body.toString()) as Question;
  const { signature, authorization } = paymentPayload.payload;
  const { from, to, value, nonce } = authorization;
  const isGood =
    signature.length === 132 &&
    nonce?.length === 66 &&
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
      const text = JSON.stringify(answers[path]?.(body) ?? {});
      socket.write(
        `HTTP/1.1 200 OK\r\ncontent-type: application/json\r\ncontent-length: ${text.length}\r\n\r\n${text}`,
      );
    }),
  );
});
process.on('disconnect', () => process.exit());
server.listen(0, '127.0.0.1', () => process.send?.({ url: `http://127.0.0.1:${boundPort(server)}` }));
