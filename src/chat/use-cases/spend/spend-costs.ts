import { recordCost } from '../../../payments/use-cases/costs/record-cost.ts';
import type { RecordedEvent } from '../../../ledger/rules/event.ts';
import type { Caip2, Hex } from '../../../base/values/primitives.ts';
import type { SpendContext } from './context.ts';

/**
 * Records the costs of landing a spend and of paying it out, once the spend has ended: a later transaction is final, so both are. What cannot
 * be recorded now is logged for the operator, and delays nothing.
 */
export async function recordSpendCosts(
  {
    pool,
    lane,
    log,
    prepaid,
    settings,
  }: Pick<SpendContext, 'pool' | 'lane' | 'log' | 'prepaid' | 'settings'>,
  events: readonly RecordedEvent[],
): Promise<void> {
  for (const event of events) {
    if (event.type !== 'spend_authorized' && event.type !== 'spend_paid_out') continue;
    const { network, transaction, operator: signedFor, chat_id } = event.data;
    if (transaction === undefined) continue;
    const purpose = event.type === 'spend_authorized' ? 'authorization' : 'claim';
    const answer = await recordCost(
      { pool, lane },
      {
        network: network as Caip2,
        transaction: transaction as Hex,
        purpose,
        own: new Set([signedFor, prepaid.operator]),
        operator: undefined,
      },
      network === settings.network ? prepaid : undefined,
    );
    if (answer.kind === 'refused' && answer.code !== 'foreign_payer')
      log.warn(
        { chat_id, network, transaction, purpose, reason: answer.code },
        'the gas of a spend was not recorded',
      );
  }
}
