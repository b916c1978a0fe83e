import type { FastifyReply } from 'fastify';
import { creditText } from '../../base/values/price.ts';
import { openAiError } from '../../base/errors/openai-error.ts';
import { type CompletionFilters, listCompletions, type ListedCompletion } from '../store/completions.ts';
import { sendOpenAiError } from '../../ledger/http/openai-errors.ts';
import {
  generationsCsvQuery,
  type GenerationsJson,
  generationsQuery,
  type GenerationsQuery,
} from './schemas/generations.ts';
import { type Asked, type CsvColumns, sendCsv } from './usage.ts';

const dayMs = 86_400_000;

/** GET /v1/generations: the completions of the account, the newest first. */
export async function sendGenerations(asked: Asked): Promise<FastifyReply> {
  const query = generationsQuery.safeParse(asked.request.query);
  if (!query.success) return refuseQuery(asked);
  const { asOfSeq, rows, next } = await readPage(asked, query.data);
  const { currency } = asked.context.settings;
  const json: GenerationsJson = { as_of_seq: asOfSeq, currency, rows: rows.map(rowJson), next };
  return asked.reply.send(json);
}

/** The same rows as a file; the next page is in the header `Link`. */
export async function sendGenerationsCsv(asked: Asked): Promise<FastifyReply> {
  const query = generationsCsvQuery.safeParse(asked.request.query);
  if (!query.success) return refuseQuery(asked);
  const { rows, next } = await readPage(asked, query.data);
  return sendCsv(asked, { name: 'requests', columns, rows, next });
}

/** What a list is asked for, by the days of its query. */
export function completionFilters(
  accountId: number,
  { from, to, model, key_id: keyId }: Pick<GenerationsQuery, 'from' | 'to' | 'model' | 'key_id'>,
): CompletionFilters {
  return {
    accountId,
    from: from === undefined ? undefined : new Date(from),
    // to the end of that day
    to: to === undefined ? undefined : new Date(Date.parse(to) + dayMs),
    model,
    keyId,
  };
}

/** The cursor after a page; null after the last one. */
export function cursorBehind(rows: readonly ListedCompletion[], limit: number): string | null {
  const last = rows.at(-1);
  return last && rows.length === limit ? String(last.seq) : null;
}

async function readPage({ context, accountId }: Asked, query: GenerationsQuery) {
  const { cursor, limit } = query;
  const before = cursor === undefined ? undefined : Number(cursor);
  const page = await listCompletions(context.pool, completionFilters(accountId, query), before, limit);
  return { ...page, next: cursorBehind(page.rows, limit) };
}

function refuseQuery({ request, reply }: Asked): FastifyReply {
  const message = '`from` and `to` are days such as 2026-11-23; `cursor` is that of the same list.';
  return sendOpenAiError(request, reply, openAiError('invalid_request', { message }));
}

function rowJson(row: ListedCompletion): GenerationsJson['rows'][number] {
  const { chat_id: id, at, model, key_id, key_name: name, status, cost } = row;
  const { prompt_tokens, completion_tokens, cached_tokens } = row;
  return {
    id,
    created_at: at,
    model,
    key: key_id === 0 ? null : { id: key_id, name },
    status,
    prompt_tokens,
    completion_tokens,
    cached_tokens,
    cost: costText(cost),
  };
}

function costText(micros: string | null): string | null {
  return micros === null ? null : creditText(BigInt(micros));
}

const columns: CsvColumns<ListedCompletion> = {
  created_at: ({ at }) => at,
  id: ({ chat_id: id }) => id,
  model: ({ model }) => model,
  key_id: ({ key_id: id }) => String(id),
  key_name: ({ key_name: name }) => name ?? '',
  status: ({ status }) => status,
  prompt_tokens: ({ prompt_tokens: tokens }) => String(tokens ?? ''),
  completion_tokens: ({ completion_tokens: tokens }) => String(tokens ?? ''),
  cached_tokens: ({ cached_tokens: tokens }) => String(tokens ?? ''),
  cost: ({ cost }) => costText(cost) ?? '',
};
