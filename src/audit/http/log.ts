import { base64, proofsJson } from './proofs-json.ts';
import type { FastifyInstance, FastifyReply, FastifyRequest } from 'fastify';
import type { LogReader } from '../use-cases/log/log-reader.ts';
import type { Hex } from '../../base/values/primitives.ts';
import { parseTilePath } from '../../base/values/log/tiles.ts';
import { authorizeOperator } from '../../accounts/http/operator-access.ts';
import { sendRefusal } from '../../ledger/http/errors.ts';
import { bearerToken } from '../../base/http/request-values.ts';
import { consistencyQuery, type LogConsistency, proofQuery } from './schemas/log.ts';
import type { LedgerReader } from '../../ledger/store/ledger.ts';

const cachedForever = 'max-age=31536000, immutable';

/** Whether a token opens the receipt of a quote. */
type OpensReceipt = (digest: Hex, token: string) => boolean;

/** The public log: checkpoints, tiles and proofs. */
export function logRoutes(ledger: LedgerReader, reader: LogReader, opensReceipt: OpensReceipt) {
  return async (app: FastifyInstance): Promise<void> => {
    app.get('/log/checkpoint', async (request, reply) => {
      const head = await reader.newest();
      if (!head) return sendRefusal(request, reply, 'not_found');
      return reply
        .header('cache-control', 'no-cache')
        .header('access-control-allow-origin', '*')
        .type('text/plain; charset=utf-8')
        .send(head.note);
    });

    app.get<{ Params: { '*': string } }>('/log/tile/*', async (request, reply) => {
      const tile = parseTilePath(`tile/${request.params['*']}`);
      if (!tile) return sendRefusal(request, reply, 'not_found');
      const isPrivate = tile.level === 'entries';
      if (isPrivate) {
        const access = await authorizeOperator(ledger, request, 'audit:read');
        if (access.kind === 'refused') return sendRefusal(request, reply, access.code);
      }
      const bytes = await reader.tile(tile);
      if (!bytes) return sendRefusal(request, reply, 'not_found');
      if (!isPrivate) reply.header('access-control-allow-origin', '*');
      return reply
        .header('cache-control', `${isPrivate ? 'private' : 'public'}, ${cachedForever}`)
        .type('application/octet-stream')
        .send(bytes);
    });

    app.get('/log/proof', (request, reply) => sendProof(opensReceipt, reader, request, reply));

    app.get('/log/consistency', async (request, reply) => {
      const query = consistencyQuery.safeParse(request.query);
      if (!query.success) return sendRefusal(request, reply, 'invalid_request');
      const { from, to } = query.data;
      const proof = await reader.consistency(from, to);
      if (!proof) return sendRefusal(request, reply, 'proof_not_found');
      const answer: LogConsistency = {
        from,
        to,
        hashes: proof.hashes.map(base64),
        checkpoint: proof.head.note,
      };
      return reply.send(answer);
    });
  };
}

async function sendProof(
  opensReceipt: OpensReceipt,
  reader: LogReader,
  request: FastifyRequest,
  reply: FastifyReply,
): Promise<FastifyReply> {
  const query = proofQuery.safeParse(request.query);
  const { seq, quote_digest: digest, size } = query.data ?? {};
  reply.header('cache-control', 'no-store');
  if (seq !== undefined && digest === undefined) {
    const proven = await reader.prove([seq], size);
    return proven ? reply.send(proofsJson(proven, 0)) : sendRefusal(request, reply, 'proof_not_found');
  }
  if (digest === undefined || seq !== undefined || size !== undefined)
    return sendRefusal(request, reply, 'invalid_request');
  const token = bearerToken(request);
  const isPayer = token !== undefined && opensReceipt(digest as Hex, token);
  if (token !== undefined && !isPayer) return sendRefusal(request, reply, 'invalid_receipt_token');
  const stream = await reader.proveStream(digest);
  if (!stream) return sendRefusal(request, reply, 'proof_not_found');
  return reply.send(proofsJson(stream, stream.pending, isPayer ? stream.leaves : undefined));
}
