import { describe, expect, test } from 'vitest';
import { hasBrowser, useBrowser } from '../../support/browser.ts';
import { useChain } from '../../support/devnet.ts';
import { newWallet } from '../../support/identity.ts';
import { eventsOf } from '../../support/top-up.ts';
import {
  type Customer,
  expectNothingCharged,
  openWithWallet,
  outcomeOf,
  press,
  signatures,
} from '../../support/top-up-page.ts';
import { startTour } from '../../support/tour.ts';
import { signTypedData, type TestWallet, type TypedData, WalletError } from '../../support/wallet.ts';

const chromium = useBrowser();
const chain = useChain();
const added = '10.00 USD were added: you can spend 10.00 USD now.';
const rejects = (): never => {
  throw new WalletError(4001, 'User rejected the request.');
};

type Opened = Customer & { readonly wallet: TestWallet };

/** Signs something else than it is asked to. */
function signs(account: TestWallet['account'], changed: Parameters<typeof signTypedData>[2] = {}) {
  return ([, text]: readonly unknown[]): Promise<string> =>
    signTypedData(account, JSON.parse(String(text)) as TypedData, changed);
}

/** Presses the button and returns what the page says in the end. */
async function pressAndRead(customer: Pick<Opened, 'tab'>): Promise<string> {
  await press(customer);
  const outcome = outcomeOf(customer.tab);
  await outcome.waitFor();
  return (await outcome.textContent()) ?? '';
}

describe.skipIf(!hasBrowser)('nothing is charged, and the page says what to do, where the wallet', () => {
  test.each<[string, (wallet: TestWallet) => unknown, string]>([
    [
      'is not connected',
      ({ otherwise }) => otherwise.set('eth_requestAccounts', rejects),
      'You have not connected your wallet. Nothing was charged.',
    ],
    [
      'names no account',
      ({ otherwise }) => otherwise.set('eth_requestAccounts', () => []),
      'Your wallet named no account. Nothing was charged. Unlock it and try again.',
    ],
    [
      'waits for an answer already',
      ({ otherwise }) =>
        otherwise.set('eth_requestAccounts', () => {
          throw new WalletError(-32_002, 'Request already pending');
        }),
      'Your wallet waits for an answer already. Nothing was charged. Open it, answer, and try again.',
    ],
    [
      'may not change its network',
      (wallet) => {
        wallet.chainId = 1;
        wallet.otherwise.set('wallet_switchEthereumChain', rejects);
      },
      'You have not let your wallet change its network. Nothing was charged. Change it to Local chain 84532 in the wallet, then try again.',
    ],
    [
      'may not add the network',
      (wallet) => {
        wallet.chainId = 1;
        wallet.known.delete(84_532);
        wallet.otherwise.set('wallet_addEthereumChain', rejects);
      },
      'You have not let your wallet add the network. Nothing was charged. Change it to Local chain 84532 in the wallet, then try again.',
    ],
    [
      'cannot change its network',
      (wallet) => {
        wallet.chainId = 1;
        wallet.otherwise.set('wallet_switchEthereumChain', () => {
          throw new WalletError(4200, 'unsupported');
        });
      },
      'Your wallet has not changed its network. Nothing was charged. Change it to Local chain 84532 in the wallet, then try again.',
    ],
    [
      'says that it changed its network, and did not',
      (wallet) => {
        wallet.chainId = 1;
        wallet.otherwise.set('wallet_switchEthereumChain', () => null);
      },
      'Your wallet is on another network. Nothing was charged. Change it to Local chain 84532 in the wallet, then try again.',
    ],
    [
      'does not sign',
      ({ otherwise }) => otherwise.set('eth_signTypedData_v4', rejects),
      'You have not signed. Nothing was charged.',
    ],
    [
      'answers without a signature',
      ({ otherwise }) => otherwise.set('eth_signTypedData_v4', () => 'signed'),
      'Your wallet answered without a signature. Nothing was charged. Try again, or use another wallet.',
    ],
    [
      'signs another amount',
      ({ otherwise, account }) =>
        otherwise.set('eth_signTypedData_v4', signs(account, { message: { value: '1' } })),
      'Your wallet has signed something else than this page asked for, or for another network. Nothing was charged. Try again.',
    ],
    [
      'signs for another chain',
      ({ otherwise, account }) =>
        otherwise.set('eth_signTypedData_v4', signs(account, { domain: { chainId: 8_453 } })),
      'Your wallet has signed something else than this page asked for, or for another network. Nothing was charged. Try again.',
    ],
    [
      'signs with another account',
      ({ otherwise }) => otherwise.set('eth_signTypedData_v4', signs(newWallet())),
      'Your wallet has signed something else than this page asked for, or for another network. Nothing was charged. Try again.',
    ],
  ])('%s', async (_, prepare, words) => {
    const customer = await openWithWallet(chromium, chain);
    prepare(customer.wallet);
    expect(await pressAndRead(customer)).toBe(words);
    await expectNothingCharged(chain, customer);
    await customer.tab.check();
    // the same page pays once the wallet does as it is asked
    customer.wallet.otherwise.clear();
    customer.wallet.known.add(84_532);
    await press(customer);
    await customer.tab.page.getByText(added).waitFor();
    expect(await chain.balance(customer.paying.payer)).toBe(90_000_000n);
  });

  test('has too little of the token: the page says how much is missing', async () => {
    const customer = await openWithWallet(chromium, chain);
    const poor = newWallet();
    await chain.mint(poor.address.toLowerCase() as `0x${string}`, 4_000_001n);
    customer.wallet.otherwise.set('eth_requestAccounts', () => [poor.address]);
    expect(await pressAndRead(customer)).toBe(
      'Your wallet has 4.000001 USDC on Local chain 84532, and 10 USDC are needed: 5.999999 USDC are missing. Nothing was charged. Send them to the wallet, or choose another token or a smaller amount.',
    );
    expect(signatures(customer.wallet)).toBe(0);
    await startTour(customer.tab).look('credit-top-up-short');
    await expectNothingCharged(chain, customer);
  });
});

describe.skipIf(!hasBrowser)('a top-up is paid on the network of its token', () => {
  test.each([
    ['changes to it', true],
    ['learns it from the page', false],
  ])('where the wallet is on another one and %s', async (_, isKnown) => {
    const customer = await openWithWallet(chromium, chain);
    const { wallet, gateway, tab } = customer;
    wallet.chainId = 1;
    if (!isKnown) wallet.known.delete(84_532);
    const told: unknown[] = [];
    wallet.otherwise.set('wallet_addEthereumChain', (params) => {
      told.push(params[0]);
      return wallet.answer('wallet_addEthereumChain', params);
    });
    await press(customer);
    await tab.page.getByText(added).waitFor();
    expect(told).toEqual(
      isKnown
        ? []
        : [
            {
              chainId: '0x14a34',
              chainName: 'Local chain 84532',
              rpcUrls: [chain.rpcUrl],
              nativeCurrency: { name: 'Ether', symbol: 'ETH', decimals: 18 },
            },
          ],
    );
    expect(await eventsOf(gateway.database, 'credit_topped_up')).toHaveLength(1);
  });
});
