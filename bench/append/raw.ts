import pg from 'pg';
import type { LaneCommand } from '../../src/ledger/store/append-batch.ts';
import { encodeHash } from '../../src/ledger/store/claim-key.ts';
import { network } from './payment.ts';

let rawSeq = 0;
const q = (text: string): string => pg.escapeLiteral(text);
/** Of a quote's digest. */
const streamKey = (digest: string): string => `'\\x${digest.slice(2)}'`;

/** The limit: the same rows in one transaction, without lock, checks, order or answer, in their own lane. */
export async function insertRaw(client: pg.Client, commands: readonly LaneCommand[]): Promise<number[]> {
  const events = commands.flatMap(({ stream, expect = 0, events: list }) =>
    list.map(
      ({ type, data }, i) =>
        `(2, ${++rawSeq}, ${expect + i + 1}, ${streamKey(stream)}, ${q(type)}, now(), ${q(JSON.stringify(data))})`,
    ),
  );
  const claims = commands.flatMap(({ stream, claims: list = [] }) =>
    list.map((claim) => {
      if (claim.kind === 'caller_nonce') throw new Error('the bench has no restricted jobs');
      const { key, binding } = encodeHash(claim);
      return `('\\x${key}', '\\x${binding}', ${streamKey(stream)})`;
    }),
  );
  const statements = [
    `insert into tollbook.event (lane_id, seq, version, stream, type, at, data) values ${events.join()}`,
  ];
  if (claims.length > 0) statements.push(`insert into tollbook.claim values ${claims.join()}`);
  const added = commands.flatMap(({ stream, call, claims: list }) =>
    call?.op === 'add' ? [{ stream, call, list }] : [],
  );
  const released = commands.flatMap(({ call }) => (call?.op === 'release' ? [call.callId] : []));
  if (released.length > 0)
    statements.push(
      `update tollbook.call set status = 'ready', due_at = now() where call_id in (${released.join()})`,
    );
  if (added.length > 0) {
    const bodies = added.map(
      ({ call: { bodyId, body } }) =>
        `(${q(bodyId)}, ${q(body?.contentType ?? '')}, '\\x${body?.bytes.toString('hex')}', now())`,
    );
    statements.push(`insert into tollbook.call_body values ${bodies.join()}`);
    const calls = added.map(
      ({ stream, list, call: { bodyId, payment: paidBy } }) =>
        `(${q(stream)}, 1, 0, 'pending', ${q(bodyId)}, ${q(network)}, '0xa5a5a5a5a5a5a5a5a5a5a5a5a5a5a5a5a5a5a5a5', 'USDC', ${q(paidBy)}, ${q(JSON.stringify(list))}, now(), now())`,
    );
    statements.push(
      `insert into tollbook.call (stream, service_id, job_index, status, body_id, network, asset, symbol, payment, claims, due_at, created_at)
       values ${calls.join()} returning call_id`,
    );
  }
  const result: pg.QueryResult | pg.QueryResult[] = await client.query(statements.join(';'));
  const rows: { call_id: number }[] = (Array.isArray(result) ? result.at(-1) : result)?.rows ?? [];
  return rows.map(({ call_id }) => call_id);
}
