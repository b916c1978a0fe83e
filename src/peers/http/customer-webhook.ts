import { type AddressRule, guardedLookup, hostOf } from './public-address.ts';
import { createWebhook, type WebhookAnswer, type WebhookMessage } from './webhook.ts';
import { isIP } from 'node:net';

const timeoutMs = 10_000;

/**
 * One POST to an address that a customer has named, never repeated, without redirects. What it answers goes to nobody.
 * @param mayCall by default the public internet alone
 */
export async function sendCustomerWebhook(
  to: { readonly url: string; readonly secret: string },
  message: WebhookMessage,
  mayCall: AddressRule,
): Promise<WebhookAnswer> {
  const host = hostOf(new URL(to.url));
  // a connection to an address resolves no name
  if (isIP(host) !== 0 && !mayCall(host)) return { kind: 'failed', cause: 'address_not_public' };
  const webhook = createWebhook({ ...to, timeoutMs, lookup: guardedLookup(mayCall) });
  try {
    return await webhook.send(message);
  } finally {
    await webhook.close();
  }
}
