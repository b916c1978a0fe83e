import { z } from 'zod';
import { callId, jobIndex, serviceId } from '../schemas/values.ts';

/** What a path can name. Anything that cannot be one names nothing: 404, or a lease that is not held. */
export const pathParameters: ReadonlyMap<string, z.ZodType> = new Map<string, z.ZodType>([
  ['service_id', serviceId],
  ['job_index', jobIndex],
  ['call_id', callId],
  [
    'quote_digest',
    z
      .string()
      .regex(/^0x[0-9a-fA-F]{64}$/)
      .meta({ description: "The quote's digest." }),
  ],
]);
