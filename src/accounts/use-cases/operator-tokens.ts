import { createHash, randomBytes } from 'node:crypto';
import type { OperatorScope } from '../../base/values/operator-scope.ts';
import { createToken, findValidToken, type OperatorToken, revokeToken } from '../store/operator-tokens.ts';
import type { Ledger } from '../../ledger/store/ledger.ts';

const prefix = 'tollbook_';
const stream = 'operator:tokens';

/** Creates a token and records it. The token itself is returned only here; the database stores its SHA-256. */
export async function issueOperatorToken(
  { pool, lane }: Ledger,
  request: {
    readonly name: string;
    readonly scopes: readonly OperatorScope[];
    /** When omitted: its scopes are for all accounts. */
    readonly accounts?: readonly string[] | undefined;
    readonly expiresAt?: Date | undefined;
  },
): Promise<{ readonly tokenId: number; readonly token: string }> {
  const token = prefix + randomBytes(32).toString('base64url');
  const { name, scopes, accounts, expiresAt } = request;
  const tokenId = await createToken(pool, { name, scopes, accounts, hash: hashOf(token), expiresAt });
  await lane.append({
    stream,
    events: [
      {
        type: 'operator_token_created',
        data: { token_id: tokenId, scopes: [...scopes], ...(accounts && { accounts: [...accounts] }) },
      },
    ],
  });
  return { tokenId, token };
}

/** False when there is no such token, or it was revoked before. */
export async function revokeOperatorToken({ pool, lane }: Ledger, tokenId: number): Promise<boolean> {
  if (!(await revokeToken(pool, tokenId))) return false;
  await lane.append({ stream, events: [{ type: 'operator_token_revoked', data: { token_id: tokenId } }] });
  return true;
}

/** The operator of a bearer token; undefined when the token is not valid now. */
export function findOperator(
  { db }: Pick<Ledger, 'db'>,
  token: string | undefined,
): Promise<OperatorToken | undefined> {
  return token?.startsWith(prefix) ? findValidToken(db, hashOf(token)) : Promise.resolve(undefined);
}

function hashOf(token: string): Buffer {
  return createHash('sha256').update(token).digest();
}
