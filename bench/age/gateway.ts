import { randomUUID } from 'node:crypto';
import { startOperatorSession } from '../../src/accounts/store/operators.ts';
import { issueOperatorToken } from '../../src/accounts/use-cases/operator-tokens.ts';
import { grantRole } from '../../src/accounts/use-cases/operators.ts';
import { operatorTokenHash } from '../../src/accounts/use-cases/second-factor.ts';
import { recordSession, sessionTokenHash } from '../../src/accounts/use-cases/sessions.ts';
import { signedValue } from '../../src/accounts/use-cases/signed-values.ts';
import { openDatabase } from '../../src/ledger/store/database.ts';
import type { Lane } from '../../src/ledger/store/lane.ts';
import type { Ledger } from '../ledger.ts';
import { signer } from '../log-load.ts';
import { tokenTables } from '../payment-targets.ts';
import { terms } from '../terms.ts';
import { startTollbook, type TollbookProcess } from '../tollbook.ts';
import { logSeed } from './keys.ts';

const identitySecret = 'a-secret-of-the-bench-that-is-long-enough';

/** A gateway with jobs, log and console, and who asks it. */
export interface AgedGateway extends TollbookProcess {
  /** The headers of an operator: of a browser that has signed in to the console, and of a program with a token for `/audit`. */
  readonly operator: Readonly<Record<string, string>>;
}

/** Gives an operator a token and a session in the ledger, and starts a gateway on it. */
export async function startAgedGateway(
  { url: databaseUrl, pool }: Ledger,
  lane: Lane,
  { facilitatorUrl, dir }: { readonly facilitatorUrl: string; readonly dir: string },
): Promise<AgedGateway> {
  const ledger = { pool, db: openDatabase(pool), lane };
  const { token } = await issueOperatorToken(ledger, { name: randomUUID(), scopes: ['audit:read'] });
  const cookie = await signIn(ledger);
  const gateway = await startTollbook({
    databaseUrl,
    configText: (port) => configText(port, facilitatorUrl),
    readyPath: '/x402/ready',
    dir,
    env: { IDENTITY_SECRET: identitySecret, LOG_KEY: logSeed.toString('hex'), RUNNER_TOKEN: identitySecret },
  });
  return { ...gateway, operator: { authorization: `Bearer ${token}`, cookie } };
}

/** What a sign-in with a second factor leaves in the ledger. Returns the cookies. */
async function signIn(ledger: Parameters<typeof issueOperatorToken>[0]): Promise<string> {
  const { pool } = ledger;
  const [userId, sessionId, token, own] = [randomUUID(), randomUUID(), randomUUID(), randomUUID()];
  const name = `ada-${userId.slice(0, 8)}`;
  await pool.query(
    `insert into identity."user" (id, name, email, email_verified, created_at, updated_at) values ($1, $2, $3, true, now(), now())`,
    [userId, name, `${name}@example.org`],
  );
  const expiresAt = new Date(Date.now() + 86_400_000);
  await pool.query(
    'insert into identity.session (id, user_id, token, expires_at, created_at, updated_at) values ($1, $2, $3, $4, now(), now())',
    [sessionId, userId, sessionTokenHash(token), expiresAt],
  );
  await recordSession(ledger, { sessionId, userId, method: 'password', expiresAt });
  await grantRole(ledger, { name, userId, role: 'admin', by: { name: 'bench', at: 'command' } });
  await startOperatorSession(pool, { tokenHash: operatorTokenHash(own), sessionId, hours: 24 });
  return `tollbook.session_token=${signedValue([identitySecret], token)}; tollbook.console=${own}`;
}

function configText(port: number, facilitatorUrl: string): string {
  return `
bind_address = "127.0.0.1:${port}"
public_url = "http://127.0.0.1:${port}"
facilitator_url = "${facilitatorUrl}"
confirm = "never"
rate_per_native_unit = "${terms.rate}"
default_invocation_mode = "public_paid"

[limits]
requests_per_minute = 0

[log]
origin = "${signer.name}"
key = "env:LOG_KEY"

[identity]
secret = "env:IDENTITY_SECRET"
[pages]
[console]

${tokenTables(`${facilitatorUrl}/rpc`)}

[job_prices.1]
0 = "${terms.priceWei}"

# it never asks: the calls wait
[[runners]]
name = "absent"
services = [1]
mode = "lease"
token = "env:RUNNER_TOKEN"
`;
}
