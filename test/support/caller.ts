import { privateKeyToAccount } from 'viem/accounts';
import { callerMessage } from '../../src/payments/rules/caller-signature.ts';
import { devnetKeys } from '../../src/devnet/accounts.ts';
import type { TestChain } from './devnet.ts';
import type { payer } from './payer.ts';

export const permitted = privateKeyToAccount(devnetKeys.permittedCaller);
export const refusedCaller = privateKeyToAccount(devnetKeys.refusedCaller);

const policy = (index: number, mode: string, more = '') =>
  `[[job_policies]]\nservice_id = 1\njob_index = ${index}\ninvocation_mode = "${mode}"\n${more}`;

/** Job 1/0: the payer is the caller; 1/1: delegated; 1/2: delegated, disabled; 1/3: public; 1/4: disabled, unrestricted. */
export function restrictedJobs(chain: Pick<TestChain, 'rpcUrl' | 'registry'>, rpcUrl = chain.rpcUrl): string {
  const restriction = (mode: string) =>
    `auth_mode = "${mode}"\nnet_rpc_url = "${rpcUrl}"\nnet_contract = "${chain.registry}"`;
  return [
    `[job_prices.1]\n${[0, 1, 2, 3, 4].map((index) => `${index} = "1000000000000000"`).join('\n')}`,
    policy(0, 'restricted_paid', restriction('payer_is_caller')),
    policy(1, 'restricted_paid', restriction('delegated_caller_signature')),
    policy(2, 'disabled', restriction('delegated_caller_signature')),
    policy(3, 'public_paid'),
    policy(4, 'disabled'),
  ].join('\n');
}

interface Signing {
  readonly account?: typeof payer;
  readonly serviceId?: number;
  readonly jobIndex?: number;
  readonly nonce?: string;
  readonly expiry?: number;
}

/** The headers of a delegated caller over a body. */
export async function callerHeaders(body: string, signing: Signing = {}): Promise<Record<string, string>> {
  const { account = permitted, serviceId = 1, jobIndex = 1, nonce = crypto.randomUUID() } = signing;
  const expiry = signing.expiry ?? Math.floor(Date.now() / 1_000) + 300;
  const message = callerMessage({ serviceId, jobIndex }, Buffer.from(body), { nonce, expiry });
  return {
    'x-net-caller': account.address,
    'x-net-caller-sig': await account.signMessage({ message }),
    'x-net-caller-nonce': nonce,
    'x-net-caller-expiry': String(expiry),
  };
}
