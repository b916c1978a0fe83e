import { hostname } from 'node:os';
import type { AlertCondition } from '../base/values/alert-condition.ts';
import { createSince } from '../base/runtime/since.ts';
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
  {
    config,
    ledger,
    logger: log,
    readiness,
  }: Pick<FeatureParts, 'config' | 'ledger' | 'logger' | 'readiness'>,
  parts: () => readonly RunningFeature[],
): RunningFeature {
  const receivers = openAlertReceivers(config.alerts);
  const certificates = watchCertificates();
  const context = { ...ledger, log };
  const loops: Loop[] = [];
  const notReady = watchReadiness(readiness);
  const conditions = async () => {
    const seen = await Promise.all(parts().map(async (part) => (await part.conditions?.()) ?? []));
    return [...seen.flat(), ...certificates.conditions(), ...notReady()];
  };
  const isComplete = (): boolean => parts().every((part) => part.knowsConditions?.() ?? true);
  return {
    startOwnLoops() {
      const { repeatSecs } = config.alerts;
      loops.push(startAlertReporter({ ...context, receivers, repeatSecs, conditions, isComplete }));
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

/** The readiness is checked each second: one that is lost for longer needs a person. */
const unreadyMs = 10_000;

/** Whether this process has been out of service for longer than a check; a process that stops is so by intent. */
function watchReadiness(readiness: FeatureParts['readiness']): () => AlertCondition[] {
  const since = createSince();
  return () => {
    const { status, draining, database, migrations } = readiness();
    const ok = status === 'ready' || draining;
    const lastsMs = Date.now() - Date.parse(since.of('ready', ok));
    if (ok || lastsMs < unreadyMs) return [];
    const detail = [database.detail, migrations.detail].filter((part) => part !== undefined).join('; ');
    const text = `The gateway on ${hostname()} is not ready (${detail}): load balancers send it nothing.`;
    return [{ kind: 'gateway_not_ready', subject: hostname(), text, details: { detail } }];
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
