import { issueApiKey } from '../../src/accounts/use-cases/api-keys.ts';
import { operatorScopes } from '../../src/base/values/operator-scope.ts';
import { issueOperatorToken } from '../../src/accounts/use-cases/operator-tokens.ts';
import { fund, laneOn } from '../support/credit.ts';
import { createBrowser, signInByWallet } from '../support/identity.ts';
import { header, offerOf, payFor, signOffer } from '../support/payer.ts';
import { configuredSecrets, type WholeGateway } from '../support/whole-gateway.ts';
import type { Credentials } from './requests.ts';

const bearer = (token: string) => ({ authorization: `Bearer ${token}` });

/** Fresh credentials of each kind, valid ones and wrong ones: requests revoke keys and end sessions. */
export async function issueCredentials(
  gateway: Pick<WholeGateway, 'database' | 'url' | 'post' | 'get'>,
): Promise<Credentials> {
  const { database, url } = gateway;
  const lane = laneOn(database);
  const accountId = await fund(database, lane, 1_000_000_000n);
  const { key } = await issueApiKey({ ...database, lane }, { accountId, name: 'fuzz' });
  const { token } = await issueOperatorToken({ ...database, lane }, { name: 'fuzz', scopes: operatorScopes });
  await lane.close();
  const browser = createBrowser(url, '203.0.113.1');
  await signInByWallet(browser);
  const cookie = [...browser.cookies].map(([name, value]) => `${name}=${value}`).join('; ');
  const paid = await payFor(gateway, '/x402/jobs/1/0');
  const payment = header(await signOffer(offerOf(await gateway.post('/x402/jobs/1/0', { body: 'x' }))));
  const byScheme = {
    apiKey: bearer(key),
    operatorToken: bearer(token),
    runnerToken: bearer(configuredSecrets.RUNNER_TOKEN),
    receiptToken: bearer(String(paid.json.receipt_token)),
    session: { cookie, origin: url },
  };
  const wrong = [{}, bearer('wrong'), { cookie: `${cookie}x` }, { cookie, origin: 'https://other.example' }];
  return { byScheme, others: [...wrong, payment, ...Object.values(byScheme)] };
}
