import { ownAccounts } from '../../../costs/own-accounts.ts';
import { recordCost } from '../../../costs/record-cost.ts';
import { costPurposes, type CostPurpose } from '../../../domain/payments/transaction-cost.ts';
import { type Caip2, chainIdOf, parseAddress } from '../../../domain/values/primitives.ts';
import { ArgumentError, readOperator, readOptions } from '../../arguments.ts';
import type { ExitCode } from '../../exit-codes.ts';
import { costMessages, costText } from '../../cost-text.ts';
import { readChainSources, readTransaction, recordTransfer, transferOptions } from '../../record-transfer.ts';

export async function run(args: readonly string[]): Promise<ExitCode> {
  const { network, transaction, purpose, payer, operator, sources } = readRequest(args);
  return recordTransfer(sources, costMessages, async ({ ledger, chains, config }) => {
    const own = await ownAccounts(ledger.pool, network, payer === undefined ? [] : [payer], config);
    const order = { network, transaction, purpose, own, operator };
    const answer = await recordCost(ledger, order, chains.get(network));
    if (answer.kind === 'refused') return answer;
    const { cost } = answer;
    const words = `${costText(cost)} of gas (${cost.purpose}), paid by ${cost.payer}`;
    return [answer.kind === 'recorded' ? `Recorded: ${words}.` : `Recorded before: ${words}.`];
  });
}

function readRequest(args: readonly string[]) {
  const { values } = readOptions({
    args: [...args],
    options: {
      ...transferOptions,
      network: { type: 'string', default: '' },
      purpose: { type: 'string', default: '' },
      payer: { type: 'string' },
    },
  });
  const { network } = values;
  if (chainIdOf(network) === undefined)
    throw new ArgumentError('--network is the CAIP-2 name of the chain, such as eip155:8453');
  const purpose = costPurposes.find((one) => one === values.purpose);
  if (purpose === undefined)
    throw new ArgumentError(`--purpose is what it was sent for: ${costPurposes.join(', ')}`);
  return {
    network: network as Caip2,
    transaction: readTransaction(values.tx, purpose),
    purpose: purpose satisfies CostPurpose,
    payer: readPayer(values.payer),
    operator: readOperator(values.by),
    sources: readChainSources(values.config, values.rpc),
  };
}

function readPayer(text: string | undefined): string | undefined {
  const payer = text === undefined ? undefined : parseAddress(text);
  if (text !== undefined && payer === undefined)
    throw new ArgumentError('--payer is the address that sent it: 0x and 40 hexadecimal digits');
  return payer;
}
