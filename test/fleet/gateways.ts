import { pino } from 'pino';
import { type RunningGateway, startGateway } from '../../src/app/start.ts';
import type { Config } from '../../src/base/config/config.ts';
import { parseConfig } from '../../src/base/config/load.ts';
import { readLedgerId } from '../../src/ledger/store/secrets.ts';
import { openDatabase, openPool } from '../../src/ledger/store/database.ts';
import { openLane } from '../../src/ledger/store/lane.ts';
import { triggerCall, type TriggerContext } from '../../src/jobs/use-cases/triggers/trigger-call.ts';
import { fleet } from './names.ts';

export type FleetMode = 'lease' | 'jetstream';

/** No payment is made: neither the facilitator nor the chain is there. */
const nowhere = 'http://127.0.0.1:9';

export async function fleetConfig(mode: FleetMode, servers: readonly string[]): Promise<Config> {
  const broker = `[jetstream]
servers = ${JSON.stringify(servers)}
replicas = ${servers.length}
`;
  const text = `
bind_address = "127.0.0.1:0"
facilitator_url = "${nowhere}"
receipt_key = "env:KEY"
rate_per_native_unit = "3200.00"
log_level = "silent"
default_invocation_mode = "public_paid"
[limits]
requests_per_minute = 0
max_outstanding_calls = 1_000_000
[delivery]
max_attempts = 1_000
backoff_cap_ms = 1
[[networks]]
id = "eip155:84532"
rpc_url = "${nowhere}"
[[accepted_tokens]]
network = "eip155:84532"
asset = "0x${'5f'.repeat(20)}"
symbol = "USDC"
decimals = 6
pay_to = "0x90f79bf6eb2c4f870365e785982e1f101e93b906"
eip712_name = "USD Coin"
eip712_version = "2"
[job_prices.1]
0 = "1"
[[runners]]
name = "${fleet.runner}"
services = [${fleet.serviceId}]
mode = "${mode}"
token = "env:TOKEN"
${mode === 'jetstream' ? broker : ''}`;
  const env = { KEY: 'the-receipt-key-of-the-fleet-test-gateways', TOKEN: fleet.token };
  const constants = { jetstream: { maxBytes: 268_435_456, takeWithinSecs: 20 } };
  const { config } = await parseConfig(text, {
    file: 'fleet.toml',
    env,
    readFile: async () => '',
    constants,
  });
  return config;
}

export function startFleetGateways(
  count: number,
  config: Config,
  databaseUrl: string,
): Promise<RunningGateway[]> {
  const logger = pino({ level: 'silent' });
  return Promise.all(Array.from({ length: count }, () => startGateway({ config, databaseUrl, logger })));
}

/** Fills the outbox by the use case of triggers: their calls are those of payments in all that follows. */
export async function makeCalls(
  databaseUrl: string,
  config: Config,
  { from, count }: { readonly from: number; readonly count: number },
): Promise<void> {
  const pool = openPool({ url: databaseUrl, maxConnections: 20 });
  const lane = openLane({ url: databaseUrl });
  try {
    const db = openDatabase(pool);
    await lane.refresh();
    const context: TriggerContext = {
      config,
      lane,
      pool,
      db,
      log: pino({ level: 'silent' }),
      onCallReleased() {},
      tooLate: () => false,
      quoteRealm: { ledgerId: await readLedgerId(db) },
    };
    let next = from;
    const make = async (): Promise<void> => {
      while (next < from + count) {
        const id = `call-${next++}`;
        const job = { serviceId: fleet.serviceId, jobIndex: 0 };
        const made = await triggerCall(context, {
          kind: 'webhook',
          name: 'fleet',
          id,
          job,
          body: Buffer.from(`body of ${id}`),
          contentType: 'text/plain',
        });
        if (made.kind !== 'triggered') throw new Error(`${id} was not recorded: ${made.kind}`);
      }
    };
    await Promise.all(Array.from({ length: 64 }, make));
  } finally {
    await lane.close();
    await pool.end();
  }
}
