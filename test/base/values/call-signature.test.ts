import { Webhook } from 'standardwebhooks';
import { describe, expect, test } from 'vitest';
import {
  type CallToSign,
  type CallToVerify,
  signCall,
  signWebhook,
  verifyCall,
} from '../../../src/base/values/call-signature.ts';

const call = {
  secret: 'a secret, ü',
  id: `0x${'1981'.repeat(16)}`,
  timestampSecs: 1_800_000_000,
  body: Buffer.from('{"x":[1,2]}'),
  metadata: { 'x-x402-payer': '0xabc', 'x-net-caller': '0xdef', 'x-net-job': '1/0' },
} satisfies CallToSign;

/** The call as its runner receives it, among headers of others. */
function received(signed: CallToSign = call): CallToVerify {
  const headers = {
    ...signCall(signed),
    ...signed.metadata,
    host: 'runner.example',
    'x-forwarded-for': '10.0.0.1',
  };
  return { secret: call.secret, headers, body: signed.body, nowSecs: signed.timestampSecs + 1 };
}

function refusal(change: Partial<CallToVerify>): string {
  const verification = verifyCall({ ...received(), ...change });
  return verification.ok ? 'none' : verification.reason;
}

function withHeaders(headers: CallToVerify['headers']): Partial<CallToVerify> {
  return { headers: { ...received().headers, ...headers } };
}

