import { expect } from 'vitest';
import { type Answer, type GatewayClient, runnerSecret } from './gateway.ts';
import { payFor } from './payer.ts';

/** A runner of service 1 that leases its calls, by the token `runnerSecret`. */
export const leasingRunner = `
[[runners]]
name = "poller"
services = [1]
mode = "lease"
token = "env:RUNNER_TOKEN"
`;

/** Posts to a gateway as a runner. */
export function asRunner(
  gateway: GatewayClient,
  to: string,
  body: object,
  bearer = runnerSecret,
): Promise<Answer> {
  return gateway.post(to, {
    body: JSON.stringify(body),
    headers: { 'content-type': 'application/json', authorization: `Bearer ${bearer}` },
  });
}

export interface Leased {
  readonly call_id: number;
  readonly lease_id: string;
}

/** Leases the next call, which may be still to come. */
export async function leaseOne(gateway: GatewayClient): Promise<Leased> {
  const leases = await asRunner(gateway, '/runner/leases', { max: 1, lease_secs: 60, wait_secs: 30 });
  expect(leases.json.calls).toHaveLength(1);
  return leases.json.calls[0];
}

export async function completeCall(
  gateway: GatewayClient,
  { call_id, lease_id }: Leased,
  text = 'done',
): Promise<void> {
  const result = { content_type: 'text/plain', body_base64: Buffer.from(text).toString('base64') };
  const { status } = await asRunner(gateway, `/runner/calls/${call_id}/complete`, { lease_id, result });
  expect(status).toBe(200);
}

export async function failCall(
  gateway: GatewayClient,
  { call_id, lease_id }: Leased,
  { error = 'cannot', retry = false } = {},
): Promise<void> {
  const failure = { lease_id, retry, error };
  expect((await asRunner(gateway, `/runner/calls/${call_id}/fail`, failure)).status).toBe(200);
}

/** The receipt of a paid call. */
export interface Paid {
  readonly path: string;
  readonly bearer: Record<string, string>;
}

export async function paid(gateway: GatewayClient): Promise<Paid> {
  const { status, json } = await payFor(gateway, '/x402/jobs/1/0');
  expect(status).toBe(202);
  return {
    path: `/x402/receipts/${json.quote_digest}`,
    bearer: { authorization: `Bearer ${json.receipt_token}` },
  };
}
