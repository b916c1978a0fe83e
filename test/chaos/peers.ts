import { z } from 'zod';
import { toFunctionSelector } from 'viem';
import { permitNonce } from '../support/permit2.ts';
import type { Ambushes } from './ambushes.ts';
import type { ChainGate } from './chain-gate.ts';
import { paymentKey, type Records } from './records.ts';
import type { Fault, Place } from './faults.ts';
import type { FrontRunner } from './front-runner.ts';
import { applyFault } from './http-faults.ts';
import {
  type Answer,
  type Exchange,
  type HttpProxy,
  jsonAnswer,
  type Reply,
  startHttpProxy,
} from '../support/http-proxy.ts';
import type { FaultInjector } from './fault-injector.ts';
import type { Step } from './steps.ts';

/** Applies the strike of a step; true when it killed the gateway, so that the answer need not be sent. */
export type StrikeHere = (step: Step) => Promise<boolean>;

export interface PeerParts {
  readonly faults: FaultInjector;
  readonly strike: StrikeHere;
}

type Forward = (body?: Buffer) => Promise<Answer>;

const settleCall = z.object({
  paymentPayload: z.object({
    payload: z
      .union([
        z.object({ signature: z.string(), authorization: z.object({ from: z.string(), nonce: z.string() }) }),
        z.object({
          signature: z.string(),
          permit2Authorization: z.object({ from: z.string(), nonce: z.string().transform(permitNonce) }),
        }),
      ])
      .transform(({ signature, ...payload }) => ({
        signature,
        ...('authorization' in payload ? payload.authorization : payload.permit2Authorization),
      })),
  }),
  paymentRequirements: z.object({ asset: z.string(), network: z.string() }),
});
const uptoCall = z.looseObject({
  paymentPayload: z.looseObject({
    payload: z.looseObject({
      permit2Authorization: z.looseObject({ permitted: z.looseObject({ amount: z.string() }) }),
    }),
  }),
  paymentRequirements: z.looseObject({ scheme: z.literal('upto'), amount: z.string() }),
});
const isValid = z.object({ isValid: z.literal(true) });
const settled = z.object({ success: z.literal(true), transaction: z.string() });

export interface FacilitatorParts {
  readonly records: Records;
  readonly frontRunner: FrontRunner;
  readonly ambushes: Ambushes;
  readonly gate: ChainGate;
}

/** The proxy in front of the facilitator: faults, false answers, front-running, and the steps around verify and settle. */
export function startFacilitatorProxy(
  target: string,
  { faults, strike }: PeerParts,
  { records, frontRunner, ambushes, gate }: FacilitatorParts,
): Promise<HttpProxy> {
  const lie = async (
    kind: string,
    call: z.infer<typeof settleCall>,
    changed: Buffer | undefined,
    forward: Forward,
  ): Promise<Reply | undefined> => {
    const { network, asset } = call.paymentRequirements;
    const { from, nonce } = call.paymentPayload.payload;
    const about = { network, payer: from };
    switch (kind) {
      case 'lie_invalid':
        return jsonAnswer({ isValid: false, invalidReason: 'invalid_exact_evm_signature', payer: from });
      case 'lie_failed':
        await forward();
        return jsonAnswer({ success: false, errorReason: 'insufficient_funds', transaction: '', ...about });
      case 'lie_success':
        records.addLie(asset, from, nonce);
        return jsonAnswer({
          success: true,
          transaction: `0x${nonce.slice(2).split('').toReversed().join('')}`,
          ...about,
        });
      case 'lie_replay': {
        const transaction = records.transactions.get(`${asset}/${from}`);
        if (transaction === undefined) return undefined;
        records.addLie(asset, from, nonce);
        return jsonAnswer({ success: true, transaction, ...about });
      }
      case 'move_more':
      case 'move_less': {
        if (!changed) return undefined;
        const reply = await forward(changed);
        if (settled.safeParse(parseJson(reply.body)).success)
          records.movedOtherwise.add(paymentKey(asset, from, nonce));
        return reply;
      }
      default:
        return undefined;
    }
  };

  const behave = async (exchange: Exchange, forward: Forward, place: 'verify' | 'settle'): Promise<Reply> => {
    const call = settleCall.parse(JSON.parse(exchange.body.toString('utf8')));
    const { from, nonce, signature } = call.paymentPayload.payload;
    if (place === 'settle') records.settles.set(nonce, Date.now());
    if (await strike(`before_${place}`)) return 'cut';
    if ((await frontRunner.run(nonce, `before_${place}`)) && place === 'verify')
      records.landedBeforeVerify.add(nonce);
    const about = { network: call.paymentRequirements.network, payer: from };
    const planned = await ambushes.answer({ place, nonce, signature, about }, forward);
    if (planned) {
      faults.count(`${place}: planned answer`, nonce.slice(0, 10));
      return planned;
    }
    const drawn = faults.draw(place, moves);
    const changed = movingOtherwise(drawn.kind, exchange.body);
    const isMove = moves.some((move) => move === drawn.kind);
    const fault: Fault = isMove && !changed ? { kind: 'none', ms: 0 } : drawn;
    const lied = await lie(fault.kind, call, changed, forward);
    if (fault.kind !== 'none') faults.count(`${place}: ${fault.kind}`, nonce.slice(0, 10));
    const reply = lied ?? (await applyFault(fault, forward, faults));
    if (reply !== 'cut' && place === 'verify' && isValid.safeParse(parseJson(reply.body)).success)
      records.validated.add(paymentKey(call.paymentRequirements.asset, from, nonce));
    if (reply !== 'cut' && !lied && place === 'settle') {
      const read = settled.safeParse(parseJson(reply.body));
      const { asset } = call.paymentRequirements;
      if (read.success) records.transactions.set(`${asset}/${from}`, read.data.transaction);
    }
    return (await strike(`after_${place}`)) ? 'cut' : reply;
  };

  return startHttpProxy(
    () => target,
    async (exchange, forward) => {
      if (exchange.path === '/verify') return behave(exchange, forward, 'verify');
      // a transfer that lands while a reorg is counted would be removed without a record
      if (exchange.path === '/settle')
        return behave(exchange, (body) => gate.send(() => forward(body)), 'settle');
      return plainFault('supported', forward, faults);
    },
  );
}

