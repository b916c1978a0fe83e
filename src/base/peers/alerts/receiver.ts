import type { AlertsConfig } from '../../config/alerts.ts';
import { createWebhook, type WebhookAnswer } from '../http/webhook.ts';
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

/** The body of Tollbook's webhook: the alert, with `text` for chat services, and the details of the kind. */
export function webhookBody(message: AlertMessage): object {
  const { kind, subject, status, text, details, since, at } = message;
  const times = { since: since.toISOString(), timestamp: at.toISOString() };
  return { type: kind, status, text, subject, ...times, ...details };
}

/** The body of a Slack incoming webhook. Slack reads &, < and > as markup. */
export function slackBody(message: AlertMessage, source: string): object {
  const text = `${titleOf(message, source)}\n${message.text}`;
  return { text: text.replaceAll('&', '&amp;').replaceAll('<', '&lt;').replaceAll('>', '&gt;') };
}

/** An event of PagerDuty's Events API v2: the same deduplication key triggers and resolves an incident. */
export function pagerdutyBody(message: AlertMessage, source: string, routingKey: string): object {
  const { kind, subject, status, text, details, since } = message;
  const event = { routing_key: routingKey, dedup_key: `${source}/${kind}/${subject}`.slice(0, 255) };
  if (status === 'resolved') return { ...event, event_action: 'resolve' };
  const payload = {
    summary: `${titleOf(message, source)}: ${text}`.slice(0, 1_024),
    source,
    severity: 'error',
    timestamp: since.toISOString(),
    component: subject === '' ? kind : subject,
    class: kind,
    custom_details: details,
  };
  return { ...event, event_action: 'trigger', payload };
}

function titleOf({ kind, subject, status }: AlertMessage, source: string): string {
  return `[${status}] ${source}: ${kind}${subject === '' ? '' : ` ${subject}`}`;
}
