import http from 'node:http';
import type { PaymentPayload, PaymentRequired, PaymentRequirements } from '@x402/core/types';
import { ExactEvmScheme } from '@x402/evm/exact/client';
import { decodePaymentResponseHeader } from '@x402/core/http';
import {
  decodeSignedOffers,
  extractOffersFromPaymentRequired,
  extractReceiptFromResponse,
  extractReceiptPayload,
  findAcceptsObjectFromSignedOffer,
  verifyOfferSignatureEIP712,
  verifyOfferSignatureJWS,
  verifyReceiptMatchesOffer,
  verifyReceiptSignatureEIP712,
  verifyReceiptSignatureJWS,
} from '@x402/extensions/offer-receipt';
import { extractDiscoveryInfo, validateDiscoveryExtension } from '@x402/extensions/bazaar';
import { wrapFetchWithPayment, x402Client } from '@x402/fetch';
import { expect, test } from 'vitest';
import { documentOf } from '../../support/documented.ts';
import { createDatabase } from '../../support/database.ts';
import { useChain } from '../../support/devnet.ts';
import { startTestGateway, type TestGatewayOptions } from '../../support/gateway.ts';
import { header, offerOf, payer, signOffer, v1Header } from '../../support/payer.ts';
import { listening } from '../../support/listening.ts';

const chain = useChain();
const job = '/x402/jobs/1/0';
const body = JSON.stringify({ prompt: 'a cat' });
const json = { 'content-type': 'application/json' };
const inputSchema = {
  type: 'object',
  properties: { prompt: { $ref: '#/$defs/text' } },
  required: ['prompt'],
  $defs: { text: { type: 'string', maxLength: 20 } },
  examples: [{ prompt: 'a house' }],
};
const outputSchema = { type: 'object', properties: { url: { type: 'string' } }, required: ['url'] };

interface Asked {
  readonly path: string;
  readonly paymentPayload: PaymentPayload;
  readonly paymentRequirements: PaymentRequirements;
}

/** A gateway whose requests to the facilitator are recorded. */
async function start(policy = '', options: Partial<TestGatewayOptions> = {}) {
  const asked: Asked[] = [];
  const forward = async (request: http.IncomingMessage, response: http.ServerResponse) => {
    const text = await Array.fromAsync(request, String).then((parts) => parts.join(''));
    if (text !== '') asked.push({ path: request.url ?? '', ...(JSON.parse(text) as Omit<Asked, 'path'>) });
    const answer = await fetch(chain.facilitatorUrl + request.url, {
      method: request.method ?? 'GET',
      headers: json,
      ...(text === '' ? {} : { body: text }),
    });
    response.writeHead(answer.status, json).end(await answer.text());
  };
  const server = http.createServer((request, response) => void forward(request, response));
  const facilitatorUrl = await listening(server);
  const gateway = await startTestGateway({
    database: await createDatabase(),
    chain,
    facilitatorUrl,
    jobs: `[job_prices.1]
0 = "1000000000000000"
[[job_policies]]
service_id = 1
job_index = 0
invocation_mode = "public_paid"
input_schema_file = "in.json"
output_schema_file = "out.json"
description = "Draws what you describe"
${policy}`,
    files: { 'in.json': JSON.stringify(inputSchema), 'out.json': JSON.stringify(outputSchema) },
    ...options,
  });
  return { asked, gateway };
}

const extensionsOf = (offer: unknown) => (offer as PaymentRequired).extensions ?? {};

test('a payment of the official client carries the job to the facilitator, whose own reader lists it with its schemas', async () => {
  const { asked, gateway } = await start();
  const offer = offerOf(await gateway.post(job, { body, headers: json }));
  expect(validateDiscoveryExtension(extensionsOf(offer)['bazaar'] as never)).toEqual({ valid: true });
  const client = x402Client.fromConfig({
    schemes: [{ network: 'eip155:*', client: new ExactEvmScheme(payer) }],
    spendControls: false,
  });
  const paid = await wrapFetchWithPayment(fetch, client)(gateway.url + job, {
    method: 'POST',
    body,
    headers: json,
  });
  expect(paid.status).toBe(202);
  expect(asked.map(({ path }) => path)).toEqual(['/verify', '/settle']);
  for (const { paymentPayload, paymentRequirements } of asked) {
    expect(extractDiscoveryInfo(paymentPayload, paymentRequirements)).toMatchObject({
      resourceUrl: gateway.url + job,
      description: 'Draws what you describe',
      method: 'POST',
      discoveryInfo: {
        input: { bodyType: 'json', body: { prompt: 'a house' } },
        output: { example: { url: '' } },
      },
    });
  }
});

