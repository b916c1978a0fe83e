import { createHash } from 'node:crypto';
import { canonicalJson } from '../../../base/values/canonical-json.ts';
import type { ItemClass } from './reconcile.ts';
import type { ItemFields } from './tally.ts';

/**
 * A break's id, the same in every run and period that finds it, from its class, token, place on the chain, payment and amounts.
 * Not from its number, its event, or facts that only some runs find.
 */
export function breakId(name: ItemClass, item: ItemFields): string {
  const { of, network, asset, pay_to, quote_digest, transaction, log_index } = item;
  const { ledger_amount, chain_amount, chain_asset, decimals, chain_decimals } = item;
  const nonce = of === 'payment' ? item.payment_nonce : undefined;
  const named = { class: name, of, network, asset, pay_to, quote_digest, payment_nonce: nonce };
  const all = {
    ...named,
    transaction,
    log_index,
    ledger_amount,
    chain_amount,
    chain_asset,
    decimals,
    chain_decimals,
  };
  const known = Object.fromEntries(
    Object.entries(all).flatMap(([key, value]) => (value == null ? [] : [[key, value]])),
  );
  return `0x${createHash('sha256').update(canonicalJson(known)).digest('hex')}`;
}
