import { randomBytes } from 'node:crypto';
import { base32, fromBase32 } from '../accounts/rules/totp.ts';
import type { RotatingSecret } from '../base/values/rotating-secret.ts';
import { grantRole, type OperatorLedger, removeFactors } from '../accounts/use-cases/operators.ts';
import { keepTotp } from '../accounts/use-cases/second-factor.ts';
import { findUserIds } from '../accounts/store/identity.ts';
import { findOperatorNamed } from '../accounts/store/operators.ts';

/** The demo user's name as an operator of the console. */
export interface DemoOperator {
  readonly name: string;
  /** Makes the codes of the second factor; in base32. */
  readonly totp_secret: string;
}

const name = 'demo';

/** Makes the demo user an admin, with a second factor whose secret is known. One from an earlier start is kept. */
export async function openDemoOperator(
  ledger: OperatorLedger & { readonly settings: { readonly secrets: RotatingSecret } },
  email: string,
  earlier: DemoOperator | undefined,
): Promise<DemoOperator> {
  const [userId] = await findUserIds(ledger.pool, email);
  if (userId === undefined) throw new Error(`there is no demo user ${email}`);
  const former = await findOperatorNamed(ledger.pool, name);
  if (former && earlier && fromBase32(earlier.totp_secret)) return earlier;
  const secret = randomBytes(20);
  await grantRole(ledger, { name, userId, role: 'admin', by: { name: 'devnet', at: 'command' } });
  if (former) await removeFactors(ledger, { name, by: 'devnet' });
  await keepTotp(ledger, { name, userId }, secret, 0);
  return { name, totp_secret: base32(secret) };
}
