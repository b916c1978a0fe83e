import type { RecordedEvent } from '../../../../ledger/rules/event.ts';
import type { StoredKey, StoredOperator, StoredToken } from '../../../../ledger/store/right-rows.ts';
import type { WrongRow } from '../../../../ledger/store/stored-rows.ts';

/** The events about operators' tokens, API keys and operators' roles. */
export const rightTypes = [
  'operator_token_created',
  'operator_token_revoked',
  'key_created',
  'key_revoked',
  'operator_role_granted',
  'operator_role_withdrawn',
] as const;

/** What the events have given and not taken. */
export class GivenRights {
  readonly #tokens = new Map<
    number,
    { readonly scopes: readonly string[]; readonly accounts: readonly string[] | null }
  >();
  readonly #revokedTokens = new Set<number>();
  /** The account of each key. */
  readonly #keys = new Map<number, number>();
  readonly #revokedKeys = new Set<number>();
  /** By the operator's name. */
  readonly #roles = new Map<string, { readonly user_id: string; readonly role: string }>();

  constructor(events: readonly RecordedEvent[]) {
    for (const event of events) this.#apply(event);
  }

  #apply({ type, data }: RecordedEvent): void {
    switch (type) {
      case 'operator_token_created':
        this.#tokens.set(data.token_id, { scopes: data.scopes, accounts: data.accounts ?? null });
        return;
      case 'operator_token_revoked':
        this.#revokedTokens.add(data.token_id);
        return;
      case 'key_created':
        this.#keys.set(data.key_id, data.account_id);
        return;
      case 'key_revoked':
        this.#revokedKeys.add(data.key_id);
        return;
      case 'operator_role_granted':
        this.#roles.set(data.name, { user_id: data.user_id, role: data.role });
        return;
      case 'operator_role_withdrawn':
        this.#roles.delete(data.name);
        return;
      default:
    }
  }

  /**
   * Tokens whose rights no event gave them, and those that were revoked and hold again. A missing row is not a fault: ended tokens are
   * deleted after their time. Nor is a revoked one without an event, which has no rights: a process may have ended between the row and
   * its event, and to revoke such a token is the remedy.
   */
  wrongTokens(stored: readonly StoredToken[]): WrongRow[] {
    return stored.flatMap((token) => {
      const { token_id: id, is_revoked: isRevoked } = token;
      const given = this.#tokens.get(id);
      if (!given && isRevoked) return [];
      return differing(
        'operator_token',
        token,
        given && { token_id: id, ...given, is_revoked: isRevoked || this.#revokedTokens.has(id) },
      );
    });
  }

  /** The same of API keys. */
  wrongKeys(stored: readonly StoredKey[]): WrongRow[] {
    return stored.flatMap((key) => {
      const { key_id: id, is_revoked: isRevoked } = key;
      const account = this.#keys.get(id);
      if (account === undefined && isRevoked) return [];
      const given = account !== undefined && {
        key_id: id,
        account_id: account,
        is_revoked: isRevoked || this.#revokedKeys.has(id),
      };
      return differing('api_key', key, given || undefined);
    });
  }

  /** Operators whose role differs from that in the last event of their name. */
  wrongOperators(stored: readonly StoredOperator[]): WrongRow[] {
    return stored.flatMap((operator) => {
      const given = this.#roles.get(operator.name);
      return differing('operator', operator, given && { name: operator.name, ...given });
    });
  }
}

function differing(table: string, stored: object, expected: object | undefined): WrongRow[] {
  if (JSON.stringify(expected) === JSON.stringify(stored)) return [];
  return [{ table, expected: expected ? { ...expected } : null, stored: { ...stored } }];
}
