import { z } from 'zod';
import { originPattern } from '../log/checkpoint.ts';
import { type EventFamily, recordOnly } from './descriptor.ts';
import { count, hex32, network, operatorName, reason, uint256 } from './fields.ts';

const origin = z.string().regex(originPattern);
const generation = z.int().min(2);
const ofRecovery = { of: 'entity', kind: 'recovery' } as const;

/** What an operator records after the ledger lost events, in a stream for each generation of the log. */
export const recoveryEvents = {
  /** The log goes on under another name. The events before it are kept and stay provable. */
  ledger_recovered: {
    ...recordOnly,
    schema: z.strictObject({
      generation,
      /** The log's names; absent where nothing is sealed. */
      origin: origin.optional(),
      new_origin: origin.optional(),
      /** The largest checkpoint of the lost history that an anchor holds. */
      anchored_size: count.optional(),
      anchored_root: hex32.optional(),
      /** The last event of the database that was recovered. */
      kept_seq: count,
      /** The events that are known to be lost; their numbers are given out again. */
      lost_from: count.optional(),
      lost_to: count.optional(),
      /** Unix seconds: payments that landed on a chain since then are searched. */
      since: count,
      reason,
      operator: operatorName,
    }),
    transition: { ...ofRecovery, from: ['none'], to: 'recovered' },
  },
  /** Every payment of the lost events on this network is on record. */
  network_searched: {
    ...recordOnly,
    schema: z.strictObject({ generation, network, from_block: uint256, to_block: uint256, found: count }),
    transition: { ...ofRecovery, from: ['recovered'] },
  },
} as const satisfies EventFamily;
