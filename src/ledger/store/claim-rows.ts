import type { EncodedClaim } from './claim-key.ts';
import type { RowSnapshot, WrongRow } from './stored-rows.ts';

/** A claim that a stream must hold. */
export interface ExpectedClaim extends EncodedClaim {
  readonly stream: string;
}

/** A row of `tollbook.claim`; bytes in hex. */
export interface ClaimRow {
  readonly key: string;
  readonly binding: string;
  readonly stream: string;
}

/** Of these claims the first that are missing, or are bound to something else or held by another stream. */
export async function findWrongClaims(
  { client }: RowSnapshot,
  claims: readonly ExpectedClaim[],
): Promise<WrongRow[]> {
  if (claims.length === 0) return [];
  const { rows } = await client.query<WrongRow>(
    `select 'claim' as "table", json_build_object('kind', e.kind, 'key', e.key, 'binding', e.binding, 'stream', e.stream) as expected,
        case when s.key is not null then json_build_object('kind', e.kind, 'key', e.key,
          'binding', encode(s.binding, 'hex'), 'stream', tollbook.stream_name(s.stream)) end as stored
      from unnest($1::text[], $2::text[], $3::text[], $4::text[]) e(kind, key, binding, stream)
      left join tollbook.claim s on s.key = decode(e.key, 'hex')
      where (s.binding, s.stream) is distinct from (decode(e.binding, 'hex'), tollbook.stream_key(e.stream)) limit 20`,
    [
      claims.map(({ kind }) => kind),
      claims.map(({ key }) => key),
      claims.map(({ binding }) => binding),
      claims.map(({ stream }) => stream),
    ],
  );
  return rows;
}

/** A claim of a caller's nonce: its key cannot be computed, because the events have the nonce's hash alone. */
export interface ExpectedNonceClaim {
  readonly stream: string;
  /** In hex; no other claim of the stream has it. */
  readonly binding: string;
}

/** Of these claims the first that no row can be, or more than one. */
export async function findWrongNonceClaims(
  { client }: RowSnapshot,
  claims: readonly ExpectedNonceClaim[],
): Promise<WrongRow[]> {
  if (claims.length === 0) return [];
  const { rows } = await client.query<WrongRow>(
    `select 'claim' as "table", json_build_object('kind', 'caller_nonce', 'stream', e.stream, 'binding', e.binding) as expected,
        case when count(s.key) > 1 then json_build_object('kind', 'caller_nonce', 'stream', e.stream, 'rows', count(s.key)) end as stored
      from unnest($1::text[], $2::text[]) e(stream, binding)
      left join tollbook.claim s on s.stream = tollbook.stream_key(e.stream) and s.binding = decode(e.binding, 'hex')
      group by e.stream, e.binding having count(s.key) <> 1 limit 20`,
    [claims.map(({ stream }) => stream), claims.map(({ binding }) => binding)],
  );
  return rows;
}

export async function countClaims({ client }: RowSnapshot): Promise<number> {
  const { rows } = await client.query<{ n: number }>('select count(*) as n from tollbook.claim');
  return rows[0]?.n ?? 0;
}

/** A page of claims, by key; the next page starts after the key of the last one. */
export async function readClaims(
  { client }: RowSnapshot,
  afterKey: string,
  limit: number,
): Promise<ClaimRow[]> {
  const { rows } = await client.query<ClaimRow>(
    `select encode(key, 'hex') as key, encode(binding, 'hex') as binding, tollbook.stream_name(stream) as stream
      from tollbook.claim where key > decode($1, 'hex') order by claim.key limit $2`,
    [afterKey, limit],
  );
  return rows;
}
