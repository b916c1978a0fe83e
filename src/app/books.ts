import type { FastifyInstance } from 'fastify';
import type pg from 'pg';
import type { Logger } from 'pino';
import { checkAnchors, sealAndPublish } from '../log/anchors.ts';
import { openLogReader } from '../log/log-reader.ts';
import type { Config, LogConfig } from '../config/config.ts';
import { noteSigner, type NoteSigner, parseVerifierKey } from '../domain/log/checkpoint.ts';
import { projectionRoutes } from '../http/projections/projections.ts';
import { refundRoutes } from '../http/refunds/refunds.ts';
import { logRoutes } from '../http/log/log.ts';
import { reconciliationRoutes } from '../http/reconcile/reconciliations.ts';
import type { Anchor } from '../peers/anchors/anchor.ts';
import { createAnchor } from '../peers/anchors/create-anchor.ts';
import type { LedgerDatabase } from '../store/database.ts';
import { startAnchorer } from '../workers/anchorer.ts';
import type { Loop } from '../workers/loop.ts';
import { startProjector } from '../workers/projector.ts';
import { startSealer } from '../workers/sealer.ts';

interface Parts {
  readonly config: Config;
  readonly ledger: { readonly pool: pg.Pool; readonly db: LedgerDatabase };
  readonly logger: Logger;
}

/** The key that a configuration seals with, under its log's name. */
export function signerOf({ origin, seedHex }: LogConfig): NoteSigner {
  return noteSigner(origin, Buffer.from(seedHex, 'hex'));
}

/**
 * What finance and auditors have of the ledger, whatever features are on: the read models and the sealed log.
 * @throws ForgottenHistoryError where an anchor knows more than this database
 */
export async function composeBooks({ config, ledger, logger }: Parts) {
  const { log } = config;
  const { pool } = ledger;
  const loops: Loop[] = [];
  const signer = log && signerOf(log);
  const anchors = (log?.anchors ?? []).map(createAnchor);
  try {
    if (signer) await refuseForgotten({ ledger, logger }, signer, anchors);
  } catch (error) {
    await Promise.all(anchors.map((anchor) => anchor.close()));
    throw error;
  }

  return {
    async register(app: FastifyInstance): Promise<void> {
      const reader = signer && openLogReader(pool, signer.name);
      // where nothing is sealed there is nothing at these addresses
      if (reader) await app.register(logRoutes(ledger, reader));
      await app.register(projectionRoutes(ledger, reader));
      await app.register(refundRoutes(ledger));
      await app.register(reconciliationRoutes(ledger));
    },
    startWorkers(): void {
      loops.push(startProjector({ pool, log: logger }));
      if (!log || !signer) return;
      const anchorer = startAnchorer({ pool, log: logger }, signer.name, anchors);
      const options = { everyMs: log.sealEveryMs, everyEvents: log.sealEveryEvents };
      loops.push(
        startSealer({ pool, log: logger }, signer, options, async () => anchorer.wake()),
        anchorer,
      );
    },
    /** Ends the workers after what they have in hand, and hands out the last of the log. */
    async finish(): Promise<void> {
      await Promise.all(loops.map((loop) => loop.stop()));
      if (log && signer && loops.length > 0) await flush({ ledger, logger }, signer, log, anchors);
      await Promise.all(anchors.map((anchor) => anchor.close()));
    },
  };
}

async function flush(
  { ledger, logger }: Pick<Parts, 'ledger' | 'logger'>,
  signer: NoteSigner,
  { sealEveryEvents }: LogConfig,
  anchors: readonly Anchor[],
): Promise<void> {
  try {
    for (const told of await sealAndPublish(ledger.pool, signer, sealEveryEvents, anchors))
      if (told.kind === 'failed') logger.warn(told, 'an anchor could not be told at the end');
  } catch (err) {
    logger.warn({ err }, 'the log could not be sealed and handed out at the end');
  }
}

async function refuseForgotten(
  { ledger, logger }: Pick<Parts, 'ledger' | 'logger'>,
  signer: NoteSigner,
  anchors: readonly Anchor[],
): Promise<void> {
  const unreadable = await checkAnchors(ledger.pool, parseVerifierKey(signer.verifierKey), anchors);
  for (const facts of unreadable)
    logger.warn(facts, 'an anchor cannot be read: whether this database has forgotten anything is not known');
}
