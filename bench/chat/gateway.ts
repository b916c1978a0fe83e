import { issueApiKey } from '../../src/accounts/use-cases/api-keys.ts';
import { grantCredit, openCreditAccount } from '../../src/accounts/use-cases/credit/credit.ts';
import { openLane } from '../../src/ledger/store/lane.ts';
import type { Ledger } from '../ledger.ts';
import type { TollbookOptions } from '../tollbook.ts';
import { model, price } from './terms.ts';

/** A key may start at most 1,000 completions a minute, so several keys take turns. */
const customers = 512;
const customersAtOnce = 32;
const fundsMicros = 1_000_000_000_000n;

/** A gateway with the feature chat only, in front of the model upstream. */
export function chatGateway({ url }: Ledger, modelUrl: string, dir: string): TollbookOptions {
  return { databaseUrl: url, configText: configText(modelUrl), readyPath: '/v1/ready', dir };
}

/** Defaults, except for the limit. */
function configText(modelUrl: string) {
  return (port: number): string => `
bind_address = "127.0.0.1:${port}"
features = ["chat"]

[chat]
key_per_minute = 1_000
account_per_minute = 1_000

[[upstreams]]
name = "bench"
base_url = "${modelUrl}/v1"

[[models]]
name = "${model}"
upstreams = ["bench"]
input_price = "${price.input}"
output_price = "${price.output}"
context_length = 131_072
max_output_tokens = 16_384
`;
}

/** Creates accounts with credit and one key each. */
export async function fundKeys({ url, pool }: Ledger): Promise<string[]> {
  const lane = openLane({ url });
  const fundKey = async (name: string): Promise<string> => {
    const accountId = await openCreditAccount({ pool, lane }, name);
    await grantCredit({ pool, lane }, accountId, fundsMicros);
    return (await issueApiKey({ pool, lane }, { accountId, name })).key;
  };
  const keys: string[] = [];
  while (keys.length < customers) {
    const names = Array.from({ length: customersAtOnce }, (_, i) => `customer-${keys.length + i}`);
    keys.push(...(await Promise.all(names.map(fundKey))));
  }
  await lane.close();
  return keys;
}
