import { traceStep, type Tracing } from '../base/values/tracing.ts';
import type { Chain } from '../payments/peers/chain/chain.ts';
import type { Facilitator } from '../payments/peers/facilitator/facilitator.ts';

type Answered = { readonly kind: string };

/** Answers that leave the payment's outcome open. */
const failures: ReadonlySet<string> = new Set(['unavailable', 'unknown', 'not_sent']);

/** Calls as spans of the requests that wait for them, with the kinds of their answers. */
function traced<A extends readonly unknown[], R extends Answered>(
  tracing: Tracing,
  peer: string,
  name: string,
  call: (...args: A) => Promise<R>,
): (...args: A) => Promise<R> {
  const start = { name, kind: 'client', attributes: { 'tollbook.peer': peer } } as const;
  return (...args) =>
    traceStep(
      tracing,
      start,
      () => call(...args),
      ({ kind }) => ({
        attributes: { 'tollbook.outcome': kind },
        error: failures.has(kind) ? kind : undefined,
      }),
    );
}

export function tracedFacilitator(facilitator: Facilitator, tracing: Tracing | undefined): Facilitator {
  if (!tracing) return facilitator;
  const peer = 'facilitator';
  return {
    ...facilitator,
    verify: traced(tracing, peer, 'verify', facilitator.verify),
    settle: traced(tracing, peer, 'settle', facilitator.settle),
  };
}

export function tracedChain(chain: Chain, tracing: Tracing | undefined): Chain {
  if (!tracing) return chain;
  const peer = 'chain';
  return {
    ...chain,
    waitForSettlement: traced(tracing, peer, 'confirm', chain.waitForSettlement),
    findSettlement: traced(tracing, peer, 'find settlement', chain.findSettlement),
    findAuthorization: traced(tracing, peer, 'find authorization', chain.findAuthorization),
    isUsed: traced(tracing, peer, 'is used', chain.isUsed),
  };
}
