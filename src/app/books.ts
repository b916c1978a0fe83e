import { projectionRoutes } from '../audit/http/projections.ts';
import { financeRoutes } from '../finance/http/audit.ts';
import { ownLogReaders } from '../audit/use-cases/log/log-reader.ts';
import type { Loop } from '../ledger/workers/loop.ts';
import { startProjector } from '../audit/workers/projector.ts';
import type { FeatureParts, RunningFeature } from './feature.ts';

/** The read models for finance and auditors, with proofs from the log where there is one. */
export function composeBooks({
  config,
  ledger,
  reads,
  logger: log,
}: Pick<FeatureParts, 'config' | 'reads' | 'logger'> & {
  readonly ledger: Pick<FeatureParts['ledger'], 'pool' | 'db'>;
}): RunningFeature {
  const { pool } = ledger;
  const loops: Loop[] = [];
  return {
    async register(app) {
      await app.register(projectionRoutes({ ledger, reads }, ownLogReaders(config.log)));
      await app.register(financeRoutes({ ledger, reads }));
    },
    startWorkers() {
      loops.push(startProjector({ pool, log }));
    },
    async finish() {
      await Promise.all(loops.map((loop) => loop.stop()));
    },
  };
}
