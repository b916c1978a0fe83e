import { randomBytes } from 'node:crypto';
import { writeFileSync } from 'node:fs';
import path from 'node:path';
import type { Bench } from './bench.ts';
import type { Stage, Target } from './measure.ts';
import { startProgram } from './processes.ts';
import { terms } from './terms.ts';
import type { TollbookOptions } from './tollbook.ts';
import { startTollbook } from './tollbook.ts';

/** What a facilitator takes that asks a chain and waits for a block. */
export const slow = { verifyMs: 100, settleMs: 1_500 };

/**
 * Tollbook in two configurations, and the official x402 middlewares. Each gateway has its own ledger: on a shared one the gateway
 * that is not measured would take part in the background work of the other. `withPermit2`: a gateway and a middleware as well whose token is
 * paid with by Permit2.
 */
export async function startPaymentTargets(
  { keep, dir }: Bench,
  stage: Stage,
  withPermit2 = false,
): Promise<Target[]> {
  const targets: Target[] = [];
  for (const verify of [true, false]) {
    const ledger = verify ? stage.ledger : await keep(stage.ledger.beside('unverified'));
    const { pid, url } = await keep(startTollbook(paymentGateway({ ...stage, ledger }, verify, dir)));
    const name = verify ? 'Tollbook' : 'Tollbook, facilitator_verify = false';
    targets.push({
      name,
      isPeer: false,
      pid,
      url,
      ledger,
      offersUrl: url,
      verifies: verify,
      signed: true,
    });
  }
  if (withPermit2) {
    const ledger = await keep(stage.ledger.beside('permit2'));
    const gateway = paymentGateway({ ...stage, ledger }, true, dir, noLimits, '', 'permit2');
    const { pid, url } = await keep(startTollbook(gateway));
    const name = 'Tollbook, Permit2';
    targets.push({ name, isPeer: false, pid, url, ledger, offersUrl: url, verifies: true, signed: true });
  }
  const peers = [['express'], ['hono'], ...(withPermit2 ? [['express', 'permit2']] : [])];
  for (const [peer, ...method] of peers) {
    const { pid, url } = await keep(startProgram(`peers/${peer}.mjs`, [stage.stub.url, ...method]));
    targets.push({
      name: `@x402/${peer}${method.length > 0 ? ', Permit2' : ''}`,
      isPeer: true,
      pid,
      url,
      offersUrl: url,
      verifies: true,
      signed: false,
    });
  }
  return targets;
}

/** A gateway with the feature x402 only, whose quotes authenticate themselves, as the documents advise. */
export function paymentGateway(
  { ledger, stub }: Stage,
  verify: boolean,
  dir: string,
  limits = noLimits,
  tables = '',
  transferMethod = 'eip3009',
): TollbookOptions {
  const quoteKeyFile = path.join(dir, 'quote-key');
  writeFileSync(quoteKeyFile, randomBytes(32).toString('hex'), { mode: 0o600 });
  const jobs = configText(stub.url, verify, limits, quoteKeyFile);
  return {
    databaseUrl: ledger.url,
    configText: (port) =>
      jobs(port).replace('eip712_name', `transfer_method = "${transferMethod}"\neip712_name`) + tables,
    readyPath: '/x402/ready',
    dir,
  };
}

/** The required keys only, and `confirm = "never"`: the stub moves no money, so no chain could confirm it. */
const noLimits = 'requests_per_minute = 0';

function configText(facilitatorUrl: string, verify: boolean, limits: string, quoteKeyFile: string) {
  return (port: number): string => `
bind_address = "127.0.0.1:${port}"
# the same for the gateway that makes the quotes and for the one that is measured
public_url = "http://127.0.0.1"
facilitator_url = "${facilitatorUrl}"
facilitator_verify = ${verify}
confirm = "never"
quote_key = "file:${quoteKeyFile}"
rate_per_native_unit = "${terms.rate}"
default_invocation_mode = "public_paid"
# quotes are made before the clock starts, and the load comes from one address
quote_ttl_secs = ${terms.maxTimeoutSecs}
max_timeout_secs = ${terms.maxTimeoutSecs}

[limits]
${limits}
max_outstanding_calls = 100_000_000

${tokenTables(`${facilitatorUrl}/rpc`)}

[job_prices.1]
0 = "${terms.priceWei}"

# a job without a runner is not sold; where none is measured, the calls wait
[[runners]]
name = "absent"
services = [1]
mode = "lease"
token = "file:${quoteKeyFile}"
`;
}

interface TokenTerms {
  readonly asset: string;
  readonly eip712: { readonly name: string; readonly version: string };
}

/** A token on a chain with this RPC; without another one, that of the stub. */
export function tokenTables(rpcUrl: string, { asset, eip712 }: TokenTerms = terms): string {
  return `[[networks]]
id = "${terms.network}"
rpc_url = "${rpcUrl}"

[[accepted_tokens]]
network = "${terms.network}"
asset = "${asset}"
symbol = "${terms.symbol}"
decimals = ${terms.decimals}
pay_to = "${terms.payTo}"
eip712_name = "${eip712.name}"
eip712_version = "${eip712.version}"`;
}
