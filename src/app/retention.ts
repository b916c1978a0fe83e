import type { Loop } from '../ledger/workers/loop.ts';
import { startCleaner, startMailCleaner } from '../jobs/workers/cleaner.ts';
import type { FeatureParts, RunningFeature } from './feature.ts';

/** Pruning, which every gateway does for all features of its ledger. */
export function composeRetention({
  config,
  ledger,
  logger: log,
}: Pick<FeatureParts, 'config' | 'ledger' | 'logger'>): RunningFeature {
  const loops: Loop[] = [];
  return {
    startOwnLoops() {
      const dir = config.identity?.mailDir;
      if (dir !== undefined) loops.push(startMailCleaner({ ...ledger, log }, dir, config.retention));
    },
    startWorkers() {
      loops.push(startCleaner({ ...ledger, log }, config.retention));
    },
    async finish() {
      await Promise.all(loops.map((loop) => loop.stop()));
    },
  };
}