test("a client's extensions reach the facilitator unchanged, but not the client's entry for our job", async () => {
  const { asked, gateway } = await start();
  const offer = offerOf(await gateway.post(job, { body, headers: json }));
  const unknown = { info: { any: [1, null, { é: 'ü' }] }, schema: { type: 'object' } };
  const extensions = { 'of-tomorrow': unknown, bazaar: { info: { input: 'forged' }, schema: true } };
  const good = { ...(await signOffer(offer)), extensions };
  expect((await gateway.post(job, { body, headers: { ...json, ...header(good) } })).status).toBe(202);
  expect(asked).toHaveLength(2);
  for (const { paymentPayload } of asked)
    expect(paymentPayload.extensions).toEqual({
      'of-tomorrow': unknown,
      bazaar: extensionsOf(offer)['bazaar'],
    });
});

test('a job that is not discoverable has no entry, and its payments name neither an entry nor its address', async () => {
  const { asked, gateway } = await start('discoverable = false');
  const first = await gateway.post(job, { body, headers: json });
  expect(extensionsOf(offerOf(first))).not.toHaveProperty('bazaar');
  expect(first.json.accepts[0]).not.toHaveProperty('outputSchema');
  const extensions = { bazaar: { info: {}, schema: {} } };
  const payment = { ...(await signOffer(offerOf(first))), extensions };
  expect((await gateway.post(job, { body, headers: { ...json, ...header(payment) } })).status).toBe(202);
  expect(asked).toHaveLength(2);
  for (const { paymentPayload } of asked) {
    expect(paymentPayload).not.toHaveProperty('extensions');
    expect(paymentPayload).not.toHaveProperty('resource');
  }
});

test('a payment with extensions that no peer reads harms nothing', async () => {
  const { asked, gateway } = await start();
  for (const [name, extensions, status] of [
    ['nested beyond any use', { deep: JSON.parse('['.repeat(3_000) + ']'.repeat(3_000)) as unknown }, 202],
    ['that are no object', 'text', 202],
    ['of 100 KB', { large: 'x'.repeat(100_000) }, 431],
    ['over the longest payment', { large: 'x'.repeat(12_500) }, 402],
  ] as const) {
    asked.length = 0;
    const offer = offerOf(await gateway.post(job, { body, headers: json }));
    const payment = { ...(await signOffer(offer)), extensions };
    const answer = await gateway.post(job, { body, headers: { ...json, ...header(payment) } });
    expect([name, answer.status, asked.length]).toEqual([name, status, status === 202 ? 2 : 0]);
  }
});

const signingKey = '5e'.repeat(32);
const signing = (format: string, rest = '') => ({
  env: { OFFER_KEY: signingKey },
  tables: `[offer_receipt]\nformat = "${format}"\nkey = "env:OFFER_KEY"\n${rest}`,
});

/** What the official package takes out of an offer, verified with the DID document of the gateway. */
async function verifiedOffers(offer: PaymentRequired) {
  const signed = decodeSignedOffers(extractOffersFromPaymentRequired(offer));
  for (const each of signed) {
    const { signedOffer } = each;
    if (signedOffer.format === 'jws') await verifyOfferSignatureJWS(signedOffer);
    else await verifyOfferSignatureEIP712(signedOffer);
    expect(findAcceptsObjectFromSignedOffer(each, offer.accepts)).toEqual(
      offer.accepts[each.acceptIndex ?? -1],
    );
  }
  return signed;
}