/** What is answered late, as most payments by upto are, is settled when there are no other faults any more. */
const moves = ['move_more', 'move_less'] as const;

/** A request to settle another amount of a payment by upto than the gateway says; undefined where there is no other. */
function movingOtherwise(kind: Fault['kind'], body: Buffer): Buffer | undefined {
  const { data: asked } = uptoCall.safeParse(parseJson(body));
  if (!asked || (kind !== 'move_more' && kind !== 'move_less')) return undefined;
  const { paymentPayload, paymentRequirements: told } = asked;
  const half = BigInt(told.amount) / 2n;
  const amount =
    kind === 'move_more'
      ? paymentPayload.payload.permit2Authorization.permitted.amount
      : String(half > 0n ? half : 1n);
  if (amount === told.amount) return undefined;
  return Buffer.from(JSON.stringify({ ...asked, paymentRequirements: { ...told, amount } }));
}

const usedCalls = ['authorizationState(address,bytes32)', 'nonceBitmap(address,uint256)'].map((one) =>
  toFunctionSelector(one),
);

/** The proxy in front of the chain: faults, and the steps at which a settlement is looked up. */
export function startRpcProxy(target: string, { faults, strike }: PeerParts): Promise<HttpProxy> {
  return startHttpProxy(
    () => target,
    async ({ body }, forward) => {
      const text = body.toString('utf8');
      const isTransaction = text.includes('eth_getTransactionByHash');
      const isLogs = text.includes('eth_getLogs');
      const isSearch = text.includes('fromBlock') || usedCalls.some((call) => text.includes(call));
      if (isTransaction && (await strike('during_confirmation'))) return 'cut';
      if (isSearch && (await strike('during_resolution'))) return 'cut';
      if (faults.isRpcOut()) {
        faults.count('rpc: outage');
        return 'cut';
      }
      const fault = faults.draw('rpc');
      if (fault.kind !== 'stale') return plainFault('rpc', forward, faults, fault);
      if (!isTransaction && !isLogs) return forward();
      faults.count('rpc: stale');
      return jsonAnswer({ jsonrpc: '2.0', id: 1, result: isLogs ? [] : null });
    },
  );
}

/** The proxy in front of the push runner. */
export function startPushProxy(
  target: string,
  { faults, strike }: PeerParts,
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
        faults,
      );
      return (await strike('after_push')) ? 'cut' : reply;
    },
  );
}

/** The proxy between the lease runner and the gateways. */
export function startLeaseProxy(
  target: () => string,
  faults: FaultInjector,
  strikeRunner: (step: 'leased') => void,
): Promise<HttpProxy> {
  return startHttpProxy(target, async ({ path }, forward) => {
    if (path !== '/runner/leases') return plainFault('report', forward, faults);
    const reply = await plainFault('lease', forward, faults);
    if (reply !== 'cut' && reply.body.includes('"lease_id"')) strikeRunner('leased');
    return reply;
  });
}

async function plainFault(
  place: Place,
  forward: Forward,
  faults: FaultInjector,
  fault = faults.draw(place),
): Promise<Reply> {
  if (fault.kind !== 'none') faults.count(`${place}: ${fault.kind}`);
  return applyFault(fault, forward, faults);
}

function parseJson(body: Buffer): unknown {
  try {
    return JSON.parse(body.toString('utf8')) as unknown;
  } catch {
    return undefined;
  }
}
