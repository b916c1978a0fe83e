import { z } from 'zod';
import { accountName, keyId } from '../../chat/http/schemas/operator-credit.ts';
import { runnerParameter } from '../../jobs/http/schemas/operator.ts';
import { reconciliationId } from '../../finance/http/schemas/reconcile.ts';
import { triggerName } from '../../jobs/http/schemas/trigger.ts';
import { callId, jobIndex, serviceId } from '../../base/http/values.ts';

/** The parameters in paths. A malformed one is answered like an unknown one: 404, or `lease_lost`. */
export const pathParameters: ReadonlyMap<string, z.ZodType> = new Map<string, z.ZodType>([
  ['service_id', serviceId],
  ['job_index', jobIndex],
  ['call_id', callId],
  ['part', z.int().min(0).meta({ description: 'The number of the part, from 0.' })],
  ['key_id', keyId],
  [
    'address',
    z
      .string()
      .regex(/^0x[0-9a-fA-F]{40}$/)
      .meta({ description: 'The address of the wallet.' }),
  ],
  ['runner', runnerParameter],
  ['trigger', triggerName],
  ['account', accountName],
  ['reconciliation_id', reconciliationId],
  ['action', z.string().meta({ description: 'The path of the action. Slashes are not encoded.' })],
  ['model', z.string().meta({ description: 'The name of the model. Slashes are not encoded.' })],
  [
    'tile',
    z
      .string()
      .regex(/^(?:\d{1,2}|entries)\/(?:x\d{3}\/)*\d{3}(?:\.p\/\d{1,3})?$/)
      .meta({ description: 'Level and index as tlog-tiles writes them.', examples: ['0/x001/234.p/56'] }),
  ],
  [
    'quote_digest',
    z
      .string()
      .regex(/^0x[0-9a-fA-F]{64}$/)
      .meta({ description: 'The digest of the quote.' }),
  ],
]);
