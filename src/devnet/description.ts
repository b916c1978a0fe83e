import { readFile, writeFile } from 'node:fs/promises';
import path from 'node:path';
import { z } from 'zod';

const routing = z.object({
  free_model: z.string(),
  paid_model: z.string(),
  api_key_funded: z.string(),
  api_key_empty: z.string(),
  api_key_expired: z.string(),
  /** The domain for which wallets sign their messages. */
  siwe_domain: z.string(),
  /** Where mails are written. */
  mail_dir: z.string(),
});

/** The user who tries the pages; without a password if it was changed. */
const demoUser = z.object({ email: z.string(), password: z.string().optional() });

/** The operator who tries the console, with the demo user's password. */
const demoOperator = z.object({ name: z.string(), totp_secret: z.string() });

/** `.tollbook/devnet.json`: all that a client needs to use a running devnet. */
const description = z.object({
  gateway_url: z.string(),
  /** Where paid routes are served. */
  routes_url: z.string(),
  config: z.string(),
  rpc_url: z.string(),
  chain_id: z.int(),
  network: z.string(),
  token: z.string(),
  second_token: z.string(),
  /** Without EIP-3009: it is paid with by Permit2. */
  plain_token: z.string().optional(),
  pay_to: z.string(),
  facilitator_url: z.string(),
  database_url: z.string(),
  runner_token: z.string(),
  operator_token: z.string(),
  checkpoint_public_key: z.string(),
  payer_private_key: z.string(),
  demo_user: demoUser,
  demo_operator: demoOperator,
  callers: z.object({ permitted: z.string(), refused: z.string() }),
  parity_contract: z.string(),
  credits_contract: z.string(),
  operator: z.string(),
  commitment: z.string(),
  spending_private_key: z.string(),
  jobs: z.array(
    z.object({
      service_id: z.int(),
      job_index: z.int(),
      invocation_mode: z.string(),
      auth_mode: z.string().optional(),
      /** `top_up` and `route`: its calls are served by the gateway itself; they give the payer credit, or an API's answer. */
      delivery: z.enum(['push', 'lease', 'top_up', 'route']),
    }),
  ),
  routing,
});
export type DevnetDescription = z.infer<typeof description>;

const fileName = 'devnet.json';

export async function writeDescription(dir: string, value: DevnetDescription): Promise<void> {
  // it contains private keys, though only of the devnet
  await writeFile(path.join(dir, fileName), `${JSON.stringify(value, null, 2)}\n`, { mode: 0o600 });
}

/** Throws if no devnet has described itself in this folder. */
export async function readDescription(dir: string): Promise<DevnetDescription> {
  return description.parse(await readValue(dir));
}

async function readValue(dir: string): Promise<unknown> {
  let text: string;
  try {
    text = await readFile(path.join(dir, fileName), 'utf8');
  } catch {
    throw new Error(`there is no ${path.join(dir, fileName)}: start the devnet first, with \`npm start\``);
  }
  return JSON.parse(text) as unknown;
}

const earlier = z
  .object({
    operator_token: z.string(),
    demo_user: demoUser,
    demo_operator: demoOperator,
    routing: routing.partial(),
  })
  .partial();

/** The secrets that an earlier start in this folder described; empty without one. An earlier version may have described fewer. */
export async function earlierSecrets(dir: string): Promise<z.infer<typeof earlier>> {
  try {
    return earlier.parse(await readValue(dir));
  } catch {
    return {};
  }
}
