import { callbackBody, callEnd } from '../rules/callback.ts';
import { foldQuote } from '../../payments/rules/quote-state.ts';
import { backOffMs, withJitterMs } from '../../base/values/back-off.ts';
import type { Address, Hex } from '../../base/values/primitives.ts';
import {
  customerAddresses,
  customerUrl,
  sendCustomerWebhook,
} from '../../base/peers/http/customer-webhook.ts';
import { endCallback, putCallback, returnCallback, type TakenCallback } from '../store/callbacks.ts';
import { readStream } from '../../ledger/store/streams.ts';
import type pg from 'pg';
import type { Config } from '../../base/config/config.ts';
import { nowSecs, type LedgerWriter } from '../../ledger/store/ledger.ts';
import { callbackSecrets, type ReceiptKeys } from '../../payments/use-cases/receipt-keys.ts';

/** Why a callback is refused; undefined if it may be called, as far as that is known without network access. */
export function callbackFault(
  { callbacks, loopbackWebhooks }: Config,
  callbackUrl: string,
): 'invalid_callback_url' | 'callback_not_allowed' | undefined {
  // also: a header that came twice is joined with a blank
  const url = /^[!-~]+$/.test(callbackUrl) ? customerUrl(callbackUrl, loopbackWebhooks) : undefined;
  if (!callbacks) return 'callback_not_allowed';
  if (!url) return 'invalid_callback_url';
  return isAllowed(callbacks, url.hostname) ? undefined : 'callback_not_allowed';
}

function isAllowed({ allowedHosts }: NonNullable<Config['callbacks']>, host: string): boolean {
  return (
    allowedHosts?.some((rule) => (rule.startsWith('*.') ? host.endsWith(rule.slice(1)) : host === rule)) ??
    true
  );
}

/** Keeps the callback of a request, before the append that starts its payment: none can be without it. */
export async function keepCallback(
  { pool, config }: { readonly pool: pg.Pool; readonly config: Config },
  callbackUrl: string,
  of: { readonly stream: Hex; readonly binding: Hex },
  payer: Address,
): Promise<void> {
  const url = customerUrl(callbackUrl, config.loopbackWebhooks);
  if (url) await putCallback(pool, of, url.href, payer);
}

const backOff = { firstMs: 5_000, longestMs: 3_600_000 };
/** A receiver that says so gets nothing more. */
const goneFailure = 'status_410';

export interface CallbackPorts extends LedgerWriter {
  readonly config: Config;
  readonly publicUrl: () => string;
  readonly receiptKeys: ReceiptKeys;
}

/**
 * Tells a client how its call ended, as the ledger has it now, and records what became of it. Nothing is sent if the call has not
 * ended, or not any more.
 */
export async function sendCallback(
  context: CallbackPorts,
  taken: TakenCallback,
  send: typeof sendCustomerWebhook = sendCustomerWebhook,
): Promise<'nothing_to_tell' | 'delivered' | 'given_up' | 'failed'> {
  const { pool, publicUrl, receiptKeys } = context;
  const digest = taken.stream as Hex;
  const { events } = await readStream(pool, digest);
  const state = foldQuote(events);
  const end = callEnd(state, events, taken.binding);
  const told = Math.max(taken.seq, end?.seq ?? 0);
  const finish = (outcome: 'delivered' | 'given_up', failure?: string) =>
    endCallback(pool, taken, told, outcome, failure).then(() => outcome);
  if (!end) {
    await endCallback(pool, taken, told);
    return 'nothing_to_tell';
  }
  // the rules may have changed since its request
  const fault = callbackFault(context.config, taken.url);
  if (fault) return finish('given_up', fault);
  const message = {
    // the same each time it is sent
    id: `${digest}-${end.seq}`,
    timestampSecs: nowSecs(context),
    body: callbackBody(state, events, end, { digest, url: `${publicUrl()}/x402/receipts/${digest}` }),
  };
  const to = { url: taken.url, secret: callbackSecrets(receiptKeys, digest) };
  const sent = await send(to, message, customerAddresses(context.config.loopbackWebhooks));
  if (sent.kind === 'delivered') return finish('delivered');
  const delayMs = Math.round(withJitterMs(backOffMs(backOff, taken.tries - 1), Math.random(), 0.5));
  const giveUpAfterSecs = context.config.callbacks?.giveUpAfterSecs ?? 0;
  if (sent.cause === goneFailure || taken.ageSecs + delayMs / 1_000 > giveUpAfterSecs)
    return finish('given_up', sent.cause);
  await returnCallback(pool, taken, told, delayMs, sent.cause);
  return 'failed';
}
