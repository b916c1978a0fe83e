import { frozenMap } from '../../../src/base/config/freeze.ts';
import { type ServiceError, status } from '@grpc/grpc-js';
import { Reader } from 'protobufjs';
import { expect, test } from 'vitest';
import { hashTypedData, recoverAddress } from 'viem';
import { bytesToHex, hexToBytes } from 'viem/utils';
import {
  optionHash,
  type Quote,
  quoteDigest,
  quoteTypedData,
  zeroAddress,
  zeroHash,
} from '../../../src/payments/rules/quote.ts';
import { randomHex32 } from '../../../src/base/runtime/random-hex.ts';
import { type QuoteSigner, type X402Option } from '../../../src/app/pricing/index.ts';
import { keccak256 } from '../../../src/base/values/keccak.ts';
import {
  grpcClient,
  operator,
  option,
  type PriceAnswer,
  prices,
  route,
  startPricing,
} from '../../support/pricing.ts';

const nowSecs = (): number => Math.floor(Date.now() / 1_000);
const requester = Buffer.alloc(20, 0xab);
const inputsHash = Buffer.alloc(32, 0x1f);

const endpoint = 'https://gateway.example/x402/jobs/1/0?quote=token';

/** Issues as a gateway would, with the fields that a test changes. */
function issuer(change: Partial<Quote> = {}): X402Option {
  return {
    issue(request) {
      const issuedAt = nowSecs();
      const quote: Quote = {
        ...request,
        priceWei: 10n ** 15n,
        options: [option],
        issuedAt,
        expiresAt: issuedAt + 300,
        salt: randomHex32(),
        isSummarised: false,
        ...change,
      };
      return Promise.resolve({ kind: 'issued', quote, digest: quoteDigest(quote), endpoint });
    },
  };
}

/** What the operator signed, from the answer alone and with viem's encoder. */
function digestOf({ quote_details: details }: PriceAnswer): string {
  return hashTypedData({
    ...quoteTypedData,
    message: {
      serviceId: BigInt(details.service_id ?? 0),
      jobIndex: Number(details.job_index ?? 0),
      priceWei: BigInt(bytesToHex(details.price)),
      optionsHash: bytesToHex(details.options_hash),
      requester: details.requester ? bytesToHex(details.requester) : zeroAddress,
      inputsHash: details.inputs_hash ? bytesToHex(details.inputs_hash) : zeroHash,
      issuedAt: BigInt(details.timestamp),
      expiresAt: BigInt(details.expiry),
      salt: bytesToHex(details.salt),
    },
  });
}

async function expectSigned(answer: PriceAnswer): Promise<void> {
  const hash = digestOf(answer) as `0x${string}`;
  expect(bytesToHex(answer.quote_details.digest)).toBe(hash);
  const signer = await recoverAddress({ hash, signature: bytesToHex(answer.signature) });
  expect(signer.toLowerCase()).toBe(operator.address);
  expect(bytesToHex(answer.operator_id)).toBe(operator.address);
}

test('a client of another implementation gets a quote that the operator signed, without a word of x402', async () => {
  const ask = grpcClient((await startPricing()).url);
  const answer = await ask({ requester, inputs_hash: inputsHash });
  await expectSigned(answer);
  const { quote_details: details } = answer;
  expect(details).toMatchObject({ service_id: '1', requester, inputs_hash: inputsHash });
  expect(BigInt(bytesToHex(details.price))).toBe(10n ** 15n);
  expect(Number(details.expiry) - Number(details.timestamp)).toBe(300);
  for (const field of ['settlement_options', 'x402_endpoint', 'x402_refusal'])
    expect(answer).not.toHaveProperty(field);
  await expectSigned(await ask());
  expect((await ask()).quote_details.digest).not.toEqual((await ask()).quote_details.digest);
});

test('with the x402 option the answer has the settlement options and the endpoint of exactly the issued quote', async () => {
  const answer = await grpcClient((await startPricing({ x402: issuer() })).url)({ requester });
  await expectSigned(answer);
  expect(answer.x402_endpoint).toBe(endpoint);
  const { amount, transferMethod, payTo, eip712Name, eip712Version, ...same } = option;
  const sent = { pay_to: payTo, transfer_method: transferMethod, scheme: 'exact' };
  const domain = { eip712_name: eip712Name, eip712_version: eip712Version };
  expect(answer.settlement_options).toEqual([{ ...same, ...sent, ...domain, amount: String(amount) }]);
  const hashes = keccak256(hexToBytes(optionHash(option)));
  expect(bytesToHex(answer.quote_details.options_hash)).toBe(bytesToHex(hashes));
});

