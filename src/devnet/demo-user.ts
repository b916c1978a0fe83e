import { randomBytes } from 'node:crypto';
import { readdir, readFile, rm } from 'node:fs/promises';
import path from 'node:path';
import { setTimeout as sleep } from 'node:timers/promises';
import { base32, fromBase32 } from '../accounts/rules/totp.ts';
import type { RotatingSecret } from '../base/values/rotating-secret.ts';
import { grantRole, removeFactors } from '../accounts/use-cases/operators.ts';
import { keepTotp } from '../accounts/use-cases/second-factor.ts';
import { findUserIds } from '../accounts/store/identity.ts';
import { findOperatorNamed } from '../accounts/store/operators.ts';
import type { LedgerWriter } from '../ledger/store/ledger.ts';

/** A user for trying the pages. The password is missing if it is no longer the one that was made here. */
export interface DemoUser {
  readonly email: string;
  readonly password?: string | undefined;
}

const email = 'demo@devnet.example';
const mailPatienceMs = 20_000;

/**
 * The devnet's user, who has signed up, confirmed the address by the mail's link, and can sign in: all by the routes that clients
 * have. One from an earlier start is kept.
 */
export async function openDemoUser(
  { gatewayUrl, mailDir }: { readonly gatewayUrl: string; readonly mailDir: string },
  earlier: DemoUser | undefined,
): Promise<DemoUser> {
  const post = (route: string, body: object, headers: Record<string, string> = {}): Promise<Response> =>
    fetch(`${gatewayUrl}/api/auth${route}`, {
      method: 'POST',
      headers: { 'content-type': 'application/json', ...headers },
      body: JSON.stringify(body),
    });
  if (earlier?.password !== undefined) {
    const signedIn = await post('/sign-in/email', { email, password: earlier.password });
    if (signedIn.ok) await post('/sign-out', {}, { cookie: cookieIn(signedIn) });
    return signedIn.ok ? earlier : { email };
  }
  const password = randomBytes(9).toString('base64url');
  const signedUp = await post('/sign-up/email', { email, password, name: 'Demo' });
  if (!signedUp.ok)
    throw new Error(`the demo user was not signed up: ${signedUp.status} ${await signedUp.text()}`);
  const link = /^http\S+\/verify-email\S+$/m.exec(await takeMail(mailDir))?.[0];
  // the address has a user already: its mail says so
  if (link === undefined) return { email };
  const confirmed = await fetch(link, { redirect: 'manual' });
  if (confirmed.status >= 400) throw new Error(`the demo user was not confirmed: ${confirmed.status}`);
  return { email, password };
}

/** The newest mail to the demo user, which is deleted, as a program that delivers mails does. */
async function takeMail(dir: string): Promise<string> {
  const deadline = Date.now() + mailPatienceMs;
  while (Date.now() < deadline) {
    const names = (await readdir(dir).catch(() => [])).filter((name) => name.endsWith('.txt'));
    for (const name of names.toSorted().toReversed()) {
      const file = path.join(dir, name);
      const text = await readFile(file, 'utf8').catch(() => '');
      if (!text.startsWith(`To: ${email}\n`)) continue;
      await rm(file, { force: true });
      return text;
    }
    await sleep(20);
  }
  throw new Error(`the gateway wrote no mail to the demo user in ${dir}`);
}

/** The cookies that an answer sets, as a request sends them. */
export function cookieIn(response: Response): string {
  return response.headers
    .getSetCookie()
    .map((cookie) => cookie.split(';', 1)[0])
    .join('; ');
}

/** The demo user's name as an operator of the console. */
export interface DemoOperator {
  readonly name: string;
  /** Makes the codes of the second factor; in base32. */
  readonly totp_secret: string;
}

const name = 'demo';

/** Makes the demo user an admin, with a second factor whose secret is known. One from an earlier start is kept. */
export async function openDemoOperator(
  ledger: LedgerWriter & { readonly settings: { readonly secrets: RotatingSecret } },
  userEmail: string,
  earlier: DemoOperator | undefined,
): Promise<DemoOperator> {
  const [userId] = await findUserIds(ledger.pool, userEmail);
  if (userId === undefined) throw new Error(`there is no demo user ${userEmail}`);
  const former = await findOperatorNamed(ledger.pool, name);
  if (former && earlier && fromBase32(earlier.totp_secret)) return earlier;
  const secret = randomBytes(20);
  const by = { name: 'devnet', at: 'command' } as const;
  await grantRole(ledger, { name, userId, role: 'admin', by });
  if (former) await removeFactors(ledger, { name, by });
  await keepTotp(ledger, { name, userId }, secret, 0);
  return { name, totp_secret: base32(secret) };
}
