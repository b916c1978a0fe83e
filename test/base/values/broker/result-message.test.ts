import { expect, test } from 'vitest';
import { openResult, sealResult } from '../../../../src/base/values/broker/result-message.ts';

const secret = 'a-token-of-the-runner-of-this-test';
const call = { callId: 7, leaseId: '6f1f4a0e-2b57-4c8e-9d3a-51f0c2a7e9b4' };

test.each([undefined, '0.003 USD', 'not a price'])(
  'a result reaches the gateway over a broker with its price as the runner said it: %s',
  (price) => {
    const outcome = {
      kind: 'completed',
      contentType: 'text/plain',
      price,
      body: Buffer.from('done'),
    } as const;
    expect(openResult([secret], sealResult(secret, { ...call, outcome }))).toEqual({ ...call, outcome });
  },
);
