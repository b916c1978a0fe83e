import { type EncodedClaim, type EncodedNonce, encodeNonce } from './claim-key.ts';
import type { NonceClaim } from './lane-command.ts';
import type { RowSnapshot, WrongRow } from './stored-rows.ts';

/** A claim that a stream must hold. */
export type ExpectedClaim = EncodedClaim & { readonly stream: string };

/** A row of `tollbook.caller_nonce`. */
interface NonceRow extends Omit<EncodedNonce, 'kind' | 'key'> {
  readonly stream: string;
}

/** A row of `tollbook.claim`; bytes in hex. */
interface ClaimRow {
  readonly key: string;
  readonly binding: string;
  readonly stream: string;
}

/** Of these claims the first that are missing, or are bound to something else or held by another stream. */
export async function findWrongClaims(
  { client }: RowSnapshot,
  expected: readonly ExpectedClaim[],
): Promise<WrongRow[]> {
  const claims = expected.filter((claim) => claim.kind !== 'caller_nonce');
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

const nonceJson = (row: string): string =>
  `json_build_object('stream', ${row}.stream, 'caller', ${row}.caller, 'service_id', ${row}.service_id,
    'job_index', ${row}.job_index, 'nonce_sha256', ${row}.nonce_sha256)`;

/** The same of the nonces of callers. */
export async function findWrongNonces(
  { client }: RowSnapshot,
  expected: readonly ExpectedClaim[],
): Promise<WrongRow[]> {
  const nonces = expected.filter((claim) => claim.kind === 'caller_nonce');
  if (nonces.length === 0) return [];
  const { rows } = await client.query<WrongRow>(
    `select 'caller_nonce' as "table", ${nonceJson('e')} as expected, case when s.stream is not null then ${nonceJson('s')} end as stored
      from json_populate_recordset(null::tollbook.caller_nonce, $1) e
      left join tollbook.caller_nonce s using (caller, service_id, job_index, nonce_sha256)
      where s.stream is distinct from e.stream limit 20`,
    [JSON.stringify(nonces)],
  );
  return rows;
}

/** How many claims there are, nonces included. */
export async function countClaims({ client }: RowSnapshot): Promise<number> {
  const { rows } = await client.query<{ n: number }>(
    'select (select count(*) from tollbook.claim) + (select count(*) from tollbook.caller_nonce) as n',
  );
  return rows[0]?.n ?? 0;
}

/** Some rows, each with the key that a claim of it has. */
export interface ClaimPage {
  readonly table: 'claim' | 'caller_nonce';
  readonly rows: readonly { readonly key: string; readonly stream: string }[];
}

export async function* readClaims({ client }: RowSnapshot, limit: number): AsyncGenerator<ClaimPage> {
  for (let after = ''; ;) {
    const { rows } = await client.query<ClaimRow>(
      `select encode(key, 'hex') as key, encode(binding, 'hex') as binding, tollbook.stream_name(stream) as stream
        from tollbook.claim where key > decode($1, 'hex') order by claim.key limit $2`,
      [after, limit],
    );
    const last = rows.at(-1);
    if (!last) return;
    yield { table: 'claim', rows };
    after = last.key;
  }
}

export async function* readNonces({ client }: RowSnapshot, limit: number): AsyncGenerator<ClaimPage> {
  for (let after: readonly (string | number)[] = ['', 0, 0, '']; ;) {
    const { rows } = await client.query<NonceRow>(
      `select caller, service_id, job_index, nonce_sha256, stream from tollbook.caller_nonce
        where (caller, service_id, job_index, nonce_sha256) > ($1, $2::bigint, $3::bigint, $4)
        order by caller, service_id, job_index, nonce_sha256 limit $5`,
      [...after, limit],
    );
    const last = rows.at(-1);
    if (!last) return;
    yield { table: 'caller_nonce', rows: rows.map((row) => ({ ...encodeNonce(claimOf(row)), ...row })) };
    after = [last.caller, last.service_id, last.job_index, last.nonce_sha256];
  }
}

function claimOf({ caller, service_id, job_index, nonce_sha256 }: NonceRow): NonceClaim {
  return {
    kind: 'caller_nonce',
    caller,
    serviceId: service_id,
    jobIndex: job_index,
    nonceSha256: nonce_sha256,
  };
}
