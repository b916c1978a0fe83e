import { createPublicKey } from 'node:crypto';
import {
  type EIP712SignedOffer,
  type EIP712SignedReceipt,
  extractOfferPayload,
  type JWSSignedOffer,
  verifyOfferSignatureEIP712,
  verifyOfferSignatureJWS,
  verifyReceiptSignatureEIP712,
  verifyReceiptSignatureJWS,
} from '@x402/extensions/offer-receipt';
import fc from 'fast-check';
import { privateKeyToAddress } from 'viem/accounts';
import { expect, test } from 'vitest';
import { didDocument, didOf, type OfferKey, offerKeysOf } from '../../../src/payments/rules/offer-key.ts';
import {
  type OfferPayload,
  offerPayload,
  type ReceiptPayload,
  type Signable,
  type Signed,
} from '../../../src/payments/rules/offer-receipt.ts';
import { signatureFormats } from '../../../src/base/values/signature-format.ts';
import { propertyRuns } from '../../support/property-runs.ts';
import { verifySigned } from '../../support/verify-signed.ts';
import { anyAddress, anyHash, anyOption, nowSecs } from './support.ts';

const secret = Buffer.from('5e'.repeat(32), 'hex');
const other = Buffer.from('6f'.repeat(32), 'hex');
const origin = 'https://gateway.example:8443';
const did = didOf(origin);

const anyOffer: fc.Arbitrary<OfferPayload> = fc
  .tuple(anyOption, fc.webUrl(), fc.integer({ min: nowSecs, max: 4_000_000_000 }))
  .map(([option, url, until]) => offerPayload(option, url, until));
const anyReceipt: fc.Arbitrary<ReceiptPayload> = fc.record(
  {
    version: fc.constant(1 as const),
    network: fc.constant('eip155:8453'),
    resourceUrl: fc.webUrl(),
    payer: anyAddress,
    issuedAt: fc.integer({ min: nowSecs, max: 4_000_000_000 }),
    transaction: anyHash,
  },
  { requiredKeys: ['version', 'network', 'resourceUrl', 'payer', 'issuedAt'] },
);
const anySignable: fc.Arbitrary<Signable> = fc.oneof(
  anyOffer.map((payload) => ({ kind: 'offer' as const, payload })),
  anyReceipt.map((payload) => ({ kind: 'receipt' as const, payload })),
);

/** The payload, by the official package; throws if the signature is not by the key. */
async function officially(kind: Signable['kind'], signed: Signed, [key]: readonly [OfferKey, ...OfferKey[]]) {
  if (signed.format === 'jws') {
    const jwk = createPublicKey({ key: key.methods(did)[0]?.publicKeyJwk ?? {}, format: 'jwk' });
    return kind === 'offer'
      ? await verifyOfferSignatureJWS(signed, jwk)
      : await verifyReceiptSignatureJWS(signed, jwk);
  }
  const { signer, payload } =
    kind === 'offer'
      ? await verifyOfferSignatureEIP712(signed as EIP712SignedOffer)
      : await verifyReceiptSignatureEIP712(signed as EIP712SignedReceipt);
  const accountId = key.methods(did)[1]?.blockchainAccountId;
  if (accountId !== `eip155:1:${signer.toLowerCase()}`) throw new Error('signed by another key');
  return payload;
}

test.each(signatureFormats)(
  'the official package verifies every offer and receipt in %s, and the same payload is signed alike',
  async (format) => {
    const keys = offerKeysOf(format, [secret]);
    await fc.assert(
      fc.asyncProperty(anySignable, async (signable) => {
        const signed = keys[0].sign(signable, did);
        const { kind, payload } = signable;
        const absent = format === 'eip712' && kind === 'receipt' ? { transaction: '' } : {};
        expect(await officially(kind, signed, keys)).toEqual({ ...absent, ...payload });
        expect(keys[0].sign(signable, did)).toEqual(signed);
      }),
      propertyRuns(10),
    );
  },
);

test('a second implementation, in Python, verifies offers and receipts with the DID document, also after another key signs, and refuses edited ones and those of a foreign key', () => {
  const [offer] = fc.sample(anyOffer, 1);
  const [receipt] = fc.sample(anyReceipt, 1);
  if (!offer || !receipt) throw new Error('no sample');
  const both = [
    { kind: 'offer', payload: offer },
    { kind: 'receipt', payload: { transaction: `0x${'ab'.repeat(32)}`, ...receipt } },
  ] as const;
  const cases = signatureFormats.flatMap((format) => {
    const keys = offerKeysOf(format, [secret]);
    const document = didDocument(origin, keys);
    const rotated = didDocument(origin, offerKeysOf(format, [other, secret]));
    const ended = didDocument(origin, offerKeysOf(format, [other]));
    return both.flatMap((signable) => {
      const { kind, payload } = signable;
      const signed = keys[0].sign(signable, did);
      const wrong = { wrong: expect.any(String) };
      return [
        { did: document, kind, signed, verdict: { payload } },
        { did: rotated, kind, signed, verdict: { payload } },
        { did: ended, kind, signed, verdict: wrong },
        { did: document, kind, signed: edited(signed), verdict: wrong },
      ];
    });
  });
  const expected = cases.map(({ verdict }) => verdict);
  expect(verifySigned(cases) ?? expected).toEqual(expected);
});

/** For another address than was signed. */
function edited(signed: Signed): Signed {
  const cheaper = {
    ...extractOfferPayload(signed as JWSSignedOffer),
    resourceUrl: 'https://elsewhere.example/',
  };
  if (signed.format === 'eip712') return { ...signed, payload: cheaper as unknown as OfferPayload };
  const [head = '', , signature = ''] = signed.signature.split('.');
  const payload = Buffer.from(JSON.stringify(cheaper)).toString('base64url');
  return { ...signed, signature: `${head}.${payload}.${signature}` };
}

test.each(signatureFormats)(
  'the official package refuses an edited offer and one of a foreign key in %s',
  async (format) => {
    const keys = offerKeysOf(format, [secret]);
    const [payload] = fc.sample(anyOffer, 1);
    if (!payload) throw new Error('no sample');
    const signed = keys[0].sign({ kind: 'offer', payload }, did);
    await expect(officially('offer', edited(signed), keys)).rejects.toThrow(/another key|signature/);
    const foreign = offerKeysOf(format, [other])[0].sign({ kind: 'offer', payload }, did);
    await expect(officially('offer', foreign, keys)).rejects.toThrow(/another key|signature/);
  },
);

test('a DID document names the host of the public address, with its port, and each key by itself', () => {
  expect(didOf('http://localhost:8402/base')).toBe('did:web:localhost%3A8402');
  const account = privateKeyToAddress(`0x${'5e'.repeat(32)}`).toLowerCase();
  const document = didDocument(origin, offerKeysOf('eip712', [secret, other]));
  expect(document.id).toBe('did:web:gateway.example%3A8443');
  expect(document.verificationMethod).toHaveLength(4);
  expect(new Set(document.assertionMethod).size).toBe(4);
  expect(document.verificationMethod[1]).toMatchObject({
    id: `${document.id}#${account}`,
    controller: document.id,
    blockchainAccountId: `eip155:1:${account}`,
  });
  const all = JSON.stringify(document);
  for (const bytes of [secret, other])
    expect(all).not.toMatch(new RegExp(`${bytes.toString('hex')}|${bytes.toString('base64url')}|"d"`));
});
