import type { z } from 'zod';
import { ArgumentError } from '../../../base/terminal/arguments.ts';

/**
 * Checks a value as the configuration will, before anything is started or written.
 * @throws ArgumentError that begins with `what`
 */
export function checkValue(what: string, schema: z.ZodType, given: string): void {
  const read = schema.safeParse(given);
  if (!read.success) throw new ArgumentError(`${what} ${read.error.issues[0]?.message ?? 'is wrong'}`);
}