describe('a signed call', () => {
  test('verifies, and yields the signed metadata only', () => {
    const { id, timestampSecs, metadata } = call;
    expect(verifyCall(received())).toEqual({ ok: true, id, timestampSecs, metadata });
  });

  test('does not depend on the order of its metadata', () => {
    const reversed = Object.fromEntries(Object.entries(call.metadata).toReversed());
    expect(signCall({ ...call, metadata: reversed })).toEqual(signCall(call));
  });

  test('may have any bytes as its body, or none', () => {
    for (const body of [Buffer.of(0xff, 0x00, 0xfe), Buffer.alloc(0)]) {
      expect(verifyCall(received({ ...call, body }))).toMatchObject({ ok: true });
    }
  });

  test('verifies with its names in any case, and yields them in lower case', () => {
    const { headers } = received();
    const capitals = Object.fromEntries(
      Object.entries(headers).map(([name, value]) => [name.toUpperCase(), value]),
    );
    expect(verifyCall({ ...received(), headers: capitals })).toMatchObject({
      ok: true,
      metadata: call.metadata,
    });
  });

  test.each([
    ['another body', { body: Buffer.from('{"x":[1,3]}') }, 'body_signature_mismatch'],
    ['another secret', { secret: 'another' }, 'body_signature_mismatch'],
    ['another id', withHeaders({ 'webhook-id': `0x${'1982'.repeat(16)}` }), 'body_signature_mismatch'],
    ['another time', withHeaders({ 'webhook-timestamp': '1800000001' }), 'body_signature_mismatch'],
    ['other metadata', withHeaders({ 'x-net-caller': '0xdee' }), 'metadata_signature_mismatch'],
    ['more metadata', withHeaders({ 'x-x402-amount': '1' }), 'metadata_signature_mismatch'],
    ['less metadata', withHeaders({ 'x-net-job': undefined }), 'metadata_signature_mismatch'],
    ['no signature', withHeaders({ 'webhook-signature': undefined }), 'malformed_headers'],
    ['no metadata signature', withHeaders({ 'x-net-metadata-signature': undefined }), 'malformed_headers'],
    ['a header twice', withHeaders({ 'x-net-job': ['1/0', '1/1'] }), 'malformed_headers'],
    ['a header twice, in two spellings', withHeaders({ 'X-NET-JOB': '1/1' }), 'malformed_headers'],
    ['its id twice, in two spellings', withHeaders({ 'Webhook-Id': call.id }), 'malformed_headers'],
    ['more metadata in capitals', withHeaders({ 'X-X402-AMOUNT': '1' }), 'metadata_signature_mismatch'],
    ['a call id as its id', withHeaders({ 'webhook-id': '1981' }), 'malformed_headers'],
    ['an id with a dot', withHeaders({ 'webhook-id': 'call.1' }), 'malformed_headers'],
    ['a time in another form', withHeaders({ 'webhook-timestamp': '1.8e9' }), 'malformed_headers'],
    ['a clock five minutes ahead', { nowSecs: call.timestampSecs + 301 }, 'timestamp_out_of_range'],
    ['a clock five minutes behind', { nowSecs: call.timestampSecs - 301 }, 'timestamp_out_of_range'],
  ] satisfies [string, Partial<CallToVerify>, string][])('with %s is refused', (_, change, reason) => {
    expect(refusal(change)).toBe(reason);
  });

  test('verifies with a clock difference of up to five minutes', () => {
    expect(refusal({ nowSecs: call.timestampSecs + 300 })).toBe('none');
    expect(refusal({ nowSecs: call.timestampSecs - 300 })).toBe('none');
  });

  test('verifies when one of several signatures is right', () => {
    const signature = received().headers['webhook-signature'];
    expect(refusal(withHeaders({ 'webhook-signature': `v1,AAAA v2,BBBB ${String(signature)}` }))).toBe(
      'none',
    );
  });

  test('does not let a signed body pass as signed metadata', () => {
    const forged = { 'x-net-caller': '0xbad' };
    const { body: _, metadata: __, ...rest } = call;
    const honest = signCall({ ...rest, body: Buffer.from(JSON.stringify(forged)), metadata: {} });
    const headers = { ...honest, ...forged, 'x-net-metadata-signature': honest['webhook-signature'] };
    const verification = verifyCall({ ...received(), headers, body: Buffer.from(JSON.stringify(forged)) });
    expect(verification).toEqual({ ok: false, reason: 'metadata_signature_mismatch' });
  });

  test.each([
    ['an empty secret', { secret: '' }],
    ['an id with a dot', { id: 'call.1' }],
    ['a fraction of a second', { timestampSecs: 1.5 }],
    ['a name in upper case', { metadata: { 'X-Net-Job': '1' } }],
    ['a name of others', { metadata: { 'x-other': '1' } }],
    ["the signature's own name", { metadata: { 'x-net-metadata-signature': '1' } }],
    ['a value HTTP would trim', { metadata: { 'x-net-job': ' 1' } }],
    ['a value HTTP cannot carry', { metadata: { 'x-net-job': 'a\nb' } }],
  ] satisfies [string, Partial<CallToSign>][])('is never made with %s', (_, change) => {
    expect(() => signCall({ ...call, ...change })).toThrow(TypeError);
  });

  test('is made with both secrets while one is replaced, so that a runner that knows one of them accepts it', () => {
    const both = signCall({ ...call, secret: ['the next secret', call.secret] });
    const given = received({ ...call, secret: ['the next secret', call.secret] });
    expect(verifyCall(given)).toMatchObject({ ok: true });
    expect(verifyCall({ ...given, secret: 'the next secret' })).toMatchObject({ ok: true });
    expect(verifyCall({ ...given, secret: 'another secret' })).toMatchObject({ ok: false });
    const library = new Webhook(Buffer.from(call.secret, 'utf8'), { format: 'raw' });
    const nowSecs = Math.floor(Date.now() / 1000);
    const headers = signCall({ ...call, secret: ['the next secret', call.secret], timestampSecs: nowSecs });
    expect(library.verify(Buffer.from(call.body), { ...headers })).toEqual({ x: [1, 2] });
    expect(both['webhook-signature'].split(' ')).toHaveLength(2);
  });

  test('is what the Standard Webhooks library signs and accepts', () => {
    const library = new Webhook(Buffer.from(call.secret, 'utf8'), { format: 'raw' });
    const nowSecs = Math.floor(Date.now() / 1000);
    const headers = signCall({ ...call, timestampSecs: nowSecs });
    const body = Buffer.from(call.body);
    expect(library.sign(call.id, new Date(nowSecs * 1000), body)).toBe(headers['webhook-signature']);
    expect(library.verify(body, { ...headers })).toEqual({ x: [1, 2] });
  });
});

describe('a signed webhook', () => {
  const { metadata: _, ...message } = call;

  test('is signed as the body of a call is', () => {
    const { 'x-net-metadata-signature': __, ...headers } = signCall(call);
    expect(signWebhook(message)).toEqual(headers);
  });

  test('may have an id of letters', () => {
    const id = 'unresolved:0x12_ab-3/4';
    const nowSecs = Math.floor(Date.now() / 1000);
    const headers = signWebhook({ ...message, id, timestampSecs: nowSecs });
    const library = new Webhook(Buffer.from(call.secret, 'utf8'), { format: 'raw' });
    expect(library.verify(Buffer.from(call.body), { ...headers })).toEqual({ x: [1, 2] });
  });

  test.each([
    ['an empty secret', { secret: '' }],
    ['no id', { id: '' }],
    ['an id with a dot', { id: '1.2' }],
    ['an id with a blank', { id: 'a b' }],
    ['an id of two lines', { id: 'a\nb' }],
    ['an id that is too long', { id: 'a'.repeat(201) }],
    ['the id that begins signed metadata', { id: 'metadata' }],
    ['a time before all times', { timestampSecs: -1 }],
  ])('is never made with %s', (__, change) => {
    expect(() => signWebhook({ ...message, ...change })).toThrow(TypeError);
  });
});
