import { readFileSync } from 'node:fs';
import { describe, expect, test } from 'vitest';
import { type CallToVerify, signCall, verifyCall } from '../../../src/base/values/call-signature.ts';
import { canonicalJson } from '../../../src/base/values/canonical-json.ts';

interface Vector {
  readonly name: string;
  readonly token: string;
  readonly now_secs: number;
  readonly headers: CallToVerify['headers'];
  readonly body_base64: string;
  /** Of an accepted call: the text of the metadata, as it was signed. */
  readonly metadata_json?: string;
  readonly refusal: string | null;
}

/** Signed by Python's hmac module; for authors of runners in other languages. */
const cases = readFileSync(new URL('call-signature.vectors.jsonl', import.meta.url), 'utf8')
  .trimEnd()
  .split('\n')
  .map((line) => JSON.parse(line) as Vector);

describe('of the test vectors', () => {
  test.each(cases)('a call with $name is accepted or refused as they say', (vector) => {
    const { token: secret, headers, now_secs: nowSecs } = vector;
    const body = Buffer.from(vector.body_base64, 'base64');
    const verification = verifyCall({ secret, headers, body, nowSecs });
    expect(verification.ok ? null : verification.reason).toBe(vector.refusal);
  });

  test.each(cases.filter(({ refusal }) => refusal === null))(
    'a call with $name is signed as they say',
    (vector) => {
      const { token: secret, headers, now_secs: nowSecs } = vector;
      const body = Buffer.from(vector.body_base64, 'base64');
      const verification = verifyCall({ secret, headers, body, nowSecs });
      if (!verification.ok) throw new Error(verification.reason);
      const { id, timestampSecs, metadata } = verification;
      expect(canonicalJson(metadata)).toBe(vector.metadata_json);
      const signed = signCall({ secret, id, timestampSecs, body, metadata });
      // the vector may have signatures of other secrets or versions beside it
      for (const [name, value] of Object.entries(signed))
        expect(String(headers[name]).split(' ')).toContain(value);
    },
  );

  test('some are accepted and some are refused for each reason', () => {
    const byRefusal = Object.groupBy(cases, ({ refusal }) => refusal ?? 'accepted');
    const counts = Object.entries(byRefusal).map(([refusal, some]) => [refusal, some?.length]);
    expect(Object.fromEntries(counts)).toEqual({
      accepted: 18,
      malformed_headers: 19,
      timestamp_out_of_range: 2,
      body_signature_mismatch: 18,
      metadata_signature_mismatch: 7,
    });
  });
});
