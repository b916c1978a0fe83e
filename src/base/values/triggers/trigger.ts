import { canonicalJson } from '../canonical-json.ts';
import type { Hex } from '../primitives.ts';
import { sha256 } from '../sha256.ts';

/** The triggers that an operator configures. */
export const configuredTriggers = ['webhook', 'cron', 'chain'] as const;
/** The sources of calls whose streams have no payment; `route`: a paid route whose answer a runner makes. */
export const triggerKinds = [...configuredTriggers, 'route'] as const;
export type TriggerKind = (typeof triggerKinds)[number];

/**
 * What one firing of a trigger is identified by: a webhook's id, a schedule's time, the place of a log on a chain, the idempotency key of a
 * route's paid request. It becomes a header, and the ledger keeps it for ever: no free text.
 */
export const triggerIdForm = /^[A-Za-z0-9][A-Za-z0-9_.:/+=-]{0,199}$/;

/** One firing of a trigger: it makes one call, for ever. */
export interface Firing {
  readonly kind: TriggerKind;
  /** The trigger's name in the configuration; of a route its job. */
  readonly name: string;
  /** Of `triggerIdForm`. */
  readonly id: string;
}

/**
 * The idempotency key of a firing's call: of the firing and its body, since a ledger that lost the call may make one of the same firing with another
 * body. It contains the ledger, because a runner may serve two gateways whose triggers have one name.
 */
export function firingKey(ledgerId: string, { kind, name, id }: Firing, bodySha256: string): Hex {
  return sha256(canonicalJson(['tollbook trigger', ledgerId, kind, name, id, bodySha256]));
}

const streamPrefix = 'call:';

/** The stream of a call that a trigger made, by the call's idempotency key. */
export function triggeredStream(key: string): string {
  return `${streamPrefix}${key}`;
}

/** Whether a stream is that of a call that a trigger made: a paid call is in the stream of its quote. */
export function isTriggeredStream(stream: string): boolean {
  return stream.startsWith(streamPrefix);
}
