import {
  createPublicClient,
  encodeAbiParameters,
  encodeFunctionData,
  http,
  serializeErc6492Signature,
} from 'viem';
import { generatePrivateKey, privateKeyToAccount } from 'viem/accounts';
import { beforeAll, describe, expect, onTestFinished, test } from 'vitest';
import type { Address, Hex } from '../../../src/base/values/primitives.ts';
import { devnetAddress, devnetKeys } from '../../../src/devnet/accounts.ts';
import { smartWallet, walletFactory } from '../../../src/devnet/contracts.ts';
import { callAsAnyone, readAt } from '../../../src/devnet/deploy.ts';
import { startFacilitator } from '../../../src/devnet/facilitator.ts';
import { deployCode } from '../../support/answering-contract.ts';
import { deployContract } from '../../support/contracts.ts';
import { createDatabase } from '../../support/database.ts';
import { useChain } from '../../support/devnet.ts';
import { startFacilitatorProxy } from '../../support/facilitator-proxy.ts';
import { payTo, startTestGateway, type TestGateway, type TestGatewayOptions } from '../../support/gateway.ts';
import { allEvents, expectSoundLedger } from '../../support/invariants.ts';
import { header, quoteAndSign, type Payment, v1Header } from '../../support/payer.ts';
import { startRpcProxy } from '../../support/rpc-proxy.ts';
import { eventually } from '../../support/wait.ts';

const chain = useChain();
const job = '/x402/jobs/1/0';
const price = 3_264_000n;
let factory: Address;
beforeAll(async () => {
  factory = await deployContract(chain.rpcUrl, walletFactory, []);
});

/** A gateway whose facilitator deploys wallets through the factory; it is told of it, and of others, by its configuration. */
async function start({
  factories = [factory],
  ...options
}: Partial<TestGatewayOptions> & { readonly factories?: readonly Address[] } = {}) {
  const { rpcUrl, chain: local } = chain;
  const deploying = await startFacilitator({
    rpcUrl,
    chainId: local.chainId,
    privateKey: devnetKeys.facilitator,
    walletFactories: [factory],
    port: 0,
  });
  onTestFinished(() => deploying.close());
  const proxy = await startFacilitatorProxy(deploying.url);
  const database = await createDatabase();
  const gateway = await startTestGateway({
    database,
    chain,
    facilitators: [proxy.url],
    change: (text) => withFactories(text, factories),
    ...options,
  });
  const count = (operation: string) => proxy.seen.filter((seen) => seen === operation).length;
  const startedBy = async () =>
    (await allEvents(database.db)).flatMap((event) =>
      event.type === 'settlement_started' ? [event.data.payment.signature] : [],
    );
  const expectSound = () => database.asOwner((owner) => expectSoundLedger(database.db, owner));
  return { proxy, database, gateway, count, startedBy, expectSound };
}

/** The last facilitator of a configuration deploys through these. */
function withFactories(text: string, factories: readonly Address[]): string {
  const last = text.lastIndexOf('[[facilitators]]');
  const key = `[[facilitators]]\nwallet_factories = ${JSON.stringify(factories)}`;
  return text.slice(0, last) + text.slice(last).replace('[[facilitators]]', key);
}

/** A wallet with money and without code. */
async function newWallet() {
  const owner = privateKeyToAccount(generatePrivateKey());
  const [of, artifact] = [{ address: factory, args: [owner.address] }, walletFactory];
  const address = String(await readAt(chain.rpcUrl, { ...of, artifact, functionName: 'addressOf' }));
  const wallet = address.toLowerCase() as Address;
  await chain.mint(wallet, 10n * price);
  const data = encodeFunctionData({ abi: walletFactory.abi, functionName: 'deploy', args: [owner.address] });
  const deploy = () =>
    callAsAnyone(
      { url: chain.rpcUrl, chainId: chain.chain.chainId },
      { ...of, artifact, functionName: 'deploy' },
    );
  return { owner, wallet, data, deploy };
}
type Wallet = Awaited<ReturnType<typeof newWallet>>;

