import { randomUUID } from 'node:crypto';
import type { Browser as Chromium } from 'playwright-core';
import type { OperatorRole } from '../../src/base/values/operator-role.ts';
import { fromBase32, totpCode } from '../../src/accounts/rules/totp.ts';
import { startOperatorSession } from '../../src/accounts/store/operators.ts';
import { grantRole } from '../../src/accounts/use-cases/operators.ts';
import { operatorTokenHash } from '../../src/accounts/use-cases/second-factor.ts';
import { recordSession, sessionTokenHash } from '../../src/accounts/use-cases/sessions.ts';
import { signedValue } from '../../src/accounts/use-cases/signed-values.ts';
import { laneOn } from './credit.ts';
import type { TestDatabase } from './database.ts';
import { type Browser, createBrowser, identitySecret, type IdentityGateway } from './identity.ts';
import type { IdentityOptions } from './identity.ts';
import { startIdentityGateway } from './identity.ts';
import { openTab, type Tab } from './site.ts';

export interface SignedInOperator {
  readonly name: string;
  readonly role: OperatorRole;
  readonly userId: string;
  readonly sessionId: string;
  /** By name, as the browser sends them. */
  readonly cookies: ReadonlyMap<string, string>;
}

interface ConsoleGateway {
  readonly url: string;
  readonly database: TestDatabase;
}

/** A gateway with models, people, customer pages and the console. */
export function startConsole(options: IdentityOptions = {}): Promise<IdentityGateway> {
  return startIdentityGateway({
    ...options,
    tables: `${options.tables ?? ''}\n[pages]\nname = "Testbook"\n[console]\n`,
  });
}

/**
 * An operator who has signed in with a second factor: the rows and events of a sign-in, without the pages. For tests of what
 * operators do; those of the sign-in itself use the pages. Once for each name.
 */
export async function signInOperator(
  { database }: Pick<ConsoleGateway, 'database'>,
  { name = 'ada', role = 'admin' }: { readonly name?: string; readonly role?: OperatorRole } = {},
): Promise<SignedInOperator> {
  const { pool } = database;
  const ledger = { pool, lane: laneOn(database) };
  const userId = randomUUID();
  const sessionId = randomUUID();
  const [token, own] = [`${name}-session-token`, `${name}-console-token`];
  await pool.query(
    `insert into identity."user" (id, name, email, email_verified, created_at, updated_at)
     values ($1, $2, $3, true, now(), now())`,
    [userId, name, `${name}@example.org`],
  );
  const expiresAt = new Date(Date.now() + 86_400_000);
  await pool.query(
    `insert into identity.session (id, user_id, token, expires_at, created_at, updated_at)
     values ($1, $2, $3, $4, now(), now())`,
    [sessionId, userId, sessionTokenHash(token), expiresAt],
  );
  await recordSession(ledger, { sessionId, userId, method: 'password', expiresAt });
  await grantRole(ledger, { name, userId, role, by: { name: 'test', at: 'command' } });
  await startOperatorSession(pool, { tokenHash: operatorTokenHash(own), sessionId, hours: 1 });
  const cookies = new Map([
    ['tollbook.session_token', signedValue([identitySecret], token)],
    ['tollbook.console', own],
  ]);
  return { name, role, userId, sessionId, cookies };
}

/** A client with the cookies of an operator, as a browser without JavaScript. */
export function browserOf({ url }: Pick<ConsoleGateway, 'url'>, { cookies }: SignedInOperator): Browser {
  const browser = createBrowser(url, '203.0.113.9');
  for (const [name, value] of cookies) browser.cookies.set(name, value);
  return browser;
}

/** A tab of Chromium with the cookies of an operator. */
export async function operatorTab(
  chromium: { readonly browser: Chromium },
  gateway: Pick<ConsoleGateway, 'url'>,
  { cookies }: SignedInOperator,
  options: Parameters<typeof openTab>[2] = {},
): Promise<Tab> {
  const tab = await openTab(chromium, gateway, options);
  await tab.context.addCookies([...cookies].map(([name, value]) => ({ name, value, url: gateway.url })));
  return tab;
}

/** The code that an authenticator app shows for a secret, as a page shows it. */
export function codeOf(secret: string, atMs = Date.now()): string {
  const bytes = fromBase32(secret);
  if (!bytes) throw new Error(`no secret: ${secret}`);
  return totpCode(bytes, atMs);
}
