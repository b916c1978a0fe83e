/** What the gateways and the runners of the fleet agree about. */
export const fleet = {
  serviceId: 1,
  runner: 'fleet',
  token: 'a-secret-of-the-runners-of-the-fleet-test',
  /** The shortest: what a killed runner had is driven again soon. */
  leaseSecs: 5,
  /** What a handler takes for a call. */
  workMs: 5,
} as const;