const isDeployed = async (wallet: Address): Promise<boolean> =>
  (await createPublicClient({ transport: http(chain.rpcUrl) }).getCode({ address: wallet })) !== undefined;

interface Wrapper {
  readonly address?: Address;
  readonly data?: Hex;
  /** Who signs, in place of the owner. */
  readonly signer?: Wallet['owner'];
  readonly wrap?: (signature: Hex) => Hex;
}

/** A payment of a wallet, as clients of undeployed wallets sign it, and with what is changed. */
async function signWrapped(gateway: TestGateway, { owner, wallet, data }: Wallet, change: Wrapper = {}) {
  const payment = await quoteAndSign(gateway, job, 'x', {
    account: change.signer ?? owner,
    signed: { from: wallet },
  });
  const own = payment.payload.signature as Hex;
  const wrap = (signature: Hex) =>
    serializeErc6492Signature({ address: change.address ?? factory, data: change.data ?? data, signature });
  payment.payload.signature = change.wrap ? change.wrap(wrap(own)) : wrap(own);
  return { payment, unwrapped: withSignature(payment, own) };
}

function withSignature(payment: Payment, signature: string): Payment {
  return { ...payment, payload: { ...payment.payload, signature } };
}

const send = (gateway: TestGateway, payment: Payment) =>
  gateway.post(job, { body: 'x', headers: header(payment) });

test('a wallet that is not deployed yet pays once: the facilitator gets its signature as it came and deploys it, and the payment is known however it is presented again', async () => {
  const { gateway, proxy, count, startedBy, database, expectSound } = await start();
  const wallet = await newWallet();
  const { payment, unwrapped } = await signWrapped(gateway, wallet);
  const asked: unknown[] = [];
  proxy.admits = ({ body }) => {
    if (body.length > 0) asked.push(JSON.parse(String(body)).paymentPayload.payload.signature);
    return true;
  };
  expect(await isDeployed(wallet.wallet)).toBe(false);
  const before = await chain.balance(payTo);
  const paid = await send(gateway, payment);
  expect(paid.status).toBe(202);
  expect(await isDeployed(wallet.wallet)).toBe(true);
  expect(asked).toEqual([payment.payload.signature, payment.payload.signature]);
  expect(await startedBy()).toEqual([payment.payload.signature]);
  for (const again of [payment, unwrapped]) {
    const answer = await send(gateway, again);
    expect([answer.status, answer.json]).toEqual([202, paid.json]);
  }
  expect([count('settle'), await chain.balance(payTo)]).toEqual([1, before + price]);
  const verified = (await allEvents(database.db)).filter(({ type }) => type === 'payment_verified');
  expect(verified).toMatchObject([{ data: { signed_by: 'contract' } }]);
  await expectSound();
});

test('a version 1 payment of a wallet that is not deployed yet is found to be in the token that it was signed for', async () => {
  const { gateway, startedBy } = await start();
  const wallet = await newWallet();
  const { payment } = await signWrapped(gateway, wallet);
  const paid = await gateway.post(job, { body: 'x', headers: v1Header(payment) });
  expect([paid.status, await startedBy()]).toEqual([202, [payment.payload.signature]]);
  expect(await chain.balance(wallet.wallet)).toBe(9n * price);
});

test('without a facilitator that deploys wallets the payment is refused before one is asked, and nothing is charged; once deployed, the wallet pays with a wrapped signature', async () => {
  const { gateway, count, startedBy, expectSound } = await start({ factories: [] });
  const wallet = await newWallet();
  const refused = await send(gateway, (await signWrapped(gateway, wallet)).payment);
  expect(refused).toMatchObject({ status: 402, json: { code: 'wallet_not_deployed' } });
  expect(refused.json.error).toContain('Deploy the wallet');
  expect([count('verify'), await startedBy()]).toEqual([0, []]);
  await wallet.deploy();
  const forged = await signWrapped(gateway, wallet, { signer: privateKeyToAccount(generatePrivateKey()) });
  expect(await send(gateway, forged.payment)).toMatchObject({
    status: 402,
    json: { reason: 'invalid_exact_evm_signature' },
  });
  expect(count('verify')).toBe(0);
  expect((await send(gateway, (await signWrapped(gateway, wallet)).payment)).status).toBe(202);
  await expectSound();
});

