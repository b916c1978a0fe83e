import type { Config } from './config/config.ts';
import type { FeatureParts, RunningFeature } from './feature.ts';
import type { Loop } from './workers/loop.ts';
import { startTopUps } from './workers/top-ups.ts';

interface Parts extends FeatureParts {
  readonly x402: NonNullable<Config['x402']>;
  readonly routing: NonNullable<Config['routing']>;
}

/** Where paid jobs and model chat meet: paid calls that buy credit. Which they are stays as it is until a restart. */
export function composeTopUps({ config, x402, routing, ledger, logger: log }: Parts): RunningFeature {
  const { topUps, currency } = routing;
  let { confirm } = x402;
  const work = { ...ledger, config, topUps, currency, confirm: () => confirm, log, onCallReleased: () => {} };
  const loops: Loop[] = [];
  return {
    async register() {},
    startWorkers() {
      loops.push(startTopUps(work));
    },
    prepareReload: (next) => ({
      events: [],
      wantsRestart: [],
      putInForce: () => (confirm = next.x402?.confirm ?? confirm),
    }),
    checks: () => ({}),
    async finish() {
      await Promise.all(loops.map((loop) => loop.stop()));
    },
    cutShort: () => {},
    stop: async () => {},
  };
}
