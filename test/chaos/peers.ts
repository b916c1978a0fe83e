import { z } from 'zod';
import { toFunctionSelector } from 'viem';
import type { Book } from './book.ts';
import type { Place } from './faults.ts';
import type { FrontRunner } from './front-runner.ts';
import { sufferFault } from './http-faults.ts';
import {
  type Answer,
  type Exchange,
  type HttpProxy,
  jsonAnswer,
  type Reply,
  startHttpProxy,
} from './http-proxy.ts';
import type { Misfortune } from './misfortune.ts';
import type { Step } from './steps.ts';

/** What strikes at a step; true where it killed the gateway that was there, so that nobody waits for an answer. */
export type StrikeHere = (step: Step) => Promise<boolean>;

export interface PeerParts {
  readonly misfortune: Misfortune;
  readonly strike: StrikeHere;
}

type Forward = () => Promise<Answer>;

const settleCall = z.object({
  paymentPayload: z.object({
    payload: z.object({ authorization: z.object({ from: z.string(), nonce: z.string() }) }),
  }),
  paymentRequirements: z.object({ asset: z.string(), network: z.string() }),
});
const settled = z.object({ success: z.literal(true), transaction: z.string() });

/** Before the facilitator: faults, lies, front-running, and the steps around verifying and settling. */
export function startFacilitatorProxy(
  target: string,
  { misfortune, strike }: PeerParts,
  book: Book,
  frontRunner: FrontRunner,
): Promise<HttpProxy> {
  const lie = async (
    kind: string,
    call: z.infer<typeof settleCall>,
    forward: Forward,
  ): Promise<Reply | undefined> => {
    const { network, asset } = call.paymentRequirements;
    const { from, nonce } = call.paymentPayload.payload.authorization;
    const about = { network, payer: from };
    switch (kind) {
      case 'lie_invalid':
        return jsonAnswer({ isValid: false, invalidReason: 'invalid_exact_evm_signature', payer: from });
      case 'lie_failed':
        await forward();
        return jsonAnswer({ success: false, errorReason: 'insufficient_funds', transaction: '', ...about });
      case 'lie_success':
        book.noteLie(asset, from, nonce);
        return jsonAnswer({
          success: true,
          transaction: `0x${nonce.slice(2).split('').toReversed().join('')}`,
          ...about,
        });
      case 'lie_replay': {
        const transaction = book.transactions.get(`${asset}/${from}`);
        if (transaction === undefined) return undefined;
        book.noteLie(asset, from, nonce);
        return jsonAnswer({ success: true, transaction, ...about });
      }
      default:
        return undefined;
    }
  };

  const behave = async (exchange: Exchange, forward: Forward, place: 'verify' | 'settle'): Promise<Reply> => {
    const call = settleCall.parse(JSON.parse(exchange.body.toString('utf8')));
    const { from, nonce } = call.paymentPayload.payload.authorization;
    if (await strike(`before_${place}`)) return 'cut';
    await frontRunner.run(nonce, `before_${place}`);
    const fault = misfortune.draw(place);
    const lied = await lie(fault.kind, call, forward);
    if (fault.kind !== 'none') misfortune.note(`${place}: ${fault.kind}`, nonce.slice(0, 10));
    const reply = lied ?? (await sufferFault(fault, forward, misfortune));
    if (reply !== 'cut' && !lied && place === 'settle') {
      const read = settled.safeParse(parseJson(reply.body));
      const { asset } = call.paymentRequirements;
      if (read.success) book.transactions.set(`${asset}/${from}`, read.data.transaction);
    }
    return (await strike(`after_${place}`)) ? 'cut' : reply;
  };

  return startHttpProxy(
    () => target,
    async (exchange, forward) => {
      if (exchange.path === '/verify') return behave(exchange, forward, 'verify');
      if (exchange.path === '/settle') return behave(exchange, forward, 'settle');
      return plainFault('supported', forward, misfortune);
    },
  );
}

const authorizationState = toFunctionSelector('authorizationState(address,bytes32)');

/** Before the chain: faults, and the steps at which a settlement is looked up. */
export function startRpcProxy(target: string, { misfortune, strike }: PeerParts): Promise<HttpProxy> {
  return startHttpProxy(
    () => target,
    async ({ body }, forward) => {
      const text = body.toString('utf8');
      const isReceipt = text.includes('eth_getTransactionReceipt');
      const isLogs = text.includes('eth_getLogs');
      if (isReceipt && (await strike('during_confirmation'))) return 'cut';
      if ((isLogs || text.includes(authorizationState)) && (await strike('during_resolution'))) return 'cut';
      const fault = misfortune.draw('rpc');
      if (fault.kind !== 'stale') return plainFault('rpc', forward, misfortune, fault);
      if (!isReceipt && !isLogs) return forward();
      misfortune.note('rpc: stale');
      return jsonAnswer({ jsonrpc: '2.0', id: 1, result: isLogs ? [] : null });
    },
  );
}

/** Before the runner that calls are pushed to. */
export function startPushProxy(
  target: string,
  { misfortune, strike }: PeerParts,
  strikeRunner: (step: 'pushed') => void,
): Promise<HttpProxy> {
  return startHttpProxy(
    () => target,
    async (_, forward) => {
      if (await strike('before_push')) return 'cut';
      const reply = await plainFault(
        'push',
        () => {
          const answered = forward();
          strikeRunner('pushed');
          return answered;
        },
        misfortune,
      );
      return (await strike('after_push')) ? 'cut' : reply;
    },
  );
}

/** Between a polling runner and the gateways. */
export function startLeaseProxy(
  target: () => string,
  misfortune: Misfortune,
  strikeRunner: (step: 'leased') => void,
): Promise<HttpProxy> {
  return startHttpProxy(target, async ({ path }, forward) => {
    if (path !== '/runner/leases') return plainFault('report', forward, misfortune);
    const reply = await plainFault('lease', forward, misfortune);
    if (reply !== 'cut' && reply.body.includes('"lease_id"')) strikeRunner('leased');
    return reply;
  });
}

async function plainFault(
  place: Place,
  forward: Forward,
  misfortune: Misfortune,
  fault = misfortune.draw(place),
): Promise<Reply> {
  if (fault.kind !== 'none') misfortune.note(`${place}: ${fault.kind}`);
  return sufferFault(fault, forward, misfortune);
}

function parseJson(body: Buffer): unknown {
  try {
    return JSON.parse(body.toString('utf8')) as unknown;
  } catch {
    return undefined;
  }
}