test('of several facilitators only one that deploys through the factory of a payment verifies and settles it', async () => {
  const plain = await startFacilitatorProxy(chain.facilitatorUrl);
  const deploying = await startFacilitator({
    rpcUrl: chain.rpcUrl,
    chainId: chain.chain.chainId,
    privateKey: devnetKeys.facilitator,
    walletFactories: [factory],
    port: 0,
  });
  onTestFinished(() => deploying.close());
  const { gateway, startedBy, database } = await start({ facilitators: [plain.url, deploying.url] });
  const { payment } = await signWrapped(gateway, await newWallet());
  expect((await send(gateway, payment)).status).toBe(202);
  expect([plain.seen.filter((one) => one !== 'supported'), (await startedBy()).length]).toEqual([[], 1]);
  const started = (await allEvents(database.db)).filter(({ type }) => type === 'settlement_started');
  expect(started).toMatchObject([{ data: { facilitator: new URL(deploying.url).host } }]);
});

test('with verify skipped the gateway alone checks the signature of a wallet that is not deployed yet', async () => {
  const { gateway, count } = await start({ top: 'facilitator_verify = false' });
  const wallet = await newWallet();
  const stranger = privateKeyToAccount(generatePrivateKey());
  const forged = await signWrapped(gateway, wallet, { signer: stranger });
  expect((await send(gateway, forged.payment)).status).toBe(402);
  expect((await send(gateway, (await signWrapped(gateway, wallet)).payment)).status).toBe(202);
  expect([count('verify'), count('settle')]).toEqual([0, 1]);
});

test('a settlement that deployed the wallet and whose answer was lost is resolved: it delivers, and pays once', async () => {
  const { gateway, proxy, expectSound } = await start({ top: 'confirm = "after"' });
  proxy.faults.settle = 'cut_after';
  const wallet = await newWallet();
  const { payment } = await signWrapped(gateway, wallet);
  const first = await send(gateway, payment);
  expect([202, 503]).toContain(first.status);
  await eventually(async () => expect((await send(gateway, payment)).status).toBe(202));
  expect(await chain.balance(wallet.wallet)).toBe(9n * price);
  await expectSound();
});