/** The numbers of the fields of a message, as they are on the wire. */
function fieldsOf(message: Uint8Array): number[] {
  const reader = Reader.create(message);
  const fields = new Set<number>();
  while (reader.pos < reader.len) {
    const tag = reader.uint32();
    fields.add(tag >>> 3);
    reader.skipType(tag & 7);
  }
  return [...fields];
}

const send = (url: string, type: string, body: string | Uint8Array<ArrayBuffer>) =>
  fetch(url + route, { method: 'POST', body, headers: { 'content-type': type } });
const json = 'application/json';

test('without the x402 option its fields are absent on the wire; with it they are there', async () => {
  const request = Uint8Array.of(8, 1);
  const bare = await send((await startPricing()).url, 'application/proto', request);
  expect(fieldsOf(await bare.bytes())).toEqual([1, 2, 3]);
  const sold = await send((await startPricing({ x402: issuer() })).url, 'application/proto', request);
  expect(fieldsOf(await sold.bytes())).toEqual([1, 2, 3, 4, 5]);
  const x402: X402Option = { issue: async () => ({ kind: 'refused', code: 'no_current_rate' }) };
  const refused = await send((await startPricing({ x402 })).url, 'application/proto', request);
  expect(fieldsOf(await refused.bytes())).toEqual([1, 2, 3, 6]);
});

test('the same port answers Connect with JSON over HTTP/1.1, and gRPC-Web', async () => {
  const { url } = await startPricing();
  const answer = await send(url, json, '{"serviceId":"1","jobIndex":"0"}');
  const priced = (await answer.json()) as { quoteDetails: { price: string }; operatorId: string };
  expect(answer.status).toBe(200);
  expect(Buffer.from(priced.quoteDetails.price, 'base64').toString('hex')).toBe('038d7ea4c68000');
  expect(Object.keys(priced).toSorted()).toEqual(['operatorId', 'quoteDetails', 'signature']);
  const web = await send(url, 'application/grpc-web+proto', Uint8Array.of(0, 0, 0, 0, 2, 8, 1));
  expect(Buffer.from(await web.arrayBuffer()).toString('latin1')).toContain('grpc-status: 0');
  expect((await fetch(`${url}/`)).status).toBe(404);
});

test.each([
  [{ service_id: 9 }, status.NOT_FOUND, 'job 9/0 (service_id/job_index) has no price'],
  [
    { requester: Buffer.alloc(19, 1) },
    status.INVALID_ARGUMENT,
    'requester must have 20 bytes or none, not 19',
  ],
  [
    { requester: Buffer.alloc(20) },
    status.INVALID_ARGUMENT,
    // with a colon, which grpc-js leaves encoded if it is
    'requester must not be zero: leave it empty',
  ],
  [{ inputs_hash: Buffer.alloc(31, 1) }, status.INVALID_ARGUMENT, 'inputs_hash must have 32 bytes or none'],
  [{ service_id: '18446744073709551615' }, status.INVALID_ARGUMENT, 'service_id must be at most'],
  [{ job_index: '4294967296' }, status.INVALID_ARGUMENT, 'job_index must be at most'],
])('a request that is out of range is refused: %j', async (request, code, words) => {
  const ask = grpcClient((await startPricing()).url);
  const error = await ask(request).catch((reason: unknown) => reason as ServiceError);
  expect(error).toMatchObject({ code, details: expect.stringContaining(words) });
});

test('a message of 5 MB is refused, an unknown field is ignored, and the server continues', async () => {
  const { url } = await startPricing();
  const ask = grpcClient(url);
  const tooLarge = { code: status.RESOURCE_EXHAUSTED };
  await expect(ask({ requester: Buffer.alloc(5_000_000, 1) })).rejects.toMatchObject(tooLarge);
  const large = await send(url, json, `{"requester":"${'A'.repeat(5_000_000)}"}`).catch(() => undefined);
  expect([429, undefined]).toContain(large?.status);
  expect((await send(url, 'application/proto', Uint8Array.of(8, 1, 160, 6, 1))).status).toBe(200);
  expect((await send(url, 'application/proto', Uint8Array.of(8, 255))).status).toBe(500);
  expect((await send(url, json, '{"serviceId":1.5}')).status).toBe(400);
  await expectSigned(await ask());
});

const half = 0x7fffffffffffffffffffffffffffffff5d576e7357a4501ddfe92f46681b20a0n;
const order = 2n * half + 1n;
const failing: Record<string, QuoteSigner['sign']> = {
  'is late': () => new Promise(() => {}),
  throws: () => Promise.reject(new Error('the KMS is unreachable')),
  'signs another digest': (digest) => operator.sign(Uint8Array.from(digest, (byte) => byte ^ 1)),
  'returns zeros': () => Promise.resolve(new Uint8Array(65)),
  'returns too little': (digest) => operator.sign(digest).then((signed) => signed.subarray(0, 63)),
  'returns no bytes': () => Promise.resolve('0x12' as unknown as Uint8Array),
};

