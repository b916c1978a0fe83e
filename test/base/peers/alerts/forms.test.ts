import { expect, test } from 'vitest';
import { pagerdutyBody, slackBody, webhookBody } from '../../../../src/base/peers/alerts/receiver.ts';
import type { AlertMessage } from '../../../../src/base/peers/alerts/message.ts';

const message: AlertMessage = {
  id: 'tollbook-runner_paused-1-1',
  kind: 'runner_paused',
  subject: 'echo',
  status: 'firing',
  text: 'The runner <echo> & its calls wait.',
  details: { reason: 'status_410' },
  since: new Date('2026-11-20T06:30:00Z'),
  at: new Date('2026-11-20T06:31:00Z'),
};
const resolved: AlertMessage = { ...message, status: 'resolved' };

test("the webhook's body has the kind as its type, the status, a text for people and the details", () => {
  expect(webhookBody(message)).toEqual({
    type: 'runner_paused',
    status: 'firing',
    text: message.text,
    subject: 'echo',
    since: '2026-11-20T06:30:00.000Z',
    timestamp: '2026-11-20T06:31:00.000Z',
    reason: 'status_410',
  });
});

test('Slack gets one text, without foreign markup', () => {
  expect(slackBody(message, 'prod')).toEqual({
    text: '[firing] prod: runner_paused echo\nThe runner &lt;echo&gt; &amp; its calls wait.',
  });
  expect(slackBody(resolved, 'prod')).toMatchObject({ text: expect.stringMatching(/^\[resolved\] prod: /) });
});

test('PagerDuty gets a trigger and a resolve with one deduplication key, within its limits', () => {
  const trigger = pagerdutyBody({ ...message, text: 'x'.repeat(5_000) }, 'prod', 'key');
  expect(trigger).toMatchObject({
    routing_key: 'key',
    event_action: 'trigger',
    dedup_key: 'prod/runner_paused/echo',
    payload: {
      source: 'prod',
      severity: 'error',
      timestamp: '2026-11-20T06:30:00.000Z',
      component: 'echo',
      class: 'runner_paused',
      custom_details: { reason: 'status_410' },
    },
  });
  expect(JSON.parse(JSON.stringify(trigger)).payload.summary).toHaveLength(1_024);
  expect(pagerdutyBody(resolved, 'prod', 'key')).toEqual({
    routing_key: 'key',
    event_action: 'resolve',
    dedup_key: 'prod/runner_paused/echo',
  });
});