describe('a client that signs to do harm', () => {
  const hostile = {
    reverts: '0x60006000fd',
    'reverts with 300 KB': '0x6204b0006000fd',
    'burns its gas': '0x5b600056',
    'answers with junk': '0x60206000f3',
    'has bad code': '0xfe',
    'does nothing': '0x00',
  } as const;

  test('gets a refusal that charges nothing and asks no facilitator, also with a factory that is trusted', async () => {
    const codes: (readonly [string, Address])[] = [];
    for (const [name, code] of Object.entries(hostile))
      codes.push([name, await deployCode(chain.rpcUrl, code)]);
    const ordinary = privateKeyToAccount(devnetKeys.payer);
    const wallet = await newWallet();
    const others = await newWallet();
    const factories = [factory, ...codes.map(([, address]) => address)];
    const { gateway, count, startedBy, expectSound } = await start({ factories });
    const ofOrdinary = { ...wallet, owner: ordinary, wallet: devnetAddress('payer') };
    const invalid = 'invalid_exact_evm_signature';
    const cases: readonly (readonly [string, Wallet, Wrapper, string])[] = [
      ...codes.map(([name, address]) => [`a factory that ${name}`, wallet, { address }, invalid] as const),
      ['the key of another account', wallet, { signer: ordinary }, invalid],
      ["another wallet's deployment", wallet, { data: others.data }, invalid],
      ['a call that the factory does not have', wallet, { data: '0xdeadbeef' }, invalid],
      ['calldata of 3 KB', wallet, { data: `0x${'ff'.repeat(3_000)}` }, invalid],
      ["an ordinary account's signature", ofOrdinary, {}, invalid],
      [
        'a wrapper in a wrapper',
        wallet,
        {
          wrap: (signature) => serializeErc6492Signature({ address: factory, data: wallet.data, signature }),
        },
        'malformed_wrapped_signature',
      ],
      [
        'another encoding',
        wallet,
        { wrap: (signature) => `0x${'1'.repeat(24)}${signature.slice(26)}` },
        'malformed_wrapped_signature',
      ],
      ['more than 4 KiB', wallet, { data: `0x${'ff'.repeat(4_096)}` }, 'malformed_signature'],
      ['the token as the factory', wallet, { address: chain.token }, 'not_deployed'],
      ['the payee as the factory', wallet, { address: payTo }, 'not_deployed'],
      ['the facilitator as the factory', wallet, { address: devnetAddress('facilitator') }, 'not_deployed'],
      ['the wallet as the factory', wallet, { address: wallet.wallet }, 'not_deployed'],
    ];
    for (const [name, payer, change, reason] of cases) {
      const { payment } = await signWrapped(gateway, payer, change);
      const { status, json } = await send(gateway, payment);
      expect([name, status, json.reason]).toEqual([name, 402, reason]);
    }
    expect([count('verify'), await startedBy()]).toEqual([0, []]);
    expect(await isDeployed(wallet.wallet)).toBe(false);
    await expectSound();
  });

  test('has no factory called in the name of the node that the configuration does not name', async () => {
    const rpc = await startRpcProxy(chain.rpcUrl);
    const { gateway } = await start({
      chain: { ...pick(), rpcUrl: rpc.url },
    });
    const wallet = await newWallet();
    const address = await deployCode(chain.rpcUrl, '0x00');
    let calls = 0;
    rpc.lie = ({ method, params: [call] }) => {
      if (method === 'eth_call' && (call as { to?: string }).to === undefined) calls += 1;
      return undefined;
    };
    const { payment } = await signWrapped(gateway, wallet, { address });
    expect((await send(gateway, payment)).json.code).toBe('wallet_not_deployed');
    expect(calls).toBe(0);
    expect((await send(gateway, (await signWrapped(gateway, wallet)).payment)).status).toBe(202);
    expect(calls).toBe(1);
  });
});

const pick = () => {
  const { rpcUrl, facilitatorUrl, token, secondToken } = chain;
  return { rpcUrl, facilitatorUrl, token, secondToken };
};

test('while the node fails or gives no usable answer the payment is 503, not a refusal, and the same payment is taken afterwards', async () => {
  const rpc = await startRpcProxy(chain.rpcUrl);
  const { gateway, count, startedBy } = await start({ chain: { ...pick(), rpcUrl: rpc.url } });
  const { payment } = await signWrapped(gateway, await newWallet());
  const answers: readonly object[] = [
    { error: { code: -32_005, message: 'request rate limited' } },
    { result: '0x' },
    { result: encodeAbiParameters([{ type: 'uint256' }], [1n]) },
    { result: smartWallet.deployedBytecode },
    { result: null },
  ];
  for (const answer of answers) {
    rpc.lie = ({ method, params: [call] }) =>
      // a call without an address runs the validator
      method === 'eth_call' && (call as { to?: string }).to === undefined ? answer : undefined;
    expect(await send(gateway, payment)).toMatchObject({
      status: 503,
      json: { code: 'facilitator_unavailable' },
    });
  }
  rpc.lie = ({ method }) =>
    method === 'eth_getCode' ? { error: { code: -32_000, message: 'header not found' } } : undefined;
  expect((await send(gateway, payment)).status).toBe(503);
  expect([count('verify'), await startedBy()]).toEqual([0, []]);
  rpc.lie = () => undefined;
  expect((await send(gateway, payment)).status).toBe(202);
});
