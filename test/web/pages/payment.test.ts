import { expect, test } from 'vitest';
import { hasBrowser, useBrowser } from '../../support/browser.ts';
import { useChain } from '../../support/devnet.ts';
import { openTab } from '../../support/site.ts';
import { fundedWallet, startTopUpGateway, topUpJob } from '../../support/top-up.ts';
import { injectWallet } from '../../support/wallet.ts';

const chromium = useBrowser();
const chain = useChain();

test.skipIf(!hasBrowser)(
  'the module of the pages pays for a job with the wallet of the browser and follows its receipt',
  async () => {
    const gateway = await startTopUpGateway(chain, { tables: '[pages]\nname = "Testbook"' });
    const { account, payer } = await fundedWallet(chain);
    const { page, context, complaints } = await openTab(chromium, gateway);
    const wallet = await injectWallet(context, { account, rpcUrl: chain.rpcUrl });
    await page.goto('/sign-in');
    const end = await page.evaluate(`(async () => {
      const { pay, isKept } = await import('/assets/payment.js');
      const [{ provider }] = await (await import('/assets/wallet.js')).findWallets();
      const steps = [];
      const show = (step, state) => steps.push(step + ' ' + state);
      const purchase = { purpose: 'test', path: '${topUpJob}', contentType: 'text/plain', body: 'credit' };
      const end = await pay(purchase, provider, show);
      return { ...end, steps: [...new Set(steps)], kept: isKept('test') };
    })()`);
    expect(end).toMatchObject({
      kind: 'completed',
      kept: false,
      result: { contentType: 'application/json' },
      steps: [
        'connect active',
        'connect done',
        'offer active',
        'offer done',
        'check active',
        'check done',
        'sign active',
        'sign done',
        'send active',
        'send done',
        'deliver active',
        'deliver done',
      ],
    });
    expect(wallet.asked).toEqual([
      'eth_requestAccounts',
      'eth_chainId',
      'eth_call',
      'eth_call',
      'eth_signTypedData_v4',
    ]);
    expect(await chain.balance(payer)).toBe(90_000_000n);
    expect(complaints).toEqual([]);
  },
);
