import type { Hex } from 'viem';
import { fundPrepaidAccount, prepaidContractAddress } from '../../src/devnet/prepaid-contract.ts';
import { grantCredit, openCreditAccount } from '../../src/accounts/use-cases/credit/credit.ts';
import { issueApiKey } from '../../src/accounts/use-cases/api-keys.ts';
import type { Environment } from './environment.ts';
import type { Random } from './random.ts';
import type { CreditAccount, Records } from './records.ts';
import type { Scenario } from './schedule.ts';
import { type OpenLedger, withLedger } from './sql.ts';

/** What a scenario has before it starts: an account with granted credit, or a funded account of the prepaid contract. */
export interface Prepared {
  readonly account?: CreditAccount;
  readonly spendKey?: Hex;
}

/** For one completion at a time: each holds a hundred tokens, its prompt and what a template may add, some 4,100. */
const grantMicros = 6_000n;
const fundedAtoms = 1_000_000n;

export async function prepareCredit(
  environment: Pick<Environment, 'chain' | 'tokens'>,
  url: string,
  scenarios: readonly Scenario[],
  random: Random,
  records: Pick<Records, 'grants'>,
): Promise<Map<string, Prepared>> {
  const fundAccount = async (spendKey: Hex): Promise<Prepared> => {
    const { chain, tokens } = environment;
    await fundPrepaidAccount(chain, {
      prepaidContract: prepaidContractAddress,
      token: tokens[0],
      spendingPrivateKey: spendKey,
      amountAtoms: fundedAtoms,
    });
    return { spendKey };
  };
  return withLedger(url, async (ledger) => {
    const prepared = await Promise.all(
      scenarios.map(async ({ id, kind }): Promise<[string, Prepared]> => {
        if (kind === 'credit_rivals')
          return [id, { account: await openAccount(ledger, id, grantMicros, records) }];
        if (kind.startsWith('spend') && !kind.startsWith('spent'))
          return [id, await fundAccount(random.fork(id).hex32())];
        return [id, {}];
      }),
    );
    return new Map(prepared);
  });
}

/** An account with granted credit and an API key. */
export async function openAccount(
  ledger: OpenLedger,
  name: string,
  micros: bigint,
  records: Pick<Records, 'grants'>,
): Promise<CreditAccount & { readonly accountId: number }> {
  const accountId = await openCreditAccount(ledger, name);
  await grantCredit(ledger, accountId, micros);
  records.grants.set(accountId, micros);
  const { key } = await issueApiKey(ledger, { accountId, name });
  return { key, accountId };
}
