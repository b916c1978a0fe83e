import { createHmac } from 'node:crypto';

/** Where progress of a call is reported, and under which lease: metadata of calls that their runner has not leased itself. */
export const progressUrlHeader = 'x-net-progress-url';
export const progressTokenHeader = 'x-net-progress-token';
export const leaseHeader = 'x-net-lease-id';

/**
 * Proves the holder of one lease to the gateway, only for its progress. For progress a runner never sends its own token to the gateway's public address.
 * The label keeps it apart from the signatures with the same key.
 * @param secret the runner's token; its UTF-8 bytes are the key
 */
export function progressToken(
  secret: string,
  { callId, leaseId }: { readonly callId: number; readonly leaseId: string },
): string {
  return createHmac('sha256', secret).update(`progress.${callId}.${leaseId}`).digest('base64url');
}
