import type { Config } from '../config/config.ts';
import { createWebhook, type Webhook } from '../peers/http/webhook.ts';
import { startAlerter } from '../workers/alerter.ts';
import { startFollowUpCollector } from '../workers/follow-up-collector.ts';
import type { Loop } from '../workers/loop.ts';

/** Sends the ledger's alerts to the operator. */
export function startAlerts(context: Parameters<typeof startAlerter>[0], config: Config): Loop[] {
  return [startFollowUpCollector(context), startAlerter(context, openWebhook(config))];
}

/** The operator's alert webhook; undefined where none is configured. */
export function openWebhook({ alerts }: Pick<Config, 'alerts'>): Webhook | undefined {
  const { webhook: url, secret } = alerts;
  if (url === undefined) return undefined;
  return createWebhook({ url, ...(secret !== undefined && { secret }), timeoutMs: 10_000 });
}
