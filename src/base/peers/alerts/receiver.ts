import type { AlertsConfig } from '../../config/alerts.ts';
import { createWebhook, type WebhookAnswer } from '../http/webhook.ts';
import { pagerdutyBody, slackBody, webhookBody } from './forms.ts';
import type { AlertMessage } from './message.ts';

/** Where the operator's alerts go. */
export interface AlertReceiver {
  readonly name: 'webhook' | 'slack' | 'pagerduty';
  /** One POST, never repeated. */
  send(message: AlertMessage): Promise<WebhookAnswer>;
  /** Waits for running messages, then drops the connections. */
  close(): Promise<void>;
}

const timeoutMs = 10_000;

/** The receivers that are configured. */
export function openAlertReceivers(alerts: AlertsConfig): readonly AlertReceiver[] {
  const { webhook, secret, slackUrl, pagerdutyKey, pagerdutyUrl, source } = alerts;
  const receivers: AlertReceiver[] = [];
  if (webhook !== undefined)
    receivers.push(
      receiver('webhook', { url: webhook, ...(secret !== undefined && { secret }) }, webhookBody),
    );
  if (slackUrl !== undefined)
    receivers.push(receiver('slack', { url: slackUrl }, (message) => slackBody(message, source)));
  if (pagerdutyKey !== undefined)
    receivers.push(
      receiver('pagerduty', { url: pagerdutyUrl }, (message) => pagerdutyBody(message, source, pagerdutyKey)),
    );
  return receivers;
}

function receiver(
  name: AlertReceiver['name'],
  to: { readonly url: string; readonly secret?: string },
  bodyOf: (message: AlertMessage) => object,
): AlertReceiver {
  const webhook = createWebhook({ ...to, timeoutMs });
  return {
    name,
    send: (message) =>
      webhook.send({
        id: message.id,
        timestampSecs: Math.floor(Date.now() / 1_000),
        body: JSON.stringify(bodyOf(message)),
      }),
    close: () => webhook.close(),
  };
}