test.each(Object.entries(failing))('a signer that %s never leads to a wrong signature', async (_, sign) => {
  const lines: string[] = [];
  const log = { info() {}, error() {}, warn: (_fields: object, message: string) => void lines.push(message) };
  const signer = { address: operator.address, sign };
  const ask = grpcClient((await startPricing({ signer, signTimeoutMs: 50, log })).url);
  await expect(ask()).rejects.toMatchObject({ code: status.UNAVAILABLE });
  await expect(ask()).rejects.toMatchObject({ code: status.UNAVAILABLE });
  expect(lines).toEqual(['the signer gives no valid signature: no price is answered']);
});

const signHigh: QuoteSigner['sign'] = async (digest) => {
  const signed = Buffer.from(await operator.sign(digest));
  const s = order - BigInt(`0x${signed.toString('hex', 32, 64)}`);
  return Buffer.concat([signed.subarray(0, 32), Buffer.from(s.toString(16).padStart(64, '0'), 'hex')]);
};

test('of a signer that returns the higher s, as a KMS may, the signature has the lower one', async () => {
  const signer = { address: operator.address.toUpperCase().replace('X', 'x'), sign: signHigh };
  const answer = await grpcClient((await startPricing({ signer })).url)();
  await expectSigned(answer);
  expect(BigInt(`0x${answer.signature.toString('hex', 32, 64)}`)).toBeLessThanOrEqual(half);
});

const neverSigns: QuoteSigner = { ...operator, sign: () => expect.unreachable('it was signed') };

test.each([
  ['of another price', issuer({ priceWei: 1n })],
  ['for any requester', issuer({ requester: zeroAddress })],
  ['without options', issuer({ options: [] })],
  ['that is only counted', issuer({ isSummarised: true })],
  ['under another digest', { issue: async (r) => ({ ...(await issuer().issue(r)), digest: zeroHash }) }],
] as [string, X402Option][])('a quote %s that the gateway issues is not signed', async (_, x402) => {
  const ask = grpcClient((await startPricing({ x402, signer: neverSigns })).url);
  await expect(ask({ requester })).rejects.toMatchObject({ code: status.UNAVAILABLE });
});

test('a gateway that does not issue a quote in time delays no request', async () => {
  const errors: object[] = [];
  const log = { info() {}, warn() {}, error: (line: object) => void errors.push(line) };
  const x402: X402Option = { issue: () => new Promise(() => {}) };
  const options = { x402, issueTimeoutMs: 50, log };
  const ask = grpcClient((await startPricing(options, { limits: { maxWaiting: 1 } })).url);
  const late = { code: status.UNAVAILABLE, details: 'The request failed. Nothing was charged. Ask again.' };
  for (let nth = 0; nth < 3; nth++) await expect(ask()).rejects.toMatchObject(late);
  expect(errors).toHaveLength(3);
});

test('prices that do not fit into the digest are refused', async () => {
  for (const wei of [0n, -1n, 1n << 256n, 1.5 as unknown as bigint])
    await expect(startPricing({ prices: new Map([['1/0', wei]]) })).rejects.toThrow('the price of job 1/0');
  for (const key of ['1', '1-0', '1/0/0', '0x1/0'])
    await expect(startPricing({ prices: new Map([[key, 1n]]) })).rejects.toThrow(
      `the price of ${key} is never found`,
    );
  const table = { '1/0': 1n } as unknown as typeof prices;
  await expect(startPricing({ prices: table })).rejects.toThrow('prices must be a Map');
  const largest = new Map([...prices, ['1/0', (1n << 256n) - 1n] as const]);
  const answer = await grpcClient((await startPricing({ prices: largest })).url)();
  await expectSigned(answer);
  expect(answer.quote_details.price).toEqual(Buffer.alloc(32, 0xff));
});

test('the prices of a configuration, which are a map that cannot change, are taken unchanged', async () => {
  const answer = await grpcClient((await startPricing({ prices: frozenMap(prices) })).url)();
  expect(await expectSigned(answer)).toBeUndefined();
});

test('a server that stops answers what it has accepted and takes nothing more', async () => {
  const { promise: release, resolve } = Promise.withResolvers<void>();
  const { promise: isAsked, resolve: asked } = Promise.withResolvers<void>();
  const sign: QuoteSigner['sign'] = async (digest) => {
    asked();
    await release;
    return operator.sign(digest);
  };
  const server = await startPricing({ signer: { ...operator, sign } });
  const answer = grpcClient(server.url)();
  await isAsked;
  const stopped = server.stop();
  resolve();
  await expectSigned(await answer);
  expect(await stopped).toEqual({ requestsCut: 0 });
  await expect(fetch(server.url)).rejects.toThrow('fetch failed');
});
