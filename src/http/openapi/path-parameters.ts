import { z } from 'zod';
import { accountName, keyId } from '../schemas/operator-credit.ts';
import { reconciliationId } from '../schemas/reconciliation.ts';
import { callId, jobIndex, serviceId } from '../schemas/values.ts';

/** What a path can name. Anything that cannot be one names nothing: 404, or a lease that is not held. */
export const pathParameters: ReadonlyMap<string, z.ZodType> = new Map<string, z.ZodType>([
  ['service_id', serviceId],
  ['job_index', jobIndex],
  ['call_id', callId],
  ['key_id', keyId],
  ['account', accountName],
  ['reconciliation_id', reconciliationId],
  ['action', z.string().meta({ description: 'What is wanted: slashes stand in it as they are.' })],
  ['model', z.string().meta({ description: 'Its name: slashes may stand in it as they are.' })],
  [
    'tile',
    z
      .string()
      .regex(/^(?:\d{1,2}|entries)\/(?:x\d{3}\/)*\d{3}(?:\.p\/\d{1,3})?$/)
      .meta({ description: 'Level and place as tlog-tiles writes them.', examples: ['0/x001/234.p/56'] }),
  ],
  [
    'quote_digest',
    z
      .string()
      .regex(/^0x[0-9a-fA-F]{64}$/)
      .meta({ description: "The quote's digest." }),
  ],
]);
