import { sha256 } from '../sha256.ts';
import { canonicalJson } from '../canonical-json.ts';
import type { Hex } from '../primitives.ts';
import type { Firing } from './trigger.ts';

/**
 * The idempotency key of a firing's call: of the firing and its body, since a ledger that lost the call may make one of the same firing with another
 * body. It contains the ledger, because a runner may serve two gateways whose triggers have one name.
 */
export function firingKey(ledgerId: string, { kind, name, id }: Firing, bodySha256: string): Hex {
  return sha256(canonicalJson(['tollbook trigger', ledgerId, kind, name, id, bodySha256]));
}
