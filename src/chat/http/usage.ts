import type { FastifyReply, FastifyRequest } from 'fastify';
import { csvLine } from '../../base/values/csv-line.ts';
import { creditText } from '../../base/values/price.ts';
import { jsonValue } from '../../base/values/bounded-json.ts';
import { openAiError } from '../../base/errors/openai-error.ts';
import type { ChatContext } from '../use-cases/context.ts';
import { listUsage, usageDimensions, type UsagePlace, type UsageSums } from '../store/usage.ts';
import { sendOpenAiError } from '../../ledger/http/openai-errors.ts';
import {
  daysOf,
  usageCsvQuery,
  type UsageJson,
  usagePlace,
  usageQuery,
  type UsageQuery,
} from './schemas/usage.ts';

export interface Asked {
  readonly context: ChatContext;
  readonly accountId: number;
  readonly request: FastifyRequest;
  readonly reply: FastifyReply;
}

export async function sendUsage(asked: Asked): Promise<FastifyReply> {
  const { context, reply } = asked;
  const query = usageQuery.safeParse(asked.request.query);
  const page = query.success ? await readUsage(asked, query.data) : undefined;
  if (!page) return refuseQuery(asked);
  const { rows, next, asOfSeq, from, to } = page;
  const { currency } = context.settings;
  const json: UsageJson = { as_of_seq: asOfSeq, from, to, currency, rows: rows.map(rowJson), next };
  return reply.send(json);
}

/** The same rows as a file; the next page is in the header `Link`. */
export async function sendUsageCsv(asked: Asked): Promise<FastifyReply> {
  const query = usageCsvQuery.safeParse(asked.request.query);
  const page = query.success ? await readUsage(asked, query.data) : undefined;
  if (!page) return refuseQuery(asked);
  const { from, to, rows, next } = page;
  return sendCsv(asked, { name: `usage-${from}-${to}`, columns, rows, next });
}

/** The columns of a CSV file: of each name, its cell in a row. */
export type CsvColumns<Row> = Readonly<Record<string, (row: Row) => string>>;

interface CsvFile<Row> {
  readonly name: string;
  readonly columns: CsvColumns<Row>;
  readonly rows: readonly Row[];
  readonly next: string | null;
}

/** Sends a page of a list as a file; the next page is in the header `Link`. */
export function sendCsv<Row>({ request, reply }: Asked, file: CsvFile<Row>): FastifyReply {
  const { name, columns, rows, next } = file;
  const cells = Object.values(columns);
  const lines = [Object.keys(columns), ...rows.map((row) => cells.map((cellOf) => cellOf(row)))];
  if (next !== null) {
    const url = new URL(request.url, 'http://gateway');
    url.searchParams.set('cursor', next);
    reply.header('link', `<${url.pathname}${url.search}>; rel="next"`);
  }
  return reply
    .type('text/csv; charset=utf-8')
    .header('content-disposition', `attachment; filename="${name}.csv"`)
    .send(lines.map(csvLine).join(''));
}

function refuseQuery({ request, reply }: Asked): FastifyReply {
  const message =
    '`from` and `to` are days such as 2026-11-23, at most 400 days apart; `by` has day, model and key; `cursor` is that of the same list.';
  return sendOpenAiError(request, reply, openAiError('invalid_request', { message }));
}

async function readUsage({ context, accountId }: Asked, query: UsageQuery) {
  const { model, key_id: keyId, cursor, limit } = query;
  const by = usageDimensions.filter((name) => query.by.includes(name));
  const days = daysOf(query, Date.now() + context.lane.state.clockOffsetMs);
  const after = cursor === undefined ? undefined : readPlace(cursor, by);
  if (!days || after === 'malformed') return undefined;
  const { asOfSeq, rows } = await listUsage(
    context.pool,
    { ...days, accountId, model, keyId },
    by,
    after,
    limit,
  );
  const last = rows.at(-1);
  return { ...days, asOfSeq, rows, next: last && rows.length === limit ? cursorAt(last) : null };
}

function cursorAt({ day, model, key_id: keyId }: UsageSums): string {
  const place = { day: day ?? undefined, model: model ?? undefined, key_id: keyId ?? undefined };
  return Buffer.from(JSON.stringify(place)).toString('base64url');
}

function readPlace(
  cursor: string,
  by: readonly (typeof usageDimensions)[number][],
): UsagePlace | 'malformed' {
  const { data: place } = usagePlace.safeParse(jsonValue(Buffer.from(cursor, 'base64url')));
  if (!place) return 'malformed';
  const has = { day: place.day, model: place.model, key: place.key_id };
  // of a list by other columns
  return usageDimensions.every((name) => (has[name] !== undefined) === by.includes(name))
    ? place
    : 'malformed';
}

function rowJson(row: UsageSums): UsageJson['rows'][number] {
  const { day, model, key_id: id, key_name: name, cost } = row;
  const { requests, failed, prompt_tokens, completion_tokens, cached_tokens } = row;
  return {
    day,
    model,
    key: id === null || id === 0 ? null : { id, name },
    requests,
    failed,
    prompt_tokens,
    completion_tokens,
    cached_tokens,
    cost: creditText(BigInt(cost)),
  };
}

const columns: CsvColumns<UsageSums> = {
  day: ({ day }) => day ?? '',
  model: ({ model }) => model ?? '',
  key_id: ({ key_id: id }) => String(id ?? ''),
  key_name: ({ key_name: name }) => name ?? '',
  requests: ({ requests }) => requests,
  failed: ({ failed }) => failed,
  prompt_tokens: ({ prompt_tokens: tokens }) => tokens,
  completion_tokens: ({ completion_tokens: tokens }) => tokens,
  cached_tokens: ({ cached_tokens: tokens }) => tokens,
  cost: ({ cost }) => creditText(BigInt(cost)),
};
