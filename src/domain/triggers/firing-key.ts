import { sha256 } from '../payments/payment.ts';
import { canonicalJson } from '../values/canonical-json.ts';
import type { Hex } from '../values/primitives.ts';
import type { Firing } from './trigger.ts';

/**
 * The idempotency key of a firing's call. Its text begins with a bracket, and that of a payment with its network: no firing has the key of a
 * payment. It contains the ledger, because a runner may serve two gateways whose triggers have one name.
 */
export function firingKey(ledgerId: string, { kind, name, id }: Firing): Hex {
  return sha256(canonicalJson(['tollbook trigger', ledgerId, kind, name, id]));
}
