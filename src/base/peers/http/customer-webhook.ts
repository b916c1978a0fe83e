import type { promises } from 'node:dns';
import { isIP } from 'node:net';
import type { RotatingSecret } from '../../values/rotating-secret.ts';
import { type AddressRule, guardedLookup, hostOf, isPublicAddress } from './public-address.ts';
import { createWebhook, type WebhookAnswer, type WebhookMessage } from './webhook.ts';

const timeoutMs = 10_000;
const maxUrlChars = 2_000;

/**
 * Which addresses of customers may be called.
 * @param withLoopback also those of this machine
 */
export function customerAddresses(withLoopback: boolean): AddressRule {
  return (address) => isPublicAddress(address) || (withLoopback && isLoopback(address));
}

/**
 * A URL that a customer names, in its normal form; undefined if it is not one that may be called, as far as that is known without
 * resolving its host: the rest is checked where it is called.
 * @param withLoopback a receiver may be on this machine as well, also without https
 */
export function customerUrl(text: string, withLoopback: boolean): URL | undefined {
  const url = URL.canParse(text) ? new URL(text) : undefined;
  if (!url || text.length > maxUrlChars || url.username !== '' || url.password !== '') return undefined;
  const host = hostOf(url);
  if (isLoopback(host)) return withLoopback && /^https?:$/.test(url.protocol) ? url : undefined;
  if (url.protocol !== 'https:' || /(?:^|\.)localhost\.?$/.test(host)) return undefined;
  return !/^[\d.]+$|:/.test(host) || isPublicAddress(host) ? url : undefined;
}

function isLoopback(host: string): boolean {
  return host === 'localhost' || host === '::1' || /^127\.\d+\.\d+\.\d+$/.test(host);
}

/**
 * One POST to an address that a customer has named, never repeated, without redirects. Its answer is dropped.
 * @param names whom to ask for the addresses of its host; by default the name servers of the system
 */
export async function sendCustomerWebhook(
  to: { readonly url: string; readonly secret: string | RotatingSecret },
  message: WebhookMessage,
  mayCall: AddressRule,
  names?: promises.Resolver,
): Promise<WebhookAnswer> {
  const host = hostOf(new URL(to.url));
  // a connection to an address resolves no name
  if (isIP(host) !== 0 && !mayCall(host)) return { kind: 'failed', cause: 'address_not_public' };
  const webhook = createWebhook({ ...to, timeoutMs, lookup: guardedLookup(mayCall, names) });
  try {
    return await webhook.send(message);
  } finally {
    await webhook.close();
  }
}
