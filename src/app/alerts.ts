import { openAlertReceivers } from '../base/peers/alerts/receiver.ts';
import { watchCertificates } from '../base/peers/http/certificate-watch.ts';
import { startAlertReporter } from '../jobs/workers/alert-reporter.ts';
import { startAlerter, startAlertSender, startFollowUpCollector } from '../jobs/workers/alerter.ts';
import type { Loop } from '../ledger/workers/loop.ts';
import type { FeatureParts, RunningFeature } from './feature.ts';
import { startCleaner, startMailCleaner } from '../jobs/workers/cleaner.ts';

/**
 * Tells the operator: about events of the ledger, and about conditions while they last.
 * @param parts the features whose conditions are reported
 */
export function composeAlerts(
  { config, ledger, logger: log }: Pick<FeatureParts, 'config' | 'ledger' | 'logger'>,
  parts: () => readonly RunningFeature[],
): RunningFeature {
  const receivers = openAlertReceivers(config.alerts);
  const certificates = watchCertificates();
  const context = { ...ledger, log };
  const loops: Loop[] = [];
  const conditions = async () => {
    const seen = await Promise.all(parts().map(async (part) => (await part.conditions?.()) ?? []));
    return [...seen.flat(), ...certificates.conditions()];
  };
  return {
    startOwnLoops() {
      const { repeatSecs } = config.alerts;
      loops.push(startAlertReporter({ ...context, receivers, repeatSecs, conditions }));
    },
    startWorkers() {
      loops.push(startFollowUpCollector(context), startAlerter(context, receivers));
      loops.push(...receivers.map((receiver) => startAlertSender(context, receiver)));
    },
    async finish() {
      await Promise.all(loops.map((loop) => loop.stop()));
    },
    async stop() {
      certificates.close();
      await Promise.all(receivers.map((receiver) => receiver.close()));
    },
  };
}

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
