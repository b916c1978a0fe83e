import { createFailureRuns } from '../../src/calls/use-cases/failure-runs.ts';
import { pino } from 'pino';
import { parseConfig } from '../../src/base/config/load.ts';
import type { Address } from '../../src/base/values/primitives.ts';
import { triggerCall, type TriggerContext } from '../../src/jobs/use-cases/triggers/trigger-call.ts';
import { readLedgerId } from '../../src/ledger/store/secrets.ts';
import { gatewayConfig, gatewaySecrets } from '../chaos/gateway-config.ts';
import {
  chaosConstants,
  type GatewaySlot,
  type GatewaySlotOptions,
  startGatewaySlot,
} from '../chaos/gateway-process.ts';
import type { Rig } from '../chaos/rig.ts';
import { fleetWork } from '../chaos/runner-work.ts';
import { type OpenLedger, withLedger } from '../chaos/sql.ts';

export type FleetMode = 'lease' | 'jetstream';

const constants = {
  jetstream: { maxBytes: 268_435_456, takeWithinSecs: 20 },
  delivery: { ...chaosConstants.delivery, maxAttempts: 1_000 },
};
/** No payment is made: neither the facilitator nor the chain is there. */
const nowhere = 'http://127.0.0.1:9';
const addressOf = (byte: string): Address => `0x${byte.repeat(20)}`;

type FleetConfig = GatewaySlotOptions['config'];

export function fleetConfig(mode: FleetMode, servers: readonly string[]): FleetConfig {
  const broker = `[jetstream]
servers = ${JSON.stringify(servers)}
replicas = ${servers.length}
`;
  const tables = `
[job_prices.${fleetWork.serviceId}]
0 = "1"
[[runners]]
name = "${fleetWork.runner}"
services = [${fleetWork.serviceId}]
mode = "${mode}"
token = "env:CHAOS_FLEET_TOKEN"
${mode === 'jetstream' ? broker : ''}`;
  return {
    facilitatorUrl: nowhere,
    rpcUrl: nowhere,
    pushUrl: nowhere,
    network: { tokens: [addressOf('5f'), addressOf('6f'), addressOf('9f')], registry: addressOf('7f') },
    payTo: addressOf('8f'),
    maxOutstandingCalls: 1_000_000,
    tables,
  };
}

export function startFleetGateways(
  rig: Rig,
  config: FleetConfig,
  databaseUrl: string,
): Promise<GatewaySlot[]> {
  return Promise.all(
    ['1', '2'].map((name) => startGatewaySlot(rig, { name, dir: rig.dir, config, constants, databaseUrl })),
  );
}

/** Fills the outbox by the use case of triggers: their calls are those of payments in all that follows. */
export async function makeCalls(databaseUrl: string, values: FleetConfig, count: number): Promise<void> {
  const file = 'fleet.toml';
  const text = gatewayConfig({ ...values, port: 0 });
  const env = { ...gatewaySecrets };
  const { config } = await parseConfig(text, { file, env, readFile: async () => '', constants });
  const make = async (ledger: OpenLedger): Promise<void> => {
    await ledger.lane.refresh();
    const context: TriggerContext = {
      ...ledger,
      config,
      log: pino({ level: 'silent' }),
      failureRuns: createFailureRuns(),
      onCallReleased() {},
      tooLate: () => false,
      quoteRealm: { ledgerId: await readLedgerId(ledger.db) },
    };
    let next = 0;
    const makeNext = async (): Promise<void> => {
      while (next < count) {
        const id = `call-${next++}`;
        const made = await triggerCall(context, {
          kind: 'webhook',
          name: 'fleet',
          id,
          job: { serviceId: fleetWork.serviceId, jobIndex: 0 },
          body: Buffer.from(`body of ${id}`),
          contentType: 'text/plain',
        });
        if (made.kind !== 'triggered') throw new Error(`${id} was not recorded: ${made.kind}`);
      }
    };
    await Promise.all(Array.from({ length: 64 }, makeNext));
  };
  await withLedger(databaseUrl, make, 20);
}
