import type { EventData } from '../../../ledger/rules/event.ts';
import type { Address, Hex } from '../../../base/values/primitives.ts';
import type { SpendAuth } from './spend-auth.ts';

/** The spend authorization that the ledger holds, complete enough to be landed again. */
export function authFromData(data: EventData<'spend_accepted'>): SpendAuth {
  return {
    commitment: data.commitment as Hex,
    serviceId: BigInt(data.service_id),
    jobIndex: data.job_index,
    amount: BigInt(data.amount),
    operator: data.operator as Address,
    nonce: BigInt(data.nonce),
    expiry: BigInt(data.expiry),
    signature: data.signature as Hex,
  };
}
