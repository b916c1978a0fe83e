import type { AlertMessage } from './message.ts';

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
