import { webhookTriggerRoutes } from '../jobs/http/triggers/webhook.ts';
import type { JobsContext } from '../jobs/use-cases/context.ts';
import type { FeatureParts, RunningFeature } from './feature.ts';

/** What calls jobs without a payment. */
export function composeTriggers(
  { bodies }: Pick<FeatureParts, 'bodies'>,
  current: () => JobsContext,
): RunningFeature {
  return {
    async register(app) {
      await app.register(webhookTriggerRoutes(current, bodies));
    },
  };
}
