import type { Locator } from 'playwright-core';
import { expect } from 'vitest';
import type { useBrowser } from './browser.ts';
import type { TestChain } from './devnet.ts';
import { newWallet } from './identity.ts';
import { openTab, type Tab } from './site.ts';
import {
  eventsOf,
  type FundedWallet,
  fundedWallet,
  signedIn,
  startTopUpGateway,
  type TopUpGateway,
} from './top-up.ts';
import { injectWallet, type TestWallet } from './wallet.ts';

type Options = Parameters<typeof startTopUpGateway>[1];

/** A gateway that sells top-ups, and a browser at its pages. */
export interface Customer {
  readonly gateway: TopUpGateway;
  readonly tab: Tab;
  readonly userId: string;
}

/** A user who has signed in with another wallet than those that pay. */
export async function openCustomer(
  chromium: ReturnType<typeof useBrowser>,
  chain: TestChain,
  options: Options = {},
): Promise<Customer> {
  const gateway = await startTopUpGateway(chain, { ...options, tables: '[pages]\nname = "Testbook"' });
  const { browser, userId } = await signedIn(gateway, { account: newWallet() });
  const tab = await openTab(chromium, gateway);
  const cookies = [...browser.cookies].map(([name, value]) => ({ name, value, url: gateway.url }));
  await tab.context.addCookies(cookies);
  return { gateway, tab, userId };
}

/** The page of credit, in a browser with a wallet that has 100 USDC. */
export async function openWithWallet(
  chromium: ReturnType<typeof useBrowser>,
  chain: TestChain,
  options: Options = {},
): Promise<Customer & { readonly paying: FundedWallet; readonly wallet: TestWallet }> {
  const customer = await openCustomer(chromium, chain, options);
  const paying = await fundedWallet(chain);
  const wallet = await injectWallet(customer.tab.context, { account: paying.account, rpcUrl: chain.rpcUrl });
  await customer.tab.open('/credit');
  return { ...customer, paying, wallet };
}

export function payButton({ page }: Pick<Tab, 'page'>): Locator {
  return page.getByRole('button', { name: 'Pay with your wallet' });
}

export async function press({ tab }: Pick<Customer, 'tab'>): Promise<void> {
  await payButton(tab).click();
}

export function outcomeOf({ page }: Pick<Tab, 'page'>): Locator {
  return page.locator('[data-outcome]');
}

/** How often a wallet was asked to sign. */
export function signatures({ asked }: TestWallet): number {
  return asked.filter((method) => method === 'eth_signTypedData_v4').length;
}

export async function expectNothingCharged(
  chain: TestChain,
  { gateway, paying }: { readonly gateway: TopUpGateway; readonly paying: FundedWallet },
): Promise<void> {
  expect(await eventsOf(gateway.database, 'settlement_started')).toEqual([]);
  expect(await chain.balance(paying.payer)).toBe(100_000_000n);
}
