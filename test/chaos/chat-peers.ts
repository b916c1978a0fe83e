import { toFunctionSelector } from 'viem';
import { prepaidContractAddress } from '../../src/devnet/prepaid-contract.ts';
import { z } from 'zod';
import type { Fault } from './faults.ts';
import type { FaultInjector } from './fault-injector.ts';
import { applyFault } from './http-faults.ts';
import {
  type Answer,
  type HttpProxy,
  jsonAnswer,
  type Reply,
  startHttpProxy,
} from '../support/http-proxy.ts';
import type { PeerParts } from './peers.ts';
import type { Step } from './steps.ts';
import { countAsked, type Records } from './records.ts';

type Forward = () => Promise<Answer>;

/** Between two pieces of an answer. */
const pauseMs = 60;

/** The proxy in front of the model's server: faults, answers in pieces, and the steps around a completion. */
export function startUpstreamProxy(
  target: string,
  { faults, strike }: PeerParts,
  records: Pick<Records, 'upstream'>,
): Promise<HttpProxy> {
  return startHttpProxy(
    () => target,
    async ({ body }, forward) => {
      const seen = countAsked(records, body);
      if (await strike('before_upstream')) return 'cut';
      const fault = faults.draw('upstream');
      if (fault.kind !== 'none') faults.count(`upstream: ${fault.kind}`);
      const reply = await applyFault(fault, forward, faults);
      if (reply !== 'cut' && reply.status === 200) seen.begun += 1;
      if (await strike('after_upstream')) return 'cut';
      return reply === 'cut' ? reply : inPieces(reply, fault, { faults, strike }, 'during_stream');
    },
  );
}

/** The answer of an upstream, in pieces where the fault says so, with a step in its middle. */
export function inPieces(reply: Answer, { kind }: Fault, { faults, strike }: PeerParts, step: Step): Answer {
  if (kind !== 'pieces' && kind !== 'cut_midway' && kind !== 'hang_midway') return reply;
  const midway = async (): Promise<boolean> => {
    if (await strike(step)) return false;
    if (kind === 'hang_midway') await faults.pause(60_000);
    return kind === 'pieces';
  };
  return { ...reply, pieces: { pauseMs, midway } };
}

const landing = toFunctionSelector(
  'authorizeSpend((bytes32,uint64,uint8,uint256,address,uint256,uint64,bytes))',
).slice(2);
const claiming = toFunctionSelector('claimPayment(bytes32,address)').slice(2);

/** The proxy in front of the chain of spends: faults, and the steps around landing a spend and claiming its payout. */
export function startSpendRpcProxy(target: string, { faults, strike }: PeerParts): Promise<HttpProxy> {
  return startHttpProxy(
    () => target,
    async ({ body }, forward) => {
      const text = body.toString('utf8');
      const isSent = text.includes('eth_sendRawTransaction');
      const step =
        isSent && text.includes(landing)
          ? 'landing'
          : isSent && text.includes(claiming)
            ? 'claim'
            : undefined;
      if (step && (await strike(`before_${step}`))) return 'cut';
      const isOfSpends = isSent || text.toLowerCase().includes(prepaidContractAddress.slice(2));
      const reply = isOfSpends ? await faulty(text, forward, faults) : await forward();
      return step && (await strike(`after_${step}`)) ? 'cut' : reply;
    },
  );
}

async function faulty(text: string, forward: Forward, faults: FaultInjector): Promise<Reply> {
  if (faults.isRpcOut()) {
    faults.count('spend_rpc: outage');
    return 'cut';
  }
  const fault = faults.draw('spend_rpc');
  const isLogs = text.includes('eth_getLogs');
  const isStale = fault.kind === 'stale' && (isLogs || text.includes('eth_getTransactionReceipt'));
  if (isStale || (fault.kind !== 'none' && fault.kind !== 'stale')) faults.count(`spend_rpc: ${fault.kind}`);
  if (isStale) {
    const { id = 1 } = request.safeParse(JSON.parse(text)).data ?? {};
    return jsonAnswer({ jsonrpc: '2.0', id, result: isLogs ? [] : null });
  }
  return applyFault(fault, forward, faults);
}

const request = z.object({ id: z.number() });