test.each(['eip712', 'jws'] as const)(
  'in %s each way to pay is signed, the payment gets a signed receipt of it, and its repetition the same one',
  async (format) => {
    const { asked, gateway } = await start('', signing(format));
    const first = await gateway.post(job, { body, headers: json });
    const offer = offerOf(first) as unknown as PaymentRequired;
    const check = await documentOf(gateway);
    expect(check('POST', job, first)).toEqual([]);
    const offers = await verifiedOffers(offer);
    expect(offers.map(({ acceptIndex, amount, asset }) => ({ acceptIndex, amount, asset }))).toEqual(
      offer.accepts.map(({ amount, asset }, acceptIndex) => ({ acceptIndex, amount, asset })),
    );
    expect(offers[0]?.validUntil).toBeLessThanOrEqual(Date.parse(first.json.quote_expires_at) / 1_000);
    const again = offerOf(await gateway.post(job, { body, headers: json })) as unknown as PaymentRequired;
    expect(extractOffersFromPaymentRequired(again)).toEqual(extractOffersFromPaymentRequired(offer));

    // the official client echoes them, and the facilitator gets them
    let sent: RequestInit['headers'];
    const noting: typeof fetch = (input, init) => {
      const request = new Request(input, init);
      sent = request.headers;
      return fetch(request);
    };
    const client = x402Client.fromConfig({
      schemes: [{ network: 'eip155:*', client: new ExactEvmScheme(payer) }],
      spendControls: false,
    });
    const init = { method: 'POST', body, headers: json };
    const paid = await wrapFetchWithPayment(noting, client)(gateway.url + job, init);
    expect(paid.status).toBe(202);
    expect(asked[0]?.paymentPayload.extensions?.['offer-receipt']).toEqual(
      again.extensions?.['offer-receipt'],
    );

    const receipt = extractReceiptFromResponse(paid);
    if (!receipt || !offers[0]) throw new Error('no receipt');
    expect(verifyReceiptMatchesOffer(receipt, offers[0], [payer.address])).toBe(true);
    expect(verifyReceiptMatchesOffer(receipt, offers[0], [`0x${'1'.repeat(40)}`])).toBe(false);
    const payload = extractReceiptPayload(receipt);
    expect(payload).toEqual({
      version: 1,
      network: 'eip155:84532',
      resourceUrl: gateway.url + job,
      payer: payer.address.toLowerCase(),
      issuedAt: expect.any(Number),
      ...(format === 'eip712' ? { transaction: '' } : {}),
    });
    expect(
      check('POST', job, { status: paid.status, headers: paid.headers, text: await paid.text() }),
    ).toEqual([]);
    const did = await gateway.get('/.well-known/did.json');
    expect(check('GET', '/.well-known/did.json', did)).toEqual([]);
    // the package gets the key of a signature in JWS from the document by itself
    const signer =
      receipt.format === 'eip712'
        ? `"eip155:1:${(await verifyReceiptSignatureEIP712(receipt)).signer.toLowerCase()}"`
        : (await verifyReceiptSignatureJWS(receipt)) && '"Ed25519"';
    expect(did.text).toContain(signer);
    expect(did.text).not.toContain(signingKey);

    const repeated = await fetch(gateway.url + job, { ...init, headers: sent ?? {} });
    expect([repeated.status, repeated.headers.get('idempotent-replayed')]).toEqual([202, 'true']);
    expect(extractReceiptFromResponse(repeated)).toEqual(receipt);
  },
);

test('a client of version 1 gets a receipt too, and none names the transaction, which shows the amount', async () => {
  const { gateway } = await start('', signing('eip712'));
  const offer = offerOf(await gateway.post(job, { body, headers: json }));
  const paid = await gateway.post(job, { body, headers: { ...json, ...v1Header(await signOffer(offer)) } });
  expect(paid.status).toBe(202);
  const settled = decodePaymentResponseHeader(paid.headers.get('x-payment-response') ?? '');
  expect(settled.extensions?.['offer-receipt']).toMatchObject({
    info: { receipt: { payload: { transaction: '' } } },
  });
});

test('nothing is signed and no key is published where the operator has not asked for it', async () => {
  const { gateway } = await start();
  const offer = offerOf(await gateway.post(job, { body, headers: json }));
  expect(extensionsOf(offer)).not.toHaveProperty('offer-receipt');
  const paid = await gateway.post(job, { body, headers: { ...json, ...header(await signOffer(offer)) } });
  expect(decodePaymentResponseHeader(paid.headers.get('payment-response') ?? '')).not.toHaveProperty(
    'extensions',
  );
  expect(await gateway.get('/.well-known/did.json')).toMatchObject({
    status: 404,
    json: { code: 'not_found' },
  });
});
