import { triggered } from '../../jobs/http/schemas/trigger.ts';
import { operations } from './operation.ts';

const ofTriggers = { tag: 'Triggers' } as const;

export const triggerOperations = operations(ofTriggers, {
  'POST /triggers/webhook/{trigger}': {
    id: 'triggerByWebhook',
    summary: 'Trigger a call by a signed webhook',
    description:
      'Standard Webhooks: the body is signed with a secret of the trigger. One `webhook-id` makes one call, for ever: sent again with the ' +
      'same body it gets the same answer. Nothing is charged.',
    requestHeaders: [
      {
        name: 'webhook-id',
        description:
          'Of the message, the same when it is sent again. 1 to 200 of A-Z, a-z, 0-9, _ : / + = -.',
        required: { example: 'order-42' },
      },
      {
        name: 'webhook-timestamp',
        description: 'Unix seconds, within five minutes of the present.',
        required: { example: '1764547200' },
      },
      {
        name: 'webhook-signature',
        description:
          '`v1,` and the base64 of HMAC-SHA256 over `{webhook-id}.{webhook-timestamp}.{body}`; several are separated by blanks.',
        required: { example: 'v1,K5oZfzN95Z9UVu1EsfQmfVNQhnkZ2pj9o9NDN/H/pI4=' },
      },
    ],
    body: { bytes: '*/*', description: 'What the runner gets, unchanged, with its content type.' },
    answers: [
      {
        status: 202,
        description: 'The call is on record.',
        schema: triggered,
        headers: ['Idempotent-Replayed'],
      },
    ],
    refusals: [
      'invalid_request',
      'invalid_webhook',
      'invalid_content_type',
      'unsupported_media_type',
      'webhook_signature_mismatch',
      'trigger_not_found',
      'webhook_id_conflict',
      'body_too_large',
      'too_many_attempts',
      'internal_error',
      'enqueue_failed',
      'overloaded',
      'ledger_unavailable',
      'ledger_inconsistent',
    ],
  },
});
