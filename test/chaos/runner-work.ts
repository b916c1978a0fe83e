/** What gateways and runners of a rig agree about. */
export const runnerToken = 'a-runner-token-of-the-fault-harness';

/** A job that triggers call, whose runner or broker each fleet configures. */
export const fleetWork = {
  runner: 'fleet',
  token: 'a-token-of-the-runners-of-the-fleet-alone',
  serviceId: 5,
  leaseSecs: 5,
  workMs: 5,
} as const;

/** What one runner process does. */
export interface RunnerWork {
  readonly mode: 'push' | 'lease' | 'jetstream';
  /** Its port, where calls are pushed; otherwise the URL of a gateway, or those of the broker's servers with commas between them. */
  readonly where: string;
  /** For how long it holds each paid call at its first attempt. */
  readonly holdMs?: number;
  /** How many calls it runs at once. With it the calls are those of the fleet, and none of them fails. */
  readonly concurrency?: number;
}
