import type { Config } from '../base/config/config.ts';
import type { FeatureParts, RunningFeature } from './feature.ts';
import { createFailureRuns } from '../calls/use-cases/failure-runs.ts';
import type { Loop } from '../ledger/workers/loop.ts';
import { startTopUps } from '../jobs/workers/top-ups.ts';

interface Parts extends FeatureParts {
  readonly jobs: NonNullable<Config['jobs']>;
  readonly chat: NonNullable<Config['chat']>;
}

/** Paid jobs that buy credit for model chat. */
export function composeTopUps({ config, jobs, chat, ledger, logger: log }: Parts): RunningFeature {
  const { currency } = chat;
  const { topUps } = config;
  let { confirm } = jobs;
  const own = { onCallReleased: () => {}, failureRuns: createFailureRuns() };
  const work = { ...ledger, config, topUps, currency, confirm: () => confirm, log, ...own };
  const loops: Loop[] = [];
  return {
    startWorkers() {
      loops.push(startTopUps(work));
    },
    prepareReload: (next) => ({ putInForce: () => (confirm = next.jobs?.confirm ?? confirm) }),
    async finish() {
      await Promise.all(loops.map((loop) => loop.stop()));
    },
  };
}
