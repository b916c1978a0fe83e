import { projectionRoutes } from '../http/projections/projections.ts';
import { reconciliationRoutes } from '../http/reconcile/reconciliations.ts';
import { refundRoutes } from '../http/refunds/refunds.ts';
import { ownLogReader } from '../log/log-reader.ts';
import type { Loop } from '../workers/loop.ts';
import { startProjector } from '../workers/projector.ts';
import type { FeatureParts, RunningFeature } from './feature.ts';

/** The read models for finance and auditors, with proofs from the log where there is one. */
export function composeBooks({
  config,
  ledger,
  logger: log,
}: Pick<FeatureParts, 'config' | 'logger'> & {
  readonly ledger: Pick<FeatureParts['ledger'], 'pool' | 'db'>;
}): RunningFeature {
  const { pool } = ledger;
  const loops: Loop[] = [];
  return {
    async register(app) {
      await app.register(projectionRoutes(ledger, ownLogReader(pool, config.log)));
      await app.register(refundRoutes(ledger));
      await app.register(reconciliationRoutes(ledger));
    },
    startWorkers() {
      loops.push(startProjector({ pool, log }));
    },
    async finish() {
      await Promise.all(loops.map((loop) => loop.stop()));
    },
  };
}
