import { signerOf } from '../audit/use-cases/log/configured-log.ts';
import { checkAnchors, sealAndPublish } from '../audit/use-cases/log/anchors.ts';
import type { AnchorLag } from '../audit/use-cases/log/anchor-lag.ts';
import { createAnchorConditions } from '../audit/use-cases/log/conditions.ts';
import { createKnownHead } from '../audit/use-cases/log/history.ts';
import { openLogReader } from '../audit/use-cases/log/log-reader.ts';
import type { LogConfig } from '../base/config/config.ts';
import { type NoteSigner } from '../base/values/log/checkpoint.ts';
import type { Hex } from '../base/values/primitives.ts';
import { logRoutes } from '../audit/http/log.ts';
import { isReceiptToken, receiptKeysOf } from '../payments/use-cases/receipt-keys.ts';
import type { Anchor } from '../audit/peers/anchors/anchor.ts';
import { createAnchor } from '../audit/peers/anchors/create-anchor.ts';
import { readReceiptKey } from '../ledger/store/secrets.ts';
import {
  startAnchorer,
  startHistoryChecker,
  logStatus,
  startAnchorWatch,
  startSealer,
  startSealerWatch,
} from '../audit/workers/log.ts';
import type { Loop } from '../ledger/workers/loop.ts';
import { createLastKnown } from '../base/runtime/last-known.ts';
import { createSince } from '../base/runtime/since.ts';
import type { Backlog } from '../ledger/store/backlogs.ts';
import type { FeatureParts, RunningFeature } from './feature.ts';
import { logFigures } from './metric-values.ts';

type Parts = Pick<FeatureParts, 'config' | 'ledger' | 'logger'>;

/** The signer that is in force whenever it is used: a reload replaces the keys. */
function signerInForce(current: () => NoteSigner): NoteSigner {
  return {
    get name() {
      return current().name;
    },
    get verifierKeys() {
      return current().verifierKeys;
    },
    sign: (text) => current().sign(text),
    renamed: (name) => current().renamed(name),
  };
}

/**
 * The sealed log of the ledger.
 * @throws ForgottenHistoryError if an anchor has a newer checkpoint than this database, or of a later generation
 */
export async function composeLog(parts: Parts, settings: LogConfig): Promise<RunningFeature> {
  const { ledger, logger: log } = parts;
  const { pool, lane } = ledger;
  const known = createKnownHead();
  const loops: Loop[] = [];
  let isSealing = false;
  let keys = signerOf(settings);
  const signer = signerInForce(() => keys);
  const storedKey = await readReceiptKey(ledger.db);
  let receiptKeys = receiptKeysOf(parts.config.jobs?.receiptKeys, storedKey);
  const anchors = settings.anchors.map(createAnchor);
  const since = createSince();
  const lags = createLastKnown<ReadonlyMap<string, AnchorLag>>();
  const unsealed = createLastKnown<Backlog>();
  try {
    await refuseForgotten(parts, signer, anchors);
  } catch (error) {
    await Promise.all(anchors.map((anchor) => anchor.close()));
    throw error;
  }

  const anchorConditions = createAnchorConditions(pool, signer, anchors);
  const opensReceipt = (digest: Hex, token: string): boolean =>
    isReceiptToken(receiptKeys, digest, token, log);

  return {
    async register(app) {
      await app.register(logRoutes(ledger, openLogReader(pool, signer.name), opensReceipt));
    },
    prepareReload({ jobs, log: next = settings }) {
      const renewed = signerOf(next);
      return {
        putInForce() {
          keys = renewed;
          receiptKeys = receiptKeysOf(jobs?.receiptKeys, storedKey);
        },
      };
    },
    conditions: anchorConditions.look,
    startOwnLoops() {
      loops.push(startHistoryChecker({ pool, lane, log }, signer, known, anchors));
      loops.push(startSealerWatch({ pool, log }, signer, unsealed.learn));
      if (anchors.length > 0) loops.push(startAnchorWatch({ pool, log }, signer, anchors, lags.learn));
    },
    status: () => ({ log: logStatus(anchors, lags.value ?? new Map(), since) }),
    figures: () =>
      logFigures({
        sealEveryMs: settings.sealEveryMs,
        hasAnchors: anchors.length > 0,
        lags,
        unsealed,
        funds: anchorConditions.funds,
      }),
    startWorkers() {
      isSealing = true;
      const anchorer = startAnchorer({ pool, lane, log }, signer, anchors, known);
      const options = { everyMs: settings.sealEveryMs, everyEvents: settings.sealEveryEvents };
      loops.push(
        startSealer({ pool, log }, signer, options, known, async () => anchorer.wake()),
        anchorer,
      );
    },
    async finish() {
      await Promise.all(loops.map((loop) => loop.stop()));
      if (isSealing) await flush(parts, signer, settings, anchors);
    },
    async stop() {
      await Promise.all(anchors.map((anchor) => anchor.close()));
    },
  };
}

/** Seals the events of the shutdown and copies the last checkpoint to the anchors. */
async function flush(
  { ledger, logger }: Parts,
  signer: NoteSigner,
  { sealEveryEvents }: LogConfig,
  anchors: readonly Anchor[],
): Promise<void> {
  try {
    for (const result of await sealAndPublish(ledger.pool, signer, sealEveryEvents, anchors)) {
      if (result.kind === 'inconsistent') ledger.lane.halt(result.halt);
      if (result.kind === 'failed' || result.kind === 'unverifiable')
        logger.warn(result, 'an anchor did not take the last checkpoint before the stop');
    }
  } catch (err) {
    logger.warn({ err }, 'the last events could not be sealed or copied to the anchors');
  }
}

async function refuseForgotten(
  { ledger, logger }: Parts,
  signer: NoteSigner,
  anchors: readonly Anchor[],
): Promise<void> {
  const unreadable = await checkAnchors(ledger.pool, signer, anchors);
  for (const facts of unreadable)
    logger.warn(facts, 'an anchor cannot be read, so it could not be compared with this database');
}
