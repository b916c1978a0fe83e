import type pg from 'pg';
import { queriesOn } from '../../ledger/store/database.ts';
import { callFunction, callTableFunction } from '../../ledger/store/functions.ts';

/**
 * Takes up to `max` messages about budgets that are due for a channel. Each is to be ended or returned within five minutes: then it
 * becomes due again.
 */
export function takeBudgetMessages(pool: pg.Pool, channel: 'mail' | 'webhook', max: number) {
  return callTableFunction(pool, 'take_budget_messages', [channel, max]);
}
export type BudgetMessage = Awaited<ReturnType<typeof takeBudgetMessages>>[number];

/** Sets the webhook for messages about budgets to the account’s owner; undefined removes it. */
export function setAccountWebhook(
  pool: pg.Pool,
  accountId: number,
  webhook: { readonly url: string; readonly secret: string } | undefined,
): Promise<void> {
  return callFunction(pool, 'set_account_webhook', [
    accountId,
    webhook?.url ?? null,
    webhook?.secret ?? null,
  ]);
}

export async function findAccountWebhook(
  pool: pg.Pool,
  accountId: number,
): Promise<{ readonly url: string } | undefined> {
  return queriesOn(pool)
    .selectFrom('tollbook.account_webhook')
    .select('url')
    .where('account_id', '=', accountId)
    .executeTakeFirst();
}
