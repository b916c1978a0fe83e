import { ExactEvmScheme } from '@x402/evm/exact/client';
import { x402Client } from '@x402/fetch';
import { generatePrivateKey } from 'viem/accounts';
import { expect, test } from 'vitest';
import { payForOneJob } from '../../../src/devnet/client.ts';
import { plainToken } from '../../../src/devnet/contracts.ts';
import { deployedAddress, readAt } from '../../../src/devnet/deploy.ts';
import { permit2Address } from '../../../src/payments/rules/schemes/permit2/signature-transfer.ts';
import { type GasSponsoringKey, gasSponsoringKeys } from '../../../src/base/values/gas-sponsoring.ts';
import { useChain } from '../../support/devnet.ts';
import { payTo } from '../../support/gateway.ts';
import { expectIndependent, verifyIndependently } from '../../support/independent.ts';
import { expectSoundLedger } from '../../support/invariants.ts';
import { accountOf, offerOf, type Payment } from '../../support/payer.ts';
import { exportSealed } from '../../support/reconcile.ts';
import { behindProxy, job, pay, price, reaches, receiptOf } from './settlement-support.ts';

const chain = useChain();
const token = deployedAddress(5);

const withPlainToken = (text: string): string => `${text}
[[accepted_tokens]]
network = "eip155:84532"
asset = "${token}"
symbol = "PUSD"
decimals = 6
pay_to = "${payTo}"
transfer_method = "permit2"
eip712_name = "Plain Dollar"
eip712_version = "1"
`;

/** A payer who has the price, no ether, and has approved nothing; and a facilitator that submits approvals in this way alone. */
async function start(way: GasSponsoringKey = 'eip2612GasSponsoring') {
  const only = { change: (answer: Record<string, unknown>) => ({ ...answer, extensions: [way] }) };
  const behind = await behindProxy(chain, { change: withPlainToken, faults: { supported: only } });
  const privateKey = generatePrivateKey();
  const account = accountOf(privateKey);
  await chain.mint(account.address, price, token);
  return { ...behind, privateKey, account };
}

test.each([
  ['EIP-2612 permit', 'eip2612GasSponsoring', 0n],
  ['approving transaction', 'erc20ApprovalGasSponsoring', 2n ** 256n - 1n],
] as const)(
  'a payer without ether pays by Permit2 with the official client: the facilitator submits the %s that it signs',
  async (_, way, left) => {
    const { gateway, privateKey, account, database } = await start(way);
    const before = await chain.balance(payTo, token);
    const paid = await payForOneJob({
      gatewayUrl: gateway.url,
      privateKey,
      serviceId: 1,
      jobIndex: 0,
      body: 'hello',
      transferMethod: 'permit2',
      rpcUrl: chain.rpcUrl,
    });
    expect(paid.result.toString()).toBe('did hello');
    expect(await chain.balance(payTo, token)).toBe(before + price);
    const allowance = { address: token, artifact: plainToken, functionName: 'allowance' } as const;
    expect(await readAt(chain.rpcUrl, { ...allowance, args: [account.address, permit2Address] })).toBe(left);
    const events = await database.asOwner((owner) => expectSoundLedger(database.db, owner));
    expect(events.find(({ type }) => type === 'payment_settled')?.data).toMatchObject({ evidence: 'chain' });
    const { file, checkpoint } = await exportSealed(database);
    expectIndependent(await verifyIndependently(file, [checkpoint]), true);
  },
);

test.each(gasSponsoringKeys)(
  'a payment that never reached the chain is settled again with the approval that came with it (%s)',
  async (way) => {
    const { proxy, gateway, account, hurry, database } = await start(way);
    const client = x402Client.fromConfig({
      schemes: [{ network: 'eip155:*', client: new ExactEvmScheme(account, { rpcUrl: chain.rpcUrl }) }],
      spendControls: false,
      policies: [(_, offers) => offers.filter(({ asset }) => asset === token)],
    });
    const offer = offerOf(await gateway.post(job, { body: 'x' }));
    const payment = (await client.createPaymentPayload(offer as never)) as unknown as Payment;
    expect(payment).toMatchObject({
      extensions: { [way]: { info: { from: account.address } } },
    });
    proxy.faults.settle = 'cut_before';
    expect((await pay(gateway, payment)).status).toBe(503);
    delete proxy.faults.settle;
    await hurry();
    await reaches(gateway, payment, 'completed', database);
    expect(await receiptOf(gateway, payment)).toMatchObject({ paid: true });
  },
);

test('an offer says which approvals a facilitator submits only where a token is paid with by Permit2', async () => {
  const { gateway } = await start();
  const { gateway: other } = await behindProxy(chain);
  const extensionsOf = async (of: typeof gateway) =>
    Object.keys(offerOf(await of.post(job, { body: 'x' })).extensions ?? {});
  expect(await extensionsOf(gateway)).toContain('eip2612GasSponsoring');
  expect(await extensionsOf(other)).not.toContain('eip2612GasSponsoring');
});
