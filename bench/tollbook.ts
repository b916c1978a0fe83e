import { writeFileSync } from 'node:fs';
import path from 'node:path';
import { setTimeout as sleep } from 'node:timers/promises';
import { startGuarded } from '../src/devnet/guarded-process.ts';
import { freePort } from '../src/devnet/ports.ts';
import { terms } from './terms.ts';

export interface TollbookOptions {
  readonly databaseUrl: string;
  readonly facilitatorUrl: string;
  readonly verify: boolean;
  /** Where its configuration is written. */
  readonly dir: string;
  readonly nodeOptions?: readonly string[];
}

export interface TollbookProcess {
  readonly pid: number;
  readonly url: string;
  stop(): Promise<void>;
}

/** A gateway as an operator runs it: `tollbook serve`, in a process of its own, its log of one line a request to /dev/null. */
export async function startTollbook(options: TollbookOptions): Promise<TollbookProcess> {
  const port = await freePort();
  const file = path.join(options.dir, `gateway-${port}.toml`);
  writeFileSync(file, configText(port, options));
  const program = path.join(import.meta.dirname, '..', 'src', 'cli', 'tollbook.ts');
  const server = await startGuarded({
    command: '/usr/bin/env',
    args: [
      `DATABASE_URL=${options.databaseUrl}`,
      process.execPath,
      ...(options.nodeOptions ?? []),
      program,
      'serve',
      '--config',
      file,
    ],
    stopSignal: 'TERM',
  });
  server.release();
  const url = `http://127.0.0.1:${port}`;
  try {
    await ready(url, server);
  } catch (error) {
    await server.stop();
    throw error;
  }
  return { pid: server.pid, url, stop: () => server.stop() };
}

async function ready(url: string, server: { hasExited(): boolean; log(): string }): Promise<void> {
  const deadline = Date.now() + 30_000;
  for (;;) {
    const status = await fetch(`${url}/x402/ready`).then(
      (answer) => answer.status,
      () => undefined,
    );
    if (status === 200) return;
    if (server.hasExited() || Date.now() > deadline)
      throw new Error(`Tollbook is not ready: ${server.log()}`);
    await sleep(50);
  }
}

/** The mission's keys and no more, but for what the stub calls for: it moves no money, so no chain could confirm it. */
function configText(port: number, { facilitatorUrl, verify }: TollbookOptions): string {
  return `
bind_address = "127.0.0.1:${port}"
facilitator_url = "${facilitatorUrl}"
facilitator_verify = ${verify}
confirm = "never"
rate_per_native_unit = "${terms.rate}"
default_invocation_mode = "public_paid"
# quotes are made before the clock starts, and the load comes from one address
quote_ttl_secs = ${terms.maxTimeoutSecs}
max_timeout_secs = ${terms.maxTimeoutSecs}

[limits]
requests_per_minute = 0
max_outstanding_calls = 100_000_000

[[networks]]
id = "${terms.network}"
rpc_url = "${facilitatorUrl}/rpc"

[[accepted_tokens]]
network = "${terms.network}"
asset = "${terms.asset}"
symbol = "${terms.symbol}"
decimals = ${terms.decimals}
pay_to = "${terms.payTo}"
eip712_name = "${terms.eip712.name}"
eip712_version = "${terms.eip712.version}"

[job_prices.1]
0 = "${terms.priceWei}"
`;
}
