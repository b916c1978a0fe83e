import { type RawBuilder, sql } from 'kysely';
import type pg from 'pg';
import type { CompletionRow } from '../../ledger/store/projection.ts';
import { type LedgerDatabase, queriesOn } from '../../ledger/store/database.ts';
import { defined, time } from '../../ledger/store/expressions.ts';
import { activeGeneration, type Page, readPage } from '../../ledger/store/payments.ts';

export interface CompletionFilters {
  readonly accountId: number;
  /** Admitted at `from` or later, and before `to`. */
  readonly from?: Date | undefined;
  readonly to?: Date | undefined;
  readonly model?: string | undefined;
  /** 0: of requests without a key. */
  readonly keyId?: number | undefined;
}

/** With its key as stored; a key that is no longer stored has no name. */
export interface ListedCompletion extends Omit<CompletionRow, 'account_id'> {
  readonly key_name: string | null;
}

/** Before the first completion of an account at a time or later. Times never go back in the ledger, so a time is a sequence number. */
function firstSince(db: LedgerDatabase, accountId: number, from: Date): RawBuilder<number> {
  return sql`tollbook.first_completion_since((${activeGeneration(db)}), ${accountId}, ${from})`;
}

/** One account's completions before a place in the ledger, the newest first. */
export function listCompletions(
  pool: pg.Pool,
  { accountId, from, to, model, keyId }: CompletionFilters,
  beforeSeq: number | undefined,
  limit: number,
): Promise<Page<ListedCompletion>> {
  const db = queriesOn(pool);
  const page = db
    .selectFrom('tollbook.completion')
    .leftJoin('tollbook.api_key', (join) =>
      join
        .onRef('tollbook.api_key.key_id', '=', 'tollbook.completion.key_id')
        .on('tollbook.api_key.account_id', '=', accountId),
    )
    .select(['seq', 'chat_id', 'tollbook.completion.key_id', 'model', 'status'])
    .select(['prompt_tokens', 'completion_tokens', 'cached_tokens', 'tollbook.api_key.name as key_name'])
    .select(({ cast, ref }) => [time(ref('at')).as('at'), cast<string | null>('cost', 'text').as('cost')])
    .where('generation', '=', activeGeneration(db))
    .where('tollbook.completion.account_id', '=', accountId)
    .where(({ and }) => and(defined({ model, 'tollbook.completion.key_id': keyId })))
    .$if(beforeSeq !== undefined, (query) => query.where('seq', '<', beforeSeq ?? 0))
    .$if(from !== undefined, (query) =>
      query.where('seq', '>=', firstSince(db, accountId, from ?? new Date(0))),
    )
    .$if(to !== undefined, (query) => query.where('seq', '<', firstSince(db, accountId, to ?? new Date(0))))
    .orderBy('seq', 'desc')
    .limit(limit);
  return readPage(pool, page);
}
